-- What wrk sends, one body after the other, and what it says at the end, as JSON.
-- BODIES: a file with a body a line; START: how many of them to skip; KEY: what the gateway is shown.
local requests, at = {}, tonumber(os.getenv("START"))

function init(args)
  wrk.headers["content-type"] = "application/json"
  wrk.headers["authorization"] = "Bearer " .. os.getenv("KEY")
  for body in io.lines(os.getenv("BODIES")) do
    requests[#requests + 1] = wrk.format("POST", nil, nil, body)
  end
end

function request()
  at = at % #requests + 1
  return requests[at]
end

function done(summary, latency, _)
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests": %d, "seconds": %.6f, "p50": %.1f, "p99": %.1f, "errors": %d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50), latency:percentile(99),
    errors.connect + errors.read + errors.write + errors.status + errors.timeout
  ))
end
