"""What a level does not keep is nowhere: not in a table, not in the log of the database, not in the spool before it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from random_text import texts
from stored_decisions import ask, everything, select, stuck
from timing import is_within
from turnout import Decision, Query, Reason, Turn, Verdict
from turnout.core.profile import Part
from turnout.core.query import Reading
from turnout.store import LEVELS, Outcome, Store, open_store
from turnout.store.redact import SNIPPET_CHARACTERS, keep, mask, snippet, writable_json
from turnout.store.row import digest, encode
from turnout.testing import ScriptedLayer, ScriptedNetworkLayer, make_router, place

# Secrets that must never be found, not even six characters of one.
SECRETS = {
    "email": "quokka.wombat@numbat-bilby.example",
    "phone": "+61 491 570 156",
    "card": "4929 1234 5678 9013",
    "openai": "sk-proj-Zx81kQwT93mVbN55",
    "aws": "AKIAQ7W3E9R2T5Y8U1I4",
    "github": "ghp_9vKx2LmQ7wRtY4zN8bJc",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJqYXJyYWgifQ.dGltYmVy",
    "bearer": "Bearer 7hQ2-xWv9.kLp4Zs",
    "password": "password: gr33n-gum-tr33",
    "url": "postgres://koala:eucalyptus@db.internal/x",
    "key": "-----BEGIN PRIVATE KEY-----\nMIIBVgIBADANBgkqhkiG9w0B\n-----END PRIVATE KEY-----",
}
# Words that only a level that keeps the text may show.
WORDS = {
    "question": "MURRUMBIDGEE",
    "end": "WOOLLOOMOOLOO",
    "turn": "COONABARABRAN",
    "part": "GUNDAGAIROAD",
    "then": "TALLANGATTA",
    "reason": "WANGARATTAN",
    "explained": "BENALLASTREET",
    "fault": "YACKANDANDAH",
    "reply": "MULLUMBIMBY",
    "extra": "INDOOROOPILLY",
}
SECRET = "; ".join(SECRETS.values())


def runs(secret: str) -> set[str]:
    """Every six characters of a secret's own part; what is no secret in it is left out."""
    said = secret.removeprefix("Bearer ").removeprefix("password: ").removeprefix("postgres://")
    said = said.removesuffix("@db.internal/x").replace("-----BEGIN PRIVATE KEY-----\n", "").split("\n-----END")[0]
    return {said[at : at + 6] for at in range(len(said) - 5)}


def found_in(haystack: str, needles: dict[str, str]) -> set[str]:
    return {name for name, needle in needles.items() if needle in haystack}


def secrets_in(haystack: str) -> set[str]:
    return {name for name, secret in SECRETS.items() if any(run in haystack for run in runs(secret))}


def quoting(layer: type[ScriptedLayer], entry: object) -> ScriptedLayer:
    """A layer whose reasons quote the question, when it judges and when it explains itself."""
    return layer([entry], explain=lambda _: (Reason("quote.explained", f"{SECRET} {WORDS['explained']} {'.' * 90}"),))


def hostile_decision(session: str = "s") -> Decision:
    """One that repeats what it was asked wherever a decision can."""
    said = Verdict(("second",), 0.5, reasons=(Reason("quote.said", f"{'.' * 90} {SECRET} {WORDS['reason']}"),))
    layers = [
        place(ScriptedLayer([ValueError(f"{'.' * 90} {WORDS['fault']} {SECRETS['email']}")]), "broken"),
        place(quoting(ScriptedLayer, said), "sure"),
        place(quoting(ScriptedNetworkLayer, said), "asked"),
    ]

    def split(reading: Reading) -> tuple[Part, ...]:
        part = Query(f"{SECRET} {'.' * 240} {WORDS['part']}", session=reading.query.session)
        return (Part("condition", part, f"{SECRET} {'.' * 240} {WORDS['then']}"), Part("part", part))

    text = f"{WORDS['question']} {'.' * 300} {WORDS['end']} {SECRET}"
    turns = (Turn("user", f"{WORDS['turn']} {SECRET}"), Turn("assistant", SECRET))
    query = Query(text, turns=turns, session=session, attachments=(SECRETS["email"],))
    return asyncio.run(make_router(layers, split=split).route(query))


def write(store: Store) -> Decision:
    decision = hostile_decision()
    store.record(decision)
    store.record(ask(f"{WORDS['end']} is what? {SECRET}", "sources"))
    store.reply(decision, f"{'.' * 300} {WORDS['reply']} {SECRET}")
    extra = {
        "reformulated_question": f"{'.' * 300} {WORDS['extra']} {SECRET}",
        "candidates": [{"text": SECRET, "n": 1}],
    }
    store.settle(decision, Outcome(extra=extra))
    return decision


def files(folder: Path) -> str:
    """The bytes of every file, as text to search."""
    return "".join(path.read_bytes().decode("latin-1") for path in folder.rglob("*") if path.is_file())


class Level(NamedTuple):
    level: str
    words: set[str]
    """Those that are kept."""
    secrets: set[str]


EXPECTED = [
    Level("off", set(), set()),
    Level("hash", set(), set()),
    Level("snippet", {"question"}, set()),
    Level("full", {*WORDS}, {*SECRETS}),
]


@pytest.mark.parametrize("case", EXPECTED, ids=lambda case: case.level)
def test_nothing_survives_that_must_not(store_url: str, tmp_path: Path, case: Level) -> None:
    with open_store(store_url, text=case.level) as store:
        # `end` is the beginning of the second question: at `snippet` that is kept, at the first one's end it is not.
        shown = {*case.words, "end"} if case.words else set()
        with stuck(store_url):
            write(store)
            spooled = files(tmp_path)
        assert found_in(spooled, WORDS) == shown
        assert secrets_in(spooled) == case.secrets
        assert store.flush()
        assert store.counts().committed >= 8
        stored = everything(store_url)
        assert found_in(stored, WORDS) == shown
        assert secrets_in(stored) == case.secrets
        assert found_in(files(tmp_path), WORDS) <= shown
        assert secrets_in(files(tmp_path)) <= case.secrets
    # Closed: the log of the database is folded into its file.
    assert secrets_in(files(tmp_path)) <= case.secrets
    assert found_in(files(tmp_path), WORDS) <= shown


@pytest.mark.parametrize("level", ["off", "hash", "snippet"])
def test_only_sentences_go(store_url: str, level: str) -> None:
    """Codes, routes, numbers and the trace stay as they were."""
    with open_store(store_url, text=level) as store:
        decision = write(store)
        found = store.records().get(decision.id)
        body, whole = found.to_dict(), decision.to_dict()
        assert blanked(body) == blanked(whole)
        codes = [
            reason["code"] for part in whole["parts"] for step in part["trace"] for reason in step.get("reasons", ())
        ]
        assert {"quote.said", "quote.explained"} <= {*codes, *(one["code"] for one in whole["parts"][0]["reasons"])}
        outcome = store.records().outcome(decision.id)
        assert outcome is not None
        assert outcome.extra["candidates"][0]["n"] == 1
        assert (found.asked, found.kept) == (None, level)
        # A person who looks with nothing of ours sees why, in words or in codes.
        reasonings = [reasoning for (reasoning,) in select(store_url, "select reasoning from router_decisions")]
        assert all(reasonings)
        assert ("split.parts" in reasonings) == (level != "snippet")


def blanked(form: Any) -> Any:
    """A decision's JSON form without its texts."""
    if isinstance(form, dict):
        return {key: "" if key in ("text", "then") else blanked(value) for key, value in form.items()}
    return [blanked(one) for one in form] if isinstance(form, list) else form


class TestDigest:
    KEY, OTHER = b"k" * 32, b"l" * 32

    def test_equal_for_equal_text_and_for_nothing_else(self) -> None:
        asked = [
            (text, tenant, key)
            for text in ("a", "b", "")
            for tenant in ("", "x", "xa")
            for key in (self.KEY, self.OTHER)
        ]
        digests = [digest(*one) for one in asked]
        assert digests == [digest(*one) for one in asked]
        assert len(set(digests)) == len(asked)
        assert {len(one) for one in digests} == {32}

    @given(st.text(), st.text(st.characters(exclude_characters="\0")))
    def test_text_and_tenant_cannot_be_confused(self, text: str, tenant: str) -> None:
        assert digest(text, tenant, self.KEY) != digest(tenant + text, "", self.KEY) or not tenant

    def test_hostile(self) -> None:
        assert digest("\ud800", "\ud800", self.KEY) != digest("\udfff", "\ud800", self.KEY)

    @pytest.mark.parametrize(("level", "counted"), [("off", 0), ("hash", 3), ("snippet", 3), ("full", 0)])
    def test_in_a_store(self, opened: Callable[..., Store], level: str, counted: int) -> None:
        """Three of four questions differ: the same text of one tenant is the same, of another it is not."""
        store = opened(text=level)
        for text, tenant in (("Define x", "a"), ("Define x", "a"), ("Define y", "a"), ("Define x", "b")):
            store.record(ask(text, tenant=tenant))
        found = [one.digest for tenant in "ab" for one in store.records(tenant).decisions()]
        assert len({one for one in found if one is not None}) == counted

    def test_every_store_has_a_key_of_its_own(self, tmp_path: Path) -> None:
        found = []
        for name in ("one", "one", "two"):
            with open_store(f"{tmp_path}/{name}.db", text="hash") as store:
                store.record(decision := ask())
                found.append(store.records().get(decision.id).digest)
        assert found[0] == found[1] != found[2]


class TestLevels:
    def test_there_are_four(self) -> None:
        assert LEVELS == ("off", "hash", "snippet", "full")

    @pytest.mark.parametrize("level", LEVELS)
    def test_one_row_of_each(self, opened: Callable[..., Store], level: str) -> None:
        text = "Define entropy for quokka@example.org and for everybody else who asks, please: " + "x" * 300
        store = opened(text=level)
        store.record(decision := ask(text))
        found = store.records().get(decision.id)
        shown = "Define entropy for [email] and for everybody else who asks, please: "[:60]
        assert found.question == {"full": text, "snippet": shown}.get(level)
        assert found.kept == level
        assert (found.digest is None) == (level in ("off", "full"))

    def test_the_level_is_the_rows_own(self, opened: Callable[..., Store]) -> None:
        for level in LEVELS:
            with opened(text=level) as store:
                store.record(ask("Define entropy"))
        with opened() as store:
            found = {one.kept: one.question for one in store.records().decisions()}
        assert found == {"off": None, "hash": None, "snippet": "Define entropy", "full": "Define entropy"}


class TestSnippet:
    @given(texts())
    def test_short_and_writable(self, text: str) -> None:
        shown = snippet(text)
        assert len(shown) <= SNIPPET_CHARACTERS
        assert "\0" not in shown
        shown.encode()  # no lone surrogate

    @given(texts(), st.sampled_from(LEVELS))
    def test_every_level_keeps_at_most_the_text(self, text: str, level: Any) -> None:
        shown = keep(text, level)
        assert shown is None or level in ("snippet", "full")

    @pytest.mark.parametrize("filler", ["word ", "f" * 40 + " "], ids=["words", "what is masked and so grows short"])
    @pytest.mark.parametrize("secret", ["email", "phone", "card", "openai", "github", "jwt"])
    def test_a_secret_at_the_edge(self, filler: str, secret: str) -> None:
        """Cut in two it looks like nothing: wherever it stands, six characters of it are never shown."""
        for at in range(260):
            before = (filler * 60)[:at].rstrip() + " "
            assert secrets_in(snippet(f"{before}{SECRETS[secret]} and so on")) == set(), at


class Mask(NamedTuple):
    text: str
    masked: str


MASKED = [
    Mask("mail jo.do+x@mail.example.org today", "mail [email] today"),
    Mask("an Jürgen.Groß@exämple.de.", "an [email]."),
    Mask("call 555-0199", "call [phone]"),
    Mask("call +1 (415) 555-0132 now", "call [phone] now"),
    Mask("(020) 7946 0958", "[phone]"),
    Mask("06 12 34 56 78 ou 06.12.34.56.78", "[phone] ou [phone]"),
    Mask("mi número: 612 345 678", "mi número: [phone]"),
    Mask("5551234567", "[phone]"),
    Mask("+4915112345678,", "[phone],"),
    Mask("card 4111 1111 1111 1111 exp 12/27", "card [number] exp 12/27"),
    Mask("4111-1111-1111-1111", "[number]"),
    Mask("378282246310005", "[number]"),
    Mask("IBAN DE89 3704 0044 0532 0130 00 please", "IBAN [number] please"),
    Mask("key sk-proj-Abc123defGHI456!", "key [key]!"),
    Mask("sk_live_4eC39HqLyjWDarjtT1zdp7dc", "[key]"),
    Mask("ghp_16C7e42F292c6912E7710c838347Ae178B4a", "[key]"),
    Mask("AKIAIOSFODNN7EXAMPLE", "[key]"),
    Mask("glpat-1234567890abcdefghij xoxb-123456789012-abc", "[key] [key]"),
    Mask("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc", "[token]"),
    Mask("Authorization: Bearer abc123.def-456", "Authorization: bearer [token]"),
    Mask("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic [token]"),
    Mask("my password is hunter2.", "my password is [secret]"),
    Mask("API_KEY=abcdef", "API_KEY=[secret]"),
    Mask("at postgres://me:s3cret@db/x", "at postgres://[secret]@db/x"),
    Mask("9e107d9d372bb6826bd81d3542a419d6", "[token]"),
    Mask("-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY----- x", "[key] x"),
    Mask("-----BEGIN PRIVATE KEY-----\nMIIE cut off", "[key]"),
]
# What is no secret and stays: numbers of every day, and words that begin like a key.
KEPT = [
    *("in 1999", "1939-1945", "2019 2020 2021", "from 2024-10-12 to 2024-11-03", "12.10.2024", "on 2024-10-12 14:30"),
    *("$1,299,000.00", "1 299 000 euros", "1.299.000", "€ 12345678", "3.14159265358979", "6.02214076e23", "99.9 %"),
    *("python 3.11.12", "v10.15.17", "Chrome 126.0.6478.127", "192.168.100.200", "10.0.0.1:8080"),
    *("ISBN 978-3-16-148410-0", "ISBN 9783161484100", "ISBN 0-306-40615-2"),
    *("port 65536", "page 12345678", "10000000 rows", "1,234,567,890 people", "RFC 9110", "a b c 1 2 3 4 5 6"),
    *("skeletonization", "sky-high-expectations", "sk-learn-pipelines", "hf transformers", "bearer certificates"),
    *("me@home", "@mention", "a @ b", "user@", "https://example.org/a:b@c", "secrets of the universe", "passwordless"),
    *("", " ", "👩‍💻", "what is entropy?"),
]
# What is taken by mistake, and why that is accepted: a long number without a shape may be anybody's.
MISTAKEN = [
    Mask("1700000000", "[phone]"),
    Mask("1700000000000", "[number]"),
    Mask("version 10.15.17.2021", "version [phone]"),
    Mask("the secret is to listen", "the secret is [secret] listen"),
    Mask("commit da39a3ee5e6b4b0d3255bfef95601890afd80709", "commit [token]"),
]


class TestMask:
    @pytest.mark.parametrize("case", [*MASKED, *MISTAKEN], ids=lambda case: case.text[:30])
    def test_masked(self, case: Mask) -> None:
        assert mask(case.text) == case.masked

    @pytest.mark.parametrize("text", KEPT)
    def test_kept(self, text: str) -> None:
        assert mask(text) == text

    @pytest.mark.parametrize("name", SECRETS)
    @pytest.mark.parametrize("around", ["{}", "x {} y", "«{}»", "({}).", "a,{},b", '"{}"'])
    def test_wherever_it_stands(self, name: str, around: str) -> None:
        assert secrets_in(mask(around.format(SECRETS[name]))) == set()

    @given(texts())
    def test_total_and_done_once(self, text: str) -> None:
        once = mask(text)
        assert mask(once) == once
        once.encode()  # no lone surrogate

    def test_linear(self) -> None:
        """No pattern may go back over what it has read: a megabyte of what each one begins with."""
        for text in ("1 " * 500_000, "a.b" * 300_000, "sk-" * 300_000, "eyJ" * 300_000, "-----BEGIN " * 90_000):
            mask(text)


@pytest.mark.parametrize(
    "text",
    ["\0", "\\u0000", "\\\0", "\\\\u0000", "\\\\\0", "a\0\\u0000\0b", "\\" * 7 + "\0", "\ud800\0\\"],
    ids=range(8),
)
def test_a_nul_is_replaced_and_what_only_looks_like_one_is_not(text: str) -> None:
    wanted = text.replace("\0", "\ufffd").replace("\ud800", "\ufffd")
    assert msgspec.json.decode(encode({"a": [text]})) == {"a": [wanted]}
    if "\ud800" not in text:
        assert msgspec.json.decode(writable_json(msgspec.json.encode([text]))) == [wanted]


def test_millions_of_nuls_take_no_longer_than_other_characters() -> None:
    text = "\0\\" * 1_000_000
    assert is_within(0.5, lambda: encode(Query(text)))
