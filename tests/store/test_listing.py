"""Every combination of filters finds what looking at every row finds, whichever statement the store chooses for it."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import pytest

from old_rows import backdate
from stored_decisions import ask
from turnout.core.decision import first_id, new_id
from turnout.store import Logged, Store, TimeSpan, listing
from turnout.store.listing import text_pattern
from turnout.store.records import LogFilter
from turnout.store.redact import writable

ROWS = 160
NOW_MS = 1_790_000_000_000
MANY_ROUTES = tuple(f"route-number-{number}" for number in range(30))


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is rare after a handful of rows."""
    monkeypatch.setattr(listing, "WALKED_FOR_EACH", 1)
    monkeypatch.setattr(listing, "TEXT_ROWS", 25)


def fill(store: Store, chance: random.Random) -> list[Logged]:
    """Rows of every kind, of two tenants; some with more routes than one index takes."""
    words = ("Define entropy", "Straße nach ÖSTERREICH", "100 % of_it!", "zxcv")
    shapes = [ask(word, profile) for word in words for profile in ("study", "tiers")]
    for number in range(ROWS):
        decision, tenant = chance.choice(shapes), chance.choice(("", "acme"))
        routes = MANY_ROUTES if number % 40 == 7 else chance.choice((decision.routes, (decision.route, "other")))
        at = NOW_MS + number * 60_000
        columns: dict[str, Any] = {
            "id": first_id(at) + new_id()[10:],
            "tenant": tenant,
            "key_id": chance.choice(("", "k1", "k2")),
            "session": chance.choice((None, "s1", "s2")),
            "routes": f"[{','.join(chr(34) + route + chr(34) for route in routes)}]",
            "route": routes[0],
            "decided_by": chance.choice(("student", "llm")),
            "outcome": chance.choice(("E-", "L-", "Lt", "Fl")),
        }
        backdate(store, decision, at, **columns)
        if number % 9 == 0:
            records = store.records(tenant)
            for verdict in chance.choice((("right",), ("wrong",), ("right", "wrong"))):
                records.judge(columns["id"], verdict, by="me")  # type: ignore[arg-type]
    return [row for tenant in ("", "acme") for row in store.records(tenant).decisions()]


OPTIONS: dict[str, tuple[Any, ...]] = {
    "profile": ("study", "tiers", "none"),
    "by": ("student", "llm", "nobody"),
    "route": ("other", "SIMPLE", MANY_ROUTES[29], "othe"),
    "outcome": ("L?", "?t", "Fl", "??"),
    "session": ("s1", "s3"),
    "key": ("k1", "", "k3"),
    "verdict": ("right", "wrong"),
    "contains": ("ENTROPY", "strasse", "österreich", "%", "_", "!", "x"),
    "span": (TimeSpan(NOW_MS + 3_000_000, NOW_MS + 6_000_000), TimeSpan(NOW_MS + 8_000_000)),
}


def is_like(row: Logged, verdicts: dict[str, str], wanted: dict[str, Any]) -> bool:
    """The filters, said in the plainest way."""
    said = {
        "profile": lambda value: row.profile == value,
        "by": lambda value: row.by == value,
        "route": lambda value: value in row.routes,
        "outcome": lambda value: all(want in ("?", have) for want, have in zip(value, row.outcome, strict=True)),
        "session": lambda value: row.session == value,
        "key": lambda value: row.key_id == value,
        "verdict": lambda value: verdicts.get(row.id) == value,
        "contains": lambda value: value.casefold() in (row.question or "").casefold(),
        "span": lambda value: value.since_ms <= row.created_ms < value.until_ms,
    }
    return all(said[name](value) for name, value in wanted.items())


@pytest.mark.alike(2)
@pytest.mark.usefixtures("narrow")
def test_every_combination(store: Store) -> None:
    chance = random.Random(11)
    rows = sorted(fill(store, chance), key=lambda row: row.id, reverse=True)
    assert len(rows) == ROWS
    verdicts = {row.id: said[-1].verdict for row in rows if (said := store.records(row.tenant).feedback(row.id))}
    for records, mine in ((store.records("acme"), [row for row in rows if row.tenant]), (store.all_records(), rows)):
        kinds = {(kind.profile, kind.routes, kind.by, kind.outcome, kind.key_id) for kind in records.kinds()}
        short = [row for row in mine if row.routes != MANY_ROUTES]
        assert kinds == {(row.profile, row.routes, row.by, row.outcome, row.key_id) for row in short}
    for _ in range(80):
        wanted = {name: chance.choice(OPTIONS[name]) for name in chance.sample(list(OPTIONS), chance.randint(0, 3))}
        expected = [row for row in rows if is_like(row, verdicts, wanted)]
        for records, mine in (
            (store.records("acme"), [row.id for row in expected if row.tenant == "acme"]),
            (store.all_records(), [row.id for row in expected]),
        ):
            assert [row.id for row in records.decisions(**wanted)] == mine, wanted
            up = records.decisions(**wanted, oldest_first=True)
            assert [row.id for row in up] == mine[::-1], wanted
            one = LogFilter(**wanted)
            if "verdict" not in wanted:
                assert [row.id for row in rows if one.admits(row) and row.id in mine] == mine, wanted
            paged, below = [], "Z"
            while below:
                page = records.page(one, below=below, most=7)
                assert len(page.rows) <= 7
                paged += [row.id for row in page.rows]
                below = page.below
            assert paged == mine, wanted


def test_a_page_of_text_ends_after_so_many_rows(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "TEXT_ROWS", 10)
    store.record(first := ask("the needle"))
    for _ in range(25):
        store.record(ask())
    records, looked = store.records(), 0
    page = records.page(LogFilter(contains="needle"))
    while page.below:
        assert page.rows == ()
        looked += 1
        page = records.page(LogFilter(contains="needle"), below=page.below)
    assert ([row.id for row in page.rows], looked) == ([first.id], 2)


class Pattern(NamedTuple):
    id: str
    contains: str
    pattern: str


@pytest.mark.parametrize(
    "case",
    [
        Pattern("plain", "Entropy", "%entropy%"),
        Pattern("wildcards", "100 %_!", "%100 !%!_!!%"),
        Pattern("not ASCII", "naïve Ökonom", "%na%ve %konom%"),
        Pattern("two letters of one", "STRASSE", "%stra%e%"),
    ],
    ids=lambda case: case.id,
)
def test_patterns(case: Pattern) -> None:
    assert text_pattern(writable(case.contains)) == case.pattern
