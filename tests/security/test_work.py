"""No body stops the process: while any of them is read, decided on, answered and written down, `/health` answers within
a quarter of a second, and what becomes of the body is said in its path's own format."""

import base64
import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import msgspec
import pytest

from hostile import (
    ASKING,
    BATCH,
    CHAT,
    COUNT,
    FEEDBACK,
    MESSAGES,
    RESPONSES,
    ROUTE,
    SIZE,
    Target,
    asking,
    filled,
    member,
    question,
    target,
)
from turnout.core.errors import Refused
from turnout.models.wire.format import TEXT_BYTES
from turnout.web.structure import ESCAPES, PIECE_BYTES, VALUES, check_structure

SILENCE_S = 0.25
# The machine does other things, too: what is slow by itself is slow in each of these.
TRIES = 3
PATHS = {CHAT: "chat", MESSAGES: "messages", RESPONSES: "responses", COUNT: "count"}
# Two thirds of what is taken: the rest of a body is the escapes or the bytes of its characters.
TEXT = 11_000_000


class Case(NamedTuple):
    id: str
    path: str
    body: Callable[[], bytes]
    status: int


def text(path: str, unit: str, characters: int = TEXT) -> bytes:
    """A question that is nothing but the unit, as long as text may be."""
    size = min(characters, TEXT_BYTES * len(unit) // len(unit.encode("utf-8", "replace")))
    said = (unit * (size // len(unit) + 1))[:size]
    if path == ROUTE:
        return msgspec.json.encode({"text": said})
    return question(path, **{"input" if path == RESPONSES else "messages": [{"role": "user", "content": said}]})


def profiled(profile: str, unit: str) -> bytes:
    return text(ROUTE, unit)[:-1] + b',"profile":"%s"}' % profile.encode()


def batch(count: int = 1000, **query: Any) -> bytes:
    return msgspec.json.encode({"queries": [query] * count})


def keys(before: bytes, after: bytes) -> bytes:
    return before + b",".join(b'"%d":1' % number for number in range(2_800_000)) + after


MANY = "".join(map(chr, range(0xA1, 0xD800)))
RESULT = '[{"type":"tool_result","content":['
STRUCTURE = [
    *(Case(f"{name}-empty-parts", path, partial(asking, path, "[", "{}", "]"), 413) for path, name in PATHS.items()),
    *(Case(f"{name}-tools", path, partial(member, path, "tools", "[", "{}", "]"), 413) for path, name in PATHS.items()),
    Case("chat-messages", CHAT, partial(filled, '{"model":"auto","messages":[', '{"role":"user"}', "]}"), 413),
    Case("chat-numbers", CHAT, partial(member, CHAT, "metadata", "[", "1", "]"), 413),
    Case("chat-strings", CHAT, partial(member, CHAT, "metadata", "[", '""', "]"), 413),
    Case("chat-members", CHAT, lambda: keys(question(CHAT)[:-1] + b",", b"}"), 413),
    Case("chat-depth", CHAT, lambda: b"[" * SIZE, 413),
    Case("messages-system", MESSAGES, partial(member, MESSAGES, "system", "[", "{}", "]"), 413),
    Case(
        "messages-results", MESSAGES, partial(asking, MESSAGES, '[{"type":"tool_result","content":[', "[]", "]}]"), 413
    ),
    Case("route-attachments", ROUTE, partial(member, ROUTE, "attachments", "[", '""', "]"), 413),
    Case("route-attachment", ROUTE, lambda: b'{"text":"x","attachments":["' + b"x" * 30_000_000 + b'"]}', 422),
    Case("route-turns", ROUTE, partial(filled, '{"turns":[', '{"role":"user","text":""}', "]}"), 413),
    Case("batch-queries", BATCH, partial(filled, '{"queries":[', "{}", "]}"), 413),
    Case("feedback-unknown", FEEDBACK, partial(member, FEEDBACK, "more", "[", "{}", "]"), 413),
]
NAMES = [
    *(
        Case(f"{name}-model", path, partial(member, path, "model", '"', "m", '"', ""), 400)
        for path, name in PATHS.items()
    ),
    *(
        Case(f"route-{name}", ROUTE, partial(member, ROUTE, name, '"', unit, '"', ""), 422)
        for name, unit in (("profile", "tier"), ("ceiling", "SIMPLE"), ("declared", "\ufdfa"), ("session", "x"))
    ),
    Case("route-unknown-member", ROUTE, partial(filled, '{"text":"a","', "k", '":1}', joint=""), 422),
    Case("batch-profile", BATCH, partial(member, BATCH, "profile", '"', "x", '"', ""), 422),
    Case("batch-ceilings", BATCH, partial(batch, text="a", ceiling="SIMPLE" * 5000), 422),
    Case("feedback-verdict", FEEDBACK, partial(member, FEEDBACK, "verdict", '"', "x", '"', ""), 422),
    Case("feedback-decision", FEEDBACK, partial(member, FEEDBACK, "decision", '"', "x", '"', ""), 422),
    Case("chat-cache-key", CHAT, partial(member, CHAT, "prompt_cache_key", '"', "x", '"', ""), 400),
    Case("responses-previous", RESPONSES, partial(member, RESPONSES, "previous_response_id", '"', "x", '"', ""), 400),
    Case("chat-role", CHAT, lambda: question(CHAT, messages=[{"role": "r" * (SIZE - 200), "content": "a"}]), 400),
]
NUMBERS = [
    Case("chat-digits", CHAT, partial(member, CHAT, "max_completion_tokens", "1", "0", "", ""), 400),
    Case("messages-digits", MESSAGES, partial(member, MESSAGES, "max_tokens", "1", "0", "", "", 1_000_000), 400),
    Case("responses-digits", RESPONSES, partial(member, RESPONSES, "max_output_tokens", "1", "0", "", ""), 400),
    Case("chat-n", CHAT, lambda: question(CHAT)[:-1] + b',"n":1' + b"0" * 400 + b"}", 400),
    Case("chat-nan", CHAT, lambda: question(CHAT)[:-1] + b',"max_tokens":NaN}', 400),
]
TEXTS = [
    *(
        Case(f"{name}-expanding", path, partial(text, path, "\ufdfa"), 200)
        for path, name in {**PATHS, ROUTE: "route"}.items()
    ),
    Case("chat-expanding-too-long", CHAT, partial(asking, CHAT, '"', "\ufdfa", '"', ""), 413),
    Case("route-expanding-too-long", ROUTE, partial(filled, '{"text":"', "\ufdfa", '"}', joint=""), 422),
    Case("chat-escapes", CHAT, partial(asking, CHAT, '"', "\\u0041", '"', ""), 413),
    Case("chat-escapes-that-are-taken", CHAT, partial(asking, CHAT, '"', "\\u0041", '"', "", 6 * ESCAPES - 900), 200),
    Case("chat-newlines", CHAT, partial(text, CHAT, "\n", ESCAPES - 99), 200),
    Case("chat-nul", CHAT, partial(text, CHAT, "\0", ESCAPES - 99), 200),
    Case("chat-ascii", CHAT, partial(text, CHAT, "a ", TEXT_BYTES), 200),
    Case("chat-tags", CHAT, partial(text, CHAT, "<a></a>"), 200),
    Case("chat-mixed-scripts", CHAT, partial(text, CHAT, "р" + "aypal "), 200),
    Case("chat-marks", CHAT, partial(text, CHAT, "a" + "\u0301" * 40), 200),
    Case("chat-every-letter", CHAT, partial(text, CHAT, MANY), 200),
    *(
        Case(f"{profile}-{name}", ROUTE, partial(profiled, profile, unit), 200)
        for profile in ("tiers", "study-seed", "sources", "assist")
        for name, unit in (("words", "and then what is it? "), ("mixed", "р" + "aypal "), ("every-letter", MANY))
    ),
    Case("batch-long-texts", BATCH, partial(batch, text="and then what is it? " * 1500), 200),
    # Each is decided on by itself: more of them take longer and hold no other request up longer.
    Case("batch-expanding", BATCH, partial(batch, 200, text="\ufdfa" * 10_000), 200),
    Case("chat-spaces", CHAT, lambda: b" " * (SIZE - 100) + question(CHAT), 200),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with target(tmp_path_factory.mktemp("work")) as found:
        yield found


CASES = [*STRUCTURE, *NAMES, *NUMBERS, *TEXTS]


@pytest.mark.alike(12)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_body_stops_nobody_else(server: Target, case: Case) -> None:
    body = case.body()
    silence = float("inf")
    for _ in range(TRIES):
        seen = server.send(case.path, body)
        silence = min(silence, seen.silence_s)
        if silence < SILENCE_S:
            break
    print(f"{case.id:34}{len(body) / 1e6:6.1f} MB  {seen.status}  {silence * 1000:6.0f} ms")
    assert seen.status == case.status, seen.answer[:300]
    assert silence < SILENCE_S
    assert seen.grown_bytes < 100 * max(len(body), 1_000_000)
    if seen.status != 200:
        told = json.loads(seen.answer)
        assert (told.get("type") == "error") is (case.path in (MESSAGES, COUNT))
        assert 10 < len(told["error"]["message"]) < 1000


PICTURE = base64.b64encode(bytes(22_500_000)).decode()
FILE = json.dumps([{"id": n, "tags": ["a", "b"], "said": 'a "quoted" \\ word'} for n in range(80_000)])[:5_000_000]


def picture(path: str) -> bytes:
    shown: dict[str, Any] = {
        CHAT: {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}},
        MESSAGES: {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}},
        RESPONSES: {"type": "input_image", "image_url": f"data:image/png;base64,{PICTURE}"},
    }[path]
    return said(path, [{"role": "user", "content": [shown]}])


def said(path: str, messages: list[dict[str, Any]]) -> bytes:
    return question(path, **{"input" if path == RESPONSES else "messages": messages})


def part(path: str) -> dict[str, Any]:
    return {"type": "input_text" if path == RESPONSES else "text", "text": "hi"}


def tools(path: str, count: int) -> bytes:
    shape = {"type": "object", "properties": {f"p{n}": {"type": "string", "enum": ["a", "b"]} for n in range(20)}}
    return question(path, tools=[{"type": "function", "name": f"t{n}", "parameters": shape} for n in range(count)])


TAKEN: dict[str, Callable[[str], bytes]] = {
    "a picture of 30 MB": picture,
    "5,000 messages": lambda path: said(path, [{"role": "user", "content": "hello"}] * 5000),
    "5,000 messages of parts": lambda path: said(
        path,
        [{"role": "user", "content": [{"type": "input_text" if path == RESPONSES else "text", "text": "hi"}] * 3}]
        * 5000,
    ),
    "512 tools": partial(tools, count=512),
    "a JSON file of 5 MB in a string": lambda path: said(path, [{"role": "user", "content": FILE}]),
}
NOT_TAKEN: dict[str, tuple[Callable[[str], bytes], str]] = {
    "5,001 messages": (lambda path: said(path, [{"role": "user", "content": "hello"}] * 5001), "5,000"),
    "513 tools": (partial(tools, count=513), "512"),
}


@pytest.mark.alike(3)
@pytest.mark.parametrize("path", ASKING)
@pytest.mark.parametrize("name", TAKEN)
def test_what_is_large_and_sound_is_taken(server: Target, path: str, name: str) -> None:
    body = TAKEN[name](path)
    seen = [server.send(path, body)]
    while seen[-1].silence_s >= SILENCE_S and len(seen) < TRIES:
        seen.append(server.send(path, body))
    assert seen[-1].status == 200, seen[-1].answer[:300]
    assert seen[-1].silence_s < SILENCE_S


@pytest.mark.parametrize("path", ASKING)
@pytest.mark.parametrize("name", NOT_TAKEN)
def test_one_more_is_refused_by_its_count(server: Target, path: str, name: str) -> None:
    make, limit = NOT_TAKEN[name]
    seen = server.send(path, make(path))
    assert seen.status == 413
    message = json.loads(seen.answer)["error"]["message"]
    assert name.split(maxsplit=1)[0] in message
    assert limit in message


def values(count: int) -> bytes:
    """A JSON text of exactly that many brackets and commas outside strings."""
    return b"[" + b"1," * (count - 1) + b"1]"


class TestStructure:
    @pytest.mark.parametrize("more", [0, 1])
    def test_the_limit(self, more: int) -> None:
        body = values(VALUES + more) + b" " * VALUES
        if not more:
            check_structure(body)
            return
        with pytest.raises(Refused, match=f"{VALUES:,} values"):
            check_structure(body)

    @pytest.mark.parametrize("shift", range(4))
    @pytest.mark.parametrize("inner", ["{", "[", ",", '"{', "\\{", '\\"[', "\\\\,", '\\\\"{', "\n[", "\x00,"])
    def test_what_stands_in_strings_counts_for_nothing(self, inner: str, shift: int) -> None:
        """Wherever the pieces are cut: an escape is never read as two halves."""
        body = msgspec.json.encode({"a": "x" * shift + inner * (2 * PIECE_BYTES), "b": [1, 2]})
        assert sum(map(body.count, (b"{", b"[", b","))) > VALUES
        check_structure(body)
        # The same, and after it more than is taken.
        with pytest.raises(Refused, match=f"{VALUES:,} values"):
            check_structure(b"[" + body + b"," + values(VALUES) + b"]")

    def test_escapes(self) -> None:
        check_structure(b'"' + b"\\n" * ESCAPES + b'"')
        with pytest.raises(Refused, match=f"{ESCAPES:,} escapes"):
            check_structure(b'"' + b"\\n" * (ESCAPES + 1) + b'"')
