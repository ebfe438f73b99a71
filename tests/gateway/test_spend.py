"""P3: what is reserved is what can be spent, and what is booked is what a provider may bill."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from gateway.bench import PRICES, Bench, bench_of, caller, read, request
from turnout.apps.caller import Budget
from turnout.core.errors import Refused
from turnout.models.output import max_output_tokens
from turnout.models.price import MOST_TOKENS, Usage, cost_usd
from turnout.models.provider import WIRES, Wire, limit_field
from turnout.models.slot import Prices, SlotFile, make_slot
from turnout.models.wire.format import token_count
from turnout.net.circuit import read_retry_after
from turnout.testing import Fault, Reply

# The medium slot: 2 a million in, 10 out.
IN_USD, OUT_USD = PRICES["medium"] / 1e6, PRICES["medium"] * 5 / 1e6
LIMIT = {
    "openai-chat": "max_tokens",
    "anthropic-messages": "max_tokens",
    "openai-responses": "max_output_tokens",
}
LONG = "the quick brown fox jumps over the lazy dog and comes back again to see what happened " * 40


def on_bench(tmp_path: Path, scenario: Any, **more: Any) -> None:
    async def run() -> None:
        async with bench_of(tmp_path, **more) as bench:
            await scenario(bench)

    asyncio.run(run())


def bare(wire: Wire, **more: Any) -> bytes:
    """A request without a limit."""
    spelt = {name: msgspec.Raw(value.encode()) for name, value in more.items() if isinstance(value, Spelt)}
    more = {name: value for name, value in more.items() if name not in spelt}
    body = msgspec.json.decode(request("medium", "hello", wire, **more))
    if "max_tokens" not in more:
        body.pop("max_tokens", None)
    return msgspec.json.encode(body | spelt)


async def send(bench: Bench, wire: Wire, budget: Budget, **more: Any) -> Any:
    return await read(await bench.gateway.handle(wire, bare(wire, **more), caller(budget=budget), {}))


def sent(bench: Bench, tier: str = "medium") -> Any:
    return bench.providers[tier].requests[-1].body


# --- a limit for what has none


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", WIRES)
def test_a_request_without_a_limit_gets_one(tmp_path: Path, wire: Wire, stream: bool) -> None:
    async def scenario(bench: Bench) -> None:
        bench.providers["medium"].default = Reply(usage=(10, 10))
        await send(bench, wire, Budget(1.0), stream=stream)
        assert sent(bench)[LIMIT[wire]] == 500, "the model's maximum, where the budget affords it"
        budget = Budget(0.002)
        told = await send(bench, wire, budget, stream=stream)
        affordable = sent(bench)[LIMIT[wire]]
        assert told.status == 200
        assert 100 < affordable < 200, "what the budget affords, where that is less"
        assert affordable * OUT_USD < 0.002
        await send(bench, wire, Budget(1.0), stream=stream, **{LIMIT[wire]: 7})
        assert sent(bench)[LIMIT[wire]] == 7, "a limit of the client's own stays"

    on_bench(tmp_path, scenario, medium={"max_output_tokens": 500})


@pytest.mark.parametrize("wire", WIRES)
def test_without_a_budget_nothing_is_added(tmp_path: Path, wire: Wire) -> None:
    async def scenario(bench: Bench) -> None:
        for stream in (False, True):
            body = msgspec.json.decode(bare(wire, stream=stream, odd={"kept": [1, 2.50]}))
            await bench.gateway.handle(wire, msgspec.json.encode(body), caller(), {})
            assert sent(bench) == {**body, "model": "medium-model"}

    on_bench(tmp_path, scenario)


@pytest.mark.parametrize(
    ("wire", "provider", "field"),
    [
        ("openai-chat", "openai", "max_completion_tokens"),
        ("openai-chat", "groq", "max_completion_tokens"),
        ("openai-chat", "mistral", "max_tokens"),
        ("openai-chat", "ollama", "max_tokens"),
        ("openai-chat", "somebody-else", "max_tokens"),
        ("anthropic-messages", "anthropic", "max_tokens"),
        ("openai-responses", "openai", "max_output_tokens"),
    ],
)
def test_the_field_is_the_formats(wire: Wire, provider: str, field: str) -> None:
    assert limit_field(wire, provider) == field


@pytest.mark.parametrize("given", ["max_tokens", "max_completion_tokens"])
@pytest.mark.parametrize("provider", ["openai", "mistral"])
def test_a_limit_under_the_other_name_still_limits(tmp_path: Path, provider: str, given: str) -> None:
    """A provider that does not know the new name would write without end; OpenAI refuses both at once."""

    async def scenario(bench: Bench) -> None:
        await send(bench, "openai-chat", Budget(1.0), **{given: 33})
        limits = {name: sent(bench)[name] for name in ("max_tokens", "max_completion_tokens") if name in sent(bench)}
        if provider == "openai":
            assert limits == {given: 33}
        else:
            assert limits["max_tokens"] == 33

    on_bench(tmp_path, scenario, medium={"model": f"{provider}/some-model"})


MODELS = [
    ("anthropic/claude-opus-4-6", 128_000),
    ("anthropic/claude-haiku-4-5", 64_000),
    ("anthropic/claude-opus-4-1", 32_000),
    ("anthropic/claude-3-5-haiku-latest", 8192),
    ("openai/gpt-4o-mini", 16_384),
    ("openai/gpt-4.1", 32_768),
    ("openai/gpt-5-mini", 128_000),
    ("openai/o3", 100_000),
    ("google/gemini-2.5-flash", 65_535),
    ("openrouter/anthropic/claude-sonnet-4.5", 64_000),
    ("ollama/llama3.3", 4096),
]


@pytest.mark.parametrize(("model", "tokens"), MODELS)
def test_what_a_model_can_write(model: str, tokens: int) -> None:
    assert max_output_tokens(make_slot("main", SlotFile(model))) == tokens
    assert max_output_tokens(make_slot("main", SlotFile(model, max_output_tokens=77))) == 77


def test_a_limit_fits_beside_the_prompt(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        await send(bench, "openai-chat", Budget(1.0), response_format={"words": "word " * 600})
        assert 100 < sent(bench)["max_tokens"] < 1300

    on_bench(tmp_path, scenario, medium={"context_tokens": 2000})


def test_too_little_for_any_answer_is_refused(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        told = await send(bench, "openai-chat", Budget(0.0001))
        assert (told.status, bench.asked) == (402, [])
        assert "raise the budget" in told.json["error"]["message"]

    on_bench(tmp_path, scenario)


# --- a stream's usage


class Options(NamedTuple):
    id: str
    given: dict[str, Any]
    sent: dict[str, Any]
    shown: bool


OPTIONS = [
    Options("none", {}, {"include_usage": True}, False),
    Options("null", {"stream_options": None}, {"include_usage": True}, False),
    Options("no", {"stream_options": {"include_usage": False}}, {"include_usage": True}, False),
    Options("other", {"stream_options": {"x": [1]}}, {"x": [1], "include_usage": True}, False),
    Options("yes", {"stream_options": {"include_usage": True}}, {"include_usage": True}, True),
]


@pytest.mark.parametrize("delay", [0.0, 0.002])
@pytest.mark.parametrize("case", OPTIONS, ids=lambda case: case.id)
def test_a_stream_tells_its_usage(tmp_path: Path, case: Options, delay: float) -> None:
    async def scenario(bench: Bench) -> None:
        bench.providers["medium"].default = Reply("one two three", usage=(1000, 100), chunk_delay_s=delay)
        budget = Budget(1.0)
        told = await send(bench, "openai-chat", budget, stream=True, **case.given)
        assert sent(bench)["stream_options"] == case.sent
        events = [line[6:] for line in told.body.decode().split("\n") if line.startswith("data: {")]
        chunks = [msgspec.json.decode(event) for event in events]
        usages = [chunk for chunk in chunks if not chunk["choices"]]
        assert len(usages) == case.shown
        assert told.body.endswith(b"data: [DONE]\n\n")
        assert "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks if c["choices"]) == "one two three"
        assert budget.spent_usd == pytest.approx(0.003)
        assert "estimated_tokens" not in bench.outcome(told).extra

    on_bench(tmp_path, scenario)


@pytest.mark.parametrize("wire", ["anthropic-messages", "openai-responses"])
def test_other_streams_tell_it_unasked(tmp_path: Path, wire: Wire) -> None:
    async def scenario(bench: Bench) -> None:
        await send(bench, wire, Budget(1.0), stream=True)
        assert "stream_options" not in sent(bench)

    on_bench(tmp_path, scenario)


# --- what is booked when no usage comes


async def drop(bench: Bench, wire: Wire, budget: Budget, after: int, **more: Any) -> int:
    """Read a stream for a while and leave; how many bytes came."""
    answer = await bench.gateway.handle(wire, bare(wire, stream=True, **more), caller(budget=budget), {})
    assert not isinstance(answer.body, bytes), answer.body
    got = 0
    async with contextlib.aclosing(answer.body):
        async for piece in answer.body:
            got += len(piece)
            if got >= after:
                break
    return got


@pytest.mark.parametrize("wire", WIRES)
def test_a_cut_stream_books_what_came(tmp_path: Path, wire: Wire) -> None:
    """All of the text is read, and the client leaves before the usage."""

    async def scenario(bench: Bench) -> None:
        tokens = len(LONG.split())
        fault = Fault("stall", "after_delta", tokens)
        bench.providers["medium"].default = Reply(LONG, usage=(1000, tokens), fault=fault)
        budget = Budget(1.0)
        task = asyncio.ensure_future(drop(bench, wire, budget, 10**9, max_tokens=4000, max_output_tokens=4000))
        await asyncio.sleep(0.7)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert budget.spent_usd >= tokens * OUT_USD, "no less than the provider bills"
        assert budget.spent_usd <= 3 * (tokens * OUT_USD + 1000 * IN_USD), "and not far more"
        assert budget.reserved_usd == 0.0
        newest = next(bench.store.records().decisions())
        happened = bench.outcome(newest.id)
        assert (happened.ended, happened.extra["estimated_tokens"]) == ("cancelled", True)
        if wire == "anthropic-messages":
            assert happened.input_tokens == 1000, "which the stream began with"

    on_bench(tmp_path, scenario)


def test_a_cut_stream_books_at_most_the_reservation(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        bench.providers["medium"].default = Reply("9 " * 500, usage=(10, 500), chunk_delay_s=0.0005)
        budget = Budget(1.0)
        await drop(bench, "openai-chat", budget, 9000, max_tokens=20)
        assert 20 * OUT_USD <= budget.spent_usd <= 20 * OUT_USD + 100 * IN_USD

    on_bench(tmp_path, scenario)


def test_a_stream_that_breaks_is_booked_too(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        bench.providers["medium"].default = Reply(LONG, usage=(1000, 700), fault=Fault("cut", "after_delta", 300))
        budget = Budget(1.0)
        told = await send(bench, "anthropic-messages", budget, stream=True, max_tokens=4000)
        assert b"incomplete" in told.body
        assert budget.spent_usd >= 1000 * IN_USD + 300 * OUT_USD

    on_bench(tmp_path, scenario)


@pytest.mark.parametrize(
    ("wire", "more", "model"),
    [
        ("anthropic-messages", {"thinking": {"type": "enabled", "budget_tokens": 1024}}, "x/claude-y"),
        ("openai-chat", {"reasoning_effort": "high"}, "x/y"),
        ("openai-responses", {"reasoning": {"effort": "high"}}, "x/y"),
        ("openai-chat", {}, "openai/o3"),
        ("openai-responses", {}, "openai/gpt-5.2"),
    ],
)
def test_thoughts_that_are_not_shown_are_booked(tmp_path: Path, wire: Wire, more: Any, model: str) -> None:
    """A stream that is left after its first word may have cost all that was reserved."""

    async def scenario(bench: Bench) -> None:
        bench.providers["medium"].default = Reply("a b c d e f", usage=(10, 3000), chunk_delay_s=0.02)
        budget = Budget(1.0)
        await drop(bench, wire, budget, 1, max_tokens=3000, max_output_tokens=3000, **more)
        assert budget.spent_usd >= 3000 * OUT_USD

    on_bench(tmp_path, scenario, medium={"model": model})


@pytest.mark.parametrize("wire", WIRES)
def test_an_abandoned_answer_books_the_reservation(tmp_path: Path, wire: Wire) -> None:
    async def scenario(bench: Bench) -> None:
        bench.providers["medium"].default = Reply(delay_s=30)
        budget = Budget(1.0)
        task = asyncio.ensure_future(send(bench, wire, budget, max_tokens=3000, max_output_tokens=3000))
        while not bench.asked:
            await asyncio.sleep(0.005)
        held = budget.reserved_usd
        assert held >= 3000 * OUT_USD
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert (budget.spent_usd, budget.reserved_usd) == (pytest.approx(held), 0.0)
        assert bench.rows() == (1, 1)

    on_bench(tmp_path, scenario)


class Lost(NamedTuple):
    id: str
    reply: Reply | None
    stream: bool
    booked: str
    """`all` that was reserved, the `input`, or `nothing`."""
    tries: int = 1


LOST = [
    Lost("nobody-there", None, False, "nothing"),
    Lost("status", Reply(status=500, delay_s=1.2), False, "nothing"),
    Lost("reset-at-once", Reply(fault=Fault("reset")), False, "nothing"),
    Lost("time-out", Reply(fault=Fault("stall")), False, "all"),
    Lost("time-out-stream", Reply(fault=Fault("stall")), True, "input"),
    Lost("reset-later", Reply(delay_s=1.2, fault=Fault("reset")), False, "all", tries=2),
    Lost("cut-body-later", Reply(delay_s=1.2, fault=Fault("cut", "after_delta")), False, "all"),
]


@pytest.mark.alike(2)
@pytest.mark.parametrize("case", LOST, ids=lambda case: case.id)
def test_an_attempt_that_is_given_up_may_have_cost_something(tmp_path: Path, case: Lost) -> None:
    """Another model answers, and the one that was worked for in vain is booked beside it."""

    async def scenario(bench: Bench) -> None:
        if case.reply is None:
            bench.providers["medium"].refuse()
        else:
            bench.providers["medium"].default = case.reply
        bench.providers["complex"].default = Reply(usage=(100, 10))
        budget = Budget(1.0)
        told = await send(bench, "openai-chat", budget, stream=case.stream, max_tokens=1000)
        assert (told.status, told.slot) == (200, "complex")
        answered = 100 * 4 / 1e6 + 10 * 20 / 1e6
        lost = budget.spent_usd - answered
        match case.booked:
            case "nothing":
                assert lost == pytest.approx(0.0)
            case "input":
                assert 0 < lost < 1000 * OUT_USD
            case "all":
                assert 1000 * OUT_USD <= lost / case.tries <= 1000 * OUT_USD + 100 * IN_USD
        assert bench.outcome(told).extra.get("lost_usd", 0.0) == pytest.approx(lost)
        assert budget.reserved_usd == 0.0

    on_bench(tmp_path, scenario, medium={"total_s": 1.5, "first_token_s": 1.5})


def test_the_next_model_is_asked_only_if_it_can_be_paid(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        bench.providers["medium"].default = Reply(status=500)
        told = await send(bench, "openai-chat", Budget(0.012), max_tokens=1000)
        assert (told.status, set(bench.asked)) == (502, {"medium"})
        assert [one["ended"] for one in bench.outcome(told).extra["attempts"]][-1] == "budget"

    on_bench(tmp_path, scenario)


# --- input that must count


FILLER = "word " * 4000


class Spelt(str):
    """JSON that is sent as it is."""

    __slots__ = ()


class Input(NamedTuple):
    id: str
    wire: Wire
    more: dict[str, Any]


TOOL = {"name": "look", "description": FILLER, "input_schema": {"type": "object"}}
INPUT = [
    Input("instructions", "openai-responses", {"instructions": FILLER}),
    Input("schema", "openai-responses", {"text": {"format": {"type": "json_schema", "schema": FILLER}}}),
    Input("tools-responses", "openai-responses", {"tools": [{"type": "function", **TOOL}]}),
    Input("tools-chat", "openai-chat", {"tools": [{"type": "function", "function": TOOL}]}),
    Input("functions", "openai-chat", {"functions": [TOOL]}),
    Input("response-format", "openai-chat", {"response_format": {"type": "json_schema", "json_schema": FILLER}}),
    Input("tools-messages", "anthropic-messages", {"tools": [TOOL]}),
    Input("system", "anthropic-messages", {"system": FILLER}),
    Input("unknown-answer", "openai-responses", {"previous_response_id": "resp_unknown"}),
    Input("conversation", "openai-responses", {"conversation": "conv_1"}),
    Input("prompt", "openai-responses", {"prompt": {"id": "pmpt_1"}}),
    Input(
        "file",
        "openai-responses",
        {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "file-1"}]}]},
    ),
    Input(
        "file-chat",
        "openai-chat",
        {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]}]},
    ),
    Input(
        "document",
        "anthropic-messages",
        {
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}}],
                }
            ]
        },
    ),
    Input(
        "document-escaped",
        "anthropic-messages",
        {
            "messages": Spelt(
                '[{"role":"user","content":[{"type":"document","source":{"type":"\\u0075rl","\\u0075rl":"x"}}]}]'
            )
        },
    ),
    Input(
        "document-small",
        "anthropic-messages",
        {
            "messages": [
                {"role": "user", "content": [{"type": "document", "source": {"type": "base64", "data": "JVBE"}}]}
            ]
        },
    ),
    Input(
        "document-of-a-tool",
        "anthropic-messages",
        {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "t",
                            "content": [{"type": "document", "source": {"type": "url", "url": "x"}}],
                        }
                    ],
                }
            ]
        },
    ),
    Input(
        "file-data",
        "openai-chat",
        {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_data": "data:x;base64,JVBE"}}]}]},
    ),
    Input(
        "file-escaped",
        "openai-chat",
        {"messages": Spelt('[{"role":"user","content":[{"type":"\\u0066ile","file":{"\\u0066ile_id":"f"}}]}]')},
    ),
    Input(
        "document-url",
        "openai-chat",
        {"messages": [{"role": "user", "content": [{"type": "document_url", "document_url": "x"}]}]},
    ),
    Input(
        "file-of-a-tool",
        "openai-responses",
        {
            "input": [
                {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_file", "file_id": "f"}]},
            ]
        },
    ),
    Input(
        "pictures-of-a-tool",
        "openai-responses",
        {
            "input": [
                {
                    "type": "function_call_output",
                    "call_id": "c",
                    "output": [{"type": "input_image", "image_url": "https://example.com/a.png"}] * 3,
                },
            ]
        },
    ),
    Input("item-by-its-id", "openai-responses", {"input": [{"id": "msg_1"}]}),
    Input(
        "letters-beside-a-picture",
        "openai-chat",
        {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "abcd" * 5000},
                        {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "ABCD" * 20_000}},
                    ],
                }
            ]
        },
    ),
    Input("digits", "openai-chat", {"messages": [{"role": "user", "content": "7" * 6000}]}),
    Input("script", "openai-chat", {"messages": [{"role": "user", "content": "ᚠ" * 2000}]}),
]


@pytest.mark.parametrize("case", INPUT, ids=lambda case: case.id)
def test_all_input_counts(tmp_path: Path, case: Input) -> None:
    """At 2 a million, five thousand tokens of input are a cent; none of these is sent for less."""

    async def scenario(bench: Bench) -> None:
        limit = {"max_tokens": 16, "max_output_tokens": 16}
        refused = await send(bench, case.wire, Budget(0.0095), **limit, **case.more)
        assert (refused.status, bench.asked) == (402, []), refused.body
        taken = await send(bench, case.wire, Budget(0.5), **limit, **case.more)
        assert taken.status == 200, taken.body

    on_bench(tmp_path, scenario, medium={"context_tokens": 10_000})


def test_a_known_answer_counts_as_it_was(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        bench.providers["medium"].default = Reply(usage=(3000, 1000))
        budget = Budget(1.0)
        first = await send(bench, "openai-responses", budget, max_output_tokens=1000)
        follow = {"previous_response_id": first.json["id"], "max_output_tokens": 16}
        assert (await send(bench, "openai-responses", Budget(0.0075), **follow)).status == 402
        assert (await send(bench, "openai-responses", Budget(0.009), **follow)).status == 200

    on_bench(tmp_path, scenario, medium={"context_tokens": 100_000})


def test_a_picture_is_not_counted_by_its_bytes(tmp_path: Path) -> None:
    data = "iVBORw0KGgo" * 20_000
    url = f"data:image/png;base64,{data}"
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [image]}
    pictures: list[tuple[Wire, Any]] = [
        ("openai-chat", [{"type": "image_url", "image_url": {"url": url}}]),
        ("openai-responses", [{"type": "input_image", "image_url": url}]),
        ("anthropic-messages", [image]),
        ("anthropic-messages", [result]),
    ]

    async def scenario(bench: Bench) -> None:
        for wire, content in pictures:
            messages = [{"role": "user", "content": content}]
            more = {"input" if wire == "openai-responses" else "messages": messages}
            told = await send(bench, wire, Budget(0.02), max_tokens=16, max_output_tokens=16, **more)
            assert told.status == 200, told.body

    on_bench(tmp_path, scenario, medium={"context_tokens": 100_000})


# --- what no list has a price for


class UnpricedCase(NamedTuple):
    id: str
    wire: Wire
    more: dict[str, Any]
    hosted: bool = False


def group(*tools: Any) -> dict[str, Any]:
    return {"type": "namespace", "name": "n", "tools": list(tools)}


CLEAR = {"type": "clear_thinking_20251015", "keep": "all"}
UNPRICED = [
    UnpricedCase("priority", "openai-chat", {"service_tier": "priority"}),
    UnpricedCase("priority-responses", "openai-responses", {"service_tier": "priority"}),
    UnpricedCase("audio", "openai-chat", {"modalities": ["text", "audio"], "audio": {"voice": "alloy"}}),
    UnpricedCase("models", "openai-chat", {"models": ["somebody/else"]}),
    UnpricedCase("plugins", "openai-chat", {"plugins": [{"id": "web"}]}),
    UnpricedCase("search", "openai-chat", {"web_search_options": {"x": 1}}),
    UnpricedCase("background", "openai-responses", {"background": True}),
    UnpricedCase("compaction", "anthropic-messages", {"context_management": {"edits": [{"type": "compact"}]}}),
    UnpricedCase(
        "compaction-too", "anthropic-messages", {"context_management": {"edits": [CLEAR, {"type": "compact"}]}}
    ),
    UnpricedCase("management-unreadable", "anthropic-messages", {"context_management": [CLEAR]}),
    UnpricedCase("compaction-responses", "openai-responses", {"context_management": [{"type": "compaction"}]}),
    UnpricedCase("fast", "anthropic-messages", {"speed": "fast"}),
    UnpricedCase("web-search", "anthropic-messages", {"tools": [{"type": "web_search_20250305", "name": "s"}]}, True),
    UnpricedCase("mcp", "anthropic-messages", {"mcp_servers": [{"url": "https://example.com"}]}, True),
    UnpricedCase("web-search-responses", "openai-responses", {"tools": [{"type": "web_search"}]}, True),
    UnpricedCase(
        "container", "openai-responses", {"tools": [{"type": "shell", "environment": {"type": "auto"}}]}, True
    ),
    UnpricedCase("interpreter", "openai-responses", {"tools": [{"type": "code_interpreter"}]}, True),
    UnpricedCase("grouped", "openai-responses", {"tools": [group({"type": "function"}, {"type": "web_search"})]}, True),
    UnpricedCase("grouped-deeper", "openai-responses", {"tools": [group(group({"type": "web_search"}))]}, True),
    UnpricedCase("grouped-unreadably", "openai-responses", {"tools": [group(1)]}, True),
    UnpricedCase("no-group", "openai-responses", {"tools": [{"type": "namespace", "tools": None}]}, True),
]


@pytest.mark.parametrize("case", UNPRICED, ids=lambda case: case.id)
def test_what_has_no_price_is_not_asked_for_under_a_budget(tmp_path: Path, case: UnpricedCase) -> None:
    async def scenario(bench: Bench) -> None:
        told = await send(bench, case.wire, Budget(1.0), max_tokens=16, **case.more)
        assert (told.status, bench.asked) == (403, []), told.body
        assert "this key has a budget" in told.json["error"]["message"]
        assert bench.rows() == (1, 1)
        free = await bench.gateway.handle(case.wire, bare(case.wire, max_tokens=16, **case.more), caller(), {})
        assert free.status == 200

    on_bench(tmp_path, scenario)


def test_a_conversation_may_leave_out_what_it_no_longer_needs(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        wanted = {"context_management": {"edits": [CLEAR, {"type": "clear_tool_uses_20250919"}]}}
        assert (await send(bench, "anthropic-messages", Budget(1.0), max_tokens=16, **wanted)).status == 200

    on_bench(tmp_path, scenario)


@pytest.mark.parametrize("case", [one for one in UNPRICED if one.hosted], ids=lambda case: case.id)
def test_tools_that_a_provider_runs_cost_what_is_allowed_for_them(tmp_path: Path, case: UnpricedCase) -> None:
    async def scenario(bench: Bench) -> None:
        bench.providers["medium"].default = Reply(usage=(1000, 100))
        budget = Budget(1.0)
        told = await send(bench, case.wire, budget, max_tokens=100, max_output_tokens=100, **case.more)
        assert told.status == 200
        assert budget.spent_usd == pytest.approx(0.003 + 0.25)

    on_bench(tmp_path, scenario, medium={"hosted_tools_usd": 0.25})


@pytest.mark.parametrize(
    ("wire", "tool"),
    [
        ("openai-chat", {"type": "function", "function": {"name": "f"}}),
        ("openai-responses", {"type": "function", "name": "f"}),
        ("openai-responses", {"type": "local_shell"}),
        ("openai-responses", {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "f"}]}),
        ("anthropic-messages", {"name": "f", "input_schema": {}}),
        ("anthropic-messages", {"type": "custom", "name": "f", "input_schema": {}}),
        ("anthropic-messages", {"type": "bash_20250124", "name": "bash"}),
        ("anthropic-messages", {"type": "text_editor_20250728", "name": "e"}),
    ],
)
def test_tools_that_the_client_runs_are_free(tmp_path: Path, wire: Wire, tool: Any) -> None:
    async def scenario(bench: Bench) -> None:
        told = await send(bench, wire, Budget(1.0), max_tokens=16, tools=[tool])
        assert told.status == 200, told.body

    on_bench(tmp_path, scenario)


# --- counts that are none


ABSURD = [10**400, -5, -(10**400), 1.5, "7", True, None, [], {}, 10**9 + 1, 2**63]


@pytest.mark.parametrize("value", ABSURD, ids=lambda value: str(value)[:8])
@pytest.mark.parametrize("wire", WIRES)
def test_an_absurd_usage_is_only_clamped(tmp_path: Path, wire: Wire, value: Any) -> None:
    """No failure, one row, and never a cent more in the budget."""

    names = ("input_tokens", "output_tokens") if wire != "openai-chat" else ("prompt_tokens", "completion_tokens")
    usage = dict.fromkeys((*names, "total_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"), value)
    usage |= {"prompt_tokens_details": value, "input_tokens_details": {"cached_tokens": value}}
    body = json.dumps({"id": "x", "choices": [], "content": [], "output": [], "usage": usage}).encode()

    async def scenario(bench: Bench) -> None:
        bench.providers["medium"].default = Reply(body=body)
        budget = Budget(0.5)
        told = await send(bench, wire, budget, max_tokens=100, max_output_tokens=100)
        assert (told.status, bench.rows()) == (200, (1, 1))
        assert budget.spent_usd >= 0
        happened = bench.outcome(told)
        for count in (happened.input_tokens, happened.output_tokens):
            assert count is not None
            assert 0 <= count <= 2 * MOST_TOKENS

    on_bench(tmp_path, scenario)


def events(*data: str) -> Reply:
    return Reply(body="".join(data).encode(), headers={"content-type": "text/event-stream"})


DELTA = 'data: {"choices":[{"index":0,"delta":{"content":"one two three four "}}]}\n\n'
START = 'event: message_start\ndata: {"message":{"usage":{"input_tokens":100,"output_tokens":1}}}\n\n'
BLOCK = 'event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"text":"one two three four "}}\n\n'
PIECE = 'event: response.output_text.delta\ndata: {"type":"x","delta":"one two three four "}\n\n'
DONE = "data: [DONE]\n\n"
EARLY = [
    (
        "openai-chat",
        'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1}}\n\n',
        DELTA,
        "data: [DONE]\n\n",
    ),
    ("openai-chat", "", DELTA, 'data: {"choices":[],"usage":{}}\n\ndata: [DONE]\n\n'),
    (
        "openai-chat",
        "",
        DELTA,
        'data: {"choices":[],"usage":{"prompt_tokens":null,"total_tokens":"x"}}\n\ndata: [DONE]\n\n',
    ),
    ("anthropic-messages", START, BLOCK, 'event: message_stop\ndata: {"type":"message_stop"}\n\n'),
    (
        "anthropic-messages",
        START,
        BLOCK,
        'event: message_delta\ndata: {"usage":null}\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n',
    ),
    (
        "openai-responses",
        'event: response.created\ndata: {"response":{"usage":{"input_tokens":9,"output_tokens":1}}}\n\n',
        PIECE,
        'event: response.completed\ndata: {"response":{"usage":{}}}\n\n',
    ),
]


@pytest.mark.parametrize(("wire", "start", "delta", "end"), EARLY)
def test_a_usage_before_the_words_is_not_theirs(tmp_path: Path, wire: Wire, start: str, delta: str, end: str) -> None:
    """Two thousand words come after the usage, or none that can be read comes after them."""

    async def scenario(bench: Bench) -> None:
        bench.providers["medium"].default = events(start, delta * 500, end)
        budget = Budget(1.0)
        told = await send(bench, wire, budget, stream=True, max_tokens=9000, max_output_tokens=9000)
        assert told.status == 200
        assert budget.spent_usd >= 2000 * OUT_USD
        assert bench.outcome(told).extra["estimated_tokens"] is True

    on_bench(tmp_path, scenario)


def test_what_a_stream_says_it_read_is_booked(tmp_path: Path) -> None:
    """More than was reserved, too: the provider bills it."""

    async def scenario(bench: Bench) -> None:
        bench.providers["medium"].default = Reply("a b c", usage=(100_000, 3), fault=Fault("stall", "after_delta", 2))
        budget = Budget(1.0)
        await drop(bench, "anthropic-messages", budget, 1, max_tokens=16)
        assert budget.spent_usd >= 100_000 * IN_USD

    on_bench(tmp_path, scenario)


def test_a_longer_window_is_reserved_for(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        body = bare("anthropic-messages", max_tokens=16, system="7" * 60_000)
        for beta, status in (("context-1m-2025-08-07", 402), ("", 200)):
            headers = {"anthropic-beta": beta}
            budget = Budget(0.05)
            told = await read(await bench.gateway.handle("anthropic-messages", body, caller(budget=budget), headers))
            assert told.status == status

    on_bench(tmp_path, scenario, medium={"context_tokens": 20_000})


def test_a_limit_of_nothing_stays_the_clients(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        for wire in WIRES:
            await send(bench, wire, Budget(1.0), **{LIMIT[wire]: 0})
            assert sent(bench)[LIMIT[wire]] == 0
            assert (await send(bench, wire, Budget(0.001), **{LIMIT[wire]: 0})).status == 402, "and makes no call cheap"

    on_bench(tmp_path, scenario)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("usage", [(0, 0), (1000, 0)])
def test_a_usage_of_nothing_is_no_usage(tmp_path: Path, stream: bool, usage: tuple[int, int]) -> None:
    async def scenario(bench: Bench) -> None:
        bench.providers["medium"].default = Reply(LONG, usage=usage)
        budget = Budget(1.0)
        told = await send(bench, "openai-chat", budget, stream=stream, max_tokens=4000)
        written = len(LONG.split()) * OUT_USD
        assert budget.spent_usd >= written + usage[0] * IN_USD
        assert bench.outcome(told).extra["estimated_tokens"] is True

    on_bench(tmp_path, scenario)


def test_an_answer_of_nothing_costs_its_input(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        bench.providers["medium"].default = Reply("", usage=(1000, 0))
        budget = Budget(1.0)
        told = await send(bench, "openai-chat", budget, max_tokens=4000)
        assert budget.spent_usd == pytest.approx(1000 * IN_USD)
        assert "estimated_tokens" not in bench.outcome(told).extra

    on_bench(tmp_path, scenario)


@pytest.mark.parametrize("text", ["1" + "0" * 400, "-1" + "0" * 400, "1e400", "-1e400"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_usage_of_four_hundred_digits(tmp_path: Path, text: str, stream: bool) -> None:
    usage = f'"usage":{{"prompt_tokens":{text},"completion_tokens":{text},"total_tokens":{text}}}'
    whole = f'{{"id":"x","choices":[{{"index":0,"message":{{"content":"hi"}},"finish_reason":"stop"}}],{usage}}}'
    delta = '{"choices":[{"index":0,"delta":{"content":"hi"}}]}'
    events = f'data: {delta}\n\ndata: {{"choices":[],{usage}}}\n\ndata: [DONE]\n\n'

    async def scenario(bench: Bench) -> None:
        kind = {"content-type": "text/event-stream" if stream else "application/json"}
        bench.providers["medium"].default = Reply(body=(events if stream else whole).encode(), headers=kind)
        budget = Budget(0.5)
        told = await send(bench, "openai-chat", budget, stream=stream, max_tokens=100)
        assert (told.status, bench.rows()) == (200, (1, 1))
        assert bench.outcome(told).ended == "answered"
        assert budget.spent_usd >= 0
        assert budget.reserved_usd == 0.0

    on_bench(tmp_path, scenario)


@pytest.mark.parametrize("value", ["1" + "0" * 400, "-1" + "0" * 400, "1e300", "-5", "0", "2.5", "null", "1000000000"])
@pytest.mark.parametrize("field", ["n", "max_tokens", "max_completion_tokens", "max_output_tokens"])
@pytest.mark.parametrize("wire", WIRES)
def test_absurd_limits_are_read(tmp_path: Path, wire: Wire, field: str, value: str) -> None:
    body = bare(wire)[:-1] + f',"{field}":{value}}}'.encode()

    async def scenario(bench: Bench) -> None:
        for budget in (Budget(0.01), Budget()):
            told = await read(await bench.gateway.handle(wire, body, caller(budget=budget), {}))
            assert told.status in (200, 400, 402)
            assert budget.reserved_usd == 0.0
            assert budget.spent_usd >= 0.0

    on_bench(tmp_path, scenario)


@pytest.mark.parametrize("value", ['"many"', "true", "[1]", "{}", "1e400"])
def test_a_limit_that_is_no_number_is_refused_in_words(tmp_path: Path, value: str) -> None:
    async def scenario(bench: Bench) -> None:
        for field in ("n", "max_tokens"):
            body = bare("openai-chat")[:-1] + f',"{field}":{value}}}'.encode()
            told = await read(await bench.gateway.handle("openai-chat", body, caller(), {}))
            assert told.status == 400
            assert field in told.json["error"]["message"]

    on_bench(tmp_path, scenario)


@pytest.mark.parametrize(
    "value", ["9" * 400, "9" * 400 + ".5", "1e400", "nan", "inf", "-1", "", "soon", "²", "1" * 4000]
)
def test_a_retry_after_of_any_kind(tmp_path: Path, value: str) -> None:
    found = read_retry_after(value)
    assert found is None or 0 <= found <= 86_400

    async def scenario(bench: Bench) -> None:
        for provider in bench.providers.values():
            provider.default = Reply(status=429, headers={"retry-after": value} if value.isascii() else {})
        told = await bench.ask("medium")
        assert told.status == 429
        assert bench.rows() == (1, 1)

    on_bench(tmp_path, scenario)


@pytest.mark.parametrize(
    ("value", "tokens"),
    [(5, 5), (-5, 0), (10**400, MOST_TOKENS), (2.9, 2), (float("nan"), 0), (float("inf"), 0), ("5", 0), (True, 0)],
)
def test_a_count_of_tokens(value: Any, tokens: int) -> None:
    assert token_count(value) == tokens


# --- prices


def test_what_is_written_into_a_cache_costs_more() -> None:
    slot = make_slot("main", SlotFile("x/y", base_url="http://127.0.0.1:9", prices=Prices(4.0, 20.0, 0.4)))
    assert cost_usd(slot, Usage(1_000_000, 0, 0, 1_000_000)) == pytest.approx(5.0)
    assert cost_usd(slot, Usage(1_000_000, 0, 0, 0, 1_000_000)) == pytest.approx(8.0)
    assert cost_usd(slot, Usage(1_000_000, 0, 500_000, 500_000)) == pytest.approx(0.2 + 2.5)


def test_a_long_prompt_has_the_price_of_a_long_prompt() -> None:
    slot = make_slot("main", SlotFile("google/gemini-2.5-pro"))
    short, long = (cost_usd(slot, Usage(tokens, 1000)) for tokens in (100_000, 300_000))
    assert short == pytest.approx(0.125 + 0.01)
    assert long == pytest.approx(0.75 + 0.015)


def test_thoughts_that_are_only_in_the_total_are_counted(tmp_path: Path) -> None:
    usage = b'"usage":{"prompt_tokens":1000,"completion_tokens":10,"total_tokens":1110}'
    body = b'{"id":"x","choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}],' + usage + b"}"

    async def scenario(bench: Bench) -> None:
        bench.providers["medium"].default = Reply(body=body)
        assert bench.outcome(await bench.ask("medium")).output_tokens == 110

    on_bench(tmp_path, scenario)


@pytest.mark.parametrize("name", ["cache_control", "cache\\u005fcontrol"])
def test_caching_is_reserved_for(tmp_path: Path, name: str) -> None:
    system = Spelt(f'[{{"type":"text","text":"{"word " * 1000}","{name}":{{"type":"ephemeral"}}}}]')

    async def scenario(bench: Bench) -> None:
        bench.providers["medium"].default = Reply(usage=(1300, 1))
        assert (await send(bench, "anthropic-messages", Budget(0.004), max_tokens=16, system=system)).status == 402
        assert (await send(bench, "anthropic-messages", Budget(0.01), max_tokens=16, system=system)).status == 200

    on_bench(tmp_path, scenario)


# --- many at once


@pytest.mark.parametrize("wire", WIRES)
def test_a_hundred_and_twenty_at_once_without_a_limit(tmp_path: Path, wire: Wire) -> None:
    """Each writes as much as it may. The budget bounds what they cost together."""

    async def scenario(bench: Bench) -> None:
        billed = 0.0

        def answer(asked: Any) -> Reply:
            nonlocal billed
            tokens = asked.body[LIMIT[wire]]
            billed += 10 * IN_USD + tokens * OUT_USD
            return Reply("x", usage=(10, tokens), delay_s=0.05)

        bench.providers["medium"].default = answer
        budget = Budget(1.0)
        told = await asyncio.gather(*(send(bench, wire, budget) for _ in range(120)))
        assert {one.status for one in told} <= {200, 402}
        assert 0.5 < billed <= 1.0
        assert budget.spent_usd == pytest.approx(billed)
        with pytest.raises(Refused):
            budget.reserve(1.0)

    on_bench(tmp_path, scenario, medium={"max_output_tokens": 4096})
