-- As load.lua, at a rate: each connection waits about MEAN_MS before it asks again, whatever it was answered.
local requests, at = {}, tonumber(os.getenv("START"))
local mean = tonumber(os.getenv("MEAN_MS"))

function init(args)
  math.randomseed(7)
  wrk.headers["content-type"] = "application/json"
  wrk.headers["authorization"] = "Bearer " .. os.getenv("KEY")
  for body in io.lines(os.getenv("BODIES")) do
    requests[#requests + 1] = wrk.format("POST", nil, nil, body)
  end
end

function delay()
  return math.random() * 2 * mean
end

function request()
  at = at % #requests + 1
  return requests[at]
end

function done(summary, latency, _)
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests": %d, "seconds": %.6f, "refused": %d, "broken": %d, "p50": %.1f, "p95": %.1f}\n',
    summary.requests, summary.duration / 1e6, errors.status,
    errors.connect + errors.read + errors.write + errors.timeout, latency:percentile(50), latency:percentile(95)
  ))
end
