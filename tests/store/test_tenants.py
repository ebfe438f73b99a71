"""A tenant sees its own and nothing else, through every method there is, with every id and session of the others'."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from stored_decisions import Statement, ask, statements, taught, with_model
from turnout import Decision, Verdict
from turnout.config.load import shipped
from turnout.core.errors import StoreError, UnknownDecision
from turnout.store import Outcome, Records, Store, TimeSpan, open_store, sql
from turnout.store.records import LogFilter
from turnout.store.stats import ALWAYS
from turnout.store.store import StoreReader

SESSIONS = ("s", "t")
TEXTS = ("Define entropy", "What is the weather tomorrow and who won the match yesterday?")
PLATFORM = "You are a direct and concise assistant"

Read = Callable[..., Any]

# Every public method of Records, called with somebody's id, somebody's session, or neither. A new method fails a test
# until it has a row.
READS: dict[str, list[Read]] = {
    "get": [
        lambda records, ident: records.get(ident),
        lambda records, ident: records.get(ident[:24]),
        lambda records, ident: records.get(ident[-8:]),
        lambda records: records.get("last"),
    ],
    "parts": [lambda records, ident: records.parts(ident)],
    "judged": [lambda records: records.judged("study", most=100)],
    "decisions": [
        lambda records: list(records.decisions()),
        lambda records, session: list(records.decisions(session=session, oldest_first=True)),
        lambda records, ident: list(records.decisions(above=ident, contains="e")),
        lambda records, ident: list(records.decisions(below=ident, span=TimeSpan(0))),
    ],
    "kinds": [lambda records: records.kinds()],
    "page": [
        lambda records: records.page(LogFilter()).rows,
        lambda records: records.page(LogFilter(outcome="??")).rows,
        lambda records: records.page(LogFilter(verdict="wrong")).rows,
        lambda records, session: records.page(LogFilter(session=session)).rows,
    ],
    "searches": [lambda records: [row for name in shipped() for row in records.searches(name)]],
    "profile": [lambda records: None],  # by hash: see `sees_its_own`
    "contract": [lambda records: None],  # the profile's
    "patterns": [lambda records: None],  # the profile's
    "outcome": [lambda records, ident: records.outcome(ident)],
    "feedback": [lambda records, ident: records.feedback(ident)],
    "judge": [lambda records, ident: records.judge(ident, "right", by="me")],
    "sessions": [lambda records: records.sessions()],
    "turns": [lambda records, session: records.turns(session, most=10_000)],
    "intents": [
        lambda records, session: records.intents(session),
        lambda records, session, ident: records.intents(session, before=ident),
    ],
    "breaches": [
        lambda records, ident: records.breaches(decision=ident),
        lambda records: records.breaches(most=10_000),
    ],
    "rule_counts": [lambda records: records.rule_counts()],
    "checked": [lambda records: records.checked()],
    "stats": [lambda records: records.stats()],
    "traffic": [lambda records: repr(records.traffic(span=ALWAYS, bucket_ms=3_600_000))],
    "labels": [lambda records: list(records.labels())],
}


def calls(read: Read, idents: list[str], sessions: tuple[str, ...]) -> Iterator[dict[str, str]]:
    """What a method is called with: each id and each session, as far as it takes them."""
    wanted = inspect.signature(read).parameters
    for ident in idents if "ident" in wanted else [""]:
        for session in sessions if "session" in wanted else [""]:
            yield {name: value for name, value in (("ident", ident), ("session", session)) if name in wanted}


def test_every_method_has_a_row() -> None:
    public = {name for name, one in inspect.getmembers(Records) if callable(one) and not name.startswith("_")}
    assert public == set(READS)


def test_the_store_itself_reads_nothing_for_nobody() -> None:
    """What is not bound to a tenant tells no row: whose there are, what was counted, and the server's own keys. The
    one exception says so in its name and is the operator's: see test_all_tenants.py."""
    public = {name for kind in (Store, StoreReader) for name in vars(kind) if not name.startswith("_")}
    writing = {"record", "append", "settle", "reply", "spend", "close_account", "flush", "close", "count_hour"}
    assert public == writing | {"records", "all_records", "tenants", "counts", "keys", "cache", "is_strict"} | {
        "cards",
        "study",
    }


class Did(NamedTuple):
    """What one tenant did in its turn."""

    tenant: int
    what: str
    session: str
    text: str
    which: int
    """Which of its own decisions so far, for what is done to one."""


done = st.builds(
    Did,
    st.integers(0, 2),
    st.sampled_from(["record", "record", "record", "taught", "breach", "settle", "reply", "judge"]),
    st.sampled_from(SESSIONS),
    st.sampled_from(TEXTS),
    st.integers(0, 10),
)
_numbers = itertools.count()


class World:
    """What three tenants with names alike have done, and what each may see of it."""

    def __init__(self, store: Store, number: int) -> None:
        self.store = store
        self.names = (f"tenant{number}", f"TENANT{number}", f"tenant{number}%")
        self.marks = tuple(f"mark-{at}-of-{number}" for at in range(3))
        self.made: tuple[list[Decision], ...] = ([], [], [])
        self.replies, self.words, self.outcomes = ([0] * 3 for _ in range(3))

    def do(self, one: Did) -> None:
        at, mine, mark = one.tenant, self.made[one.tenant], self.marks[one.tenant]
        query = {"session": one.session, "tenant": self.names[at]}
        if one.what in ("record", "taught", "breach"):
            if one.what == "taught":
                decision = taught("second", one.text, **query)
            elif one.what == "breach":
                decision = with_model(ask(PLATFORM, "assist", **query), verdict=Verdict(("RETRIEVAL",), 0.9))
            else:
                decision = ask(one.text, "sources", **query)
            self.store.record(decision)
            mine.append(decision)
            return
        if not mine:
            return
        decision = mine[one.which % len(mine)]
        if one.what == "settle":
            told = Outcome(model=mark, slot="main", retrieval=True, cost_usd=1.0, extra={"note": mark})
            self.store.settle(decision.id if one.which % 2 else decision, told, tenant=self.names[at])
        elif one.what == "reply":
            self.store.reply(decision, mark)
            self.replies[at] += 1
        else:
            self.store.records(self.names[at]).judge(decision.id, "wrong", by=mark, note=mark)

    def foreign(self, at: int) -> list[str]:
        """What must not appear in anything the tenant reads."""
        others = [decision for other in range(3) if other != at for decision in self.made[other]]
        ids = [one.id for decision in others for one in (decision, *decision.parts)]
        return [*ids, *(self.marks[other] for other in range(3) if other != at)]

    def check(self) -> None:
        ids = [[one.id for decision in made for one in (decision, *decision.parts)] for made in self.made]
        for at, name in enumerate(self.names):
            records = self.store.records(name)
            self.sees_its_own(records, at, ids[at])
            foreign = self.foreign(at)
            known = [one for others in ids for one in others]
            for method, reads in READS.items():
                for read in reads:
                    for told in calls(read, known, (*SESSIONS, "")):
                        said = self.said(read, records, told)
                        leaked = [one for one in foreign if one in said]
                        assert not leaked, (method, name, told)

    def said(self, read: Read, records: Records, told: dict[str, str]) -> str:
        """All that a call says; an error says what was asked for, and nothing else."""
        try:
            return msgspec.json.encode(read(records, **told)).decode()
        except StoreError as error:
            ident = told.get("ident", "")
            # Of somebody else's id not even the beginning is known to be one.
            mine = any(ident[:24] == one.id[:24] for one in records.labels())
            if not mine and not isinstance(error, UnknownDecision):
                pytest.fail(f"{records.tenant} is told of {ident}: {error}")
            return str(error).replace(ident, "").replace(ident[:24], "")

    def sees_its_own(self, records: Records, at: int, ids: list[str]) -> None:
        made = self.made[at]
        assert [one.id for one in records.decisions(oldest_first=True)] == [decision.id for decision in made]
        assert sorted(label.id for label in records.labels()) == sorted(ids)
        assert records.stats().decisions == sum(session.decisions for session in records.sessions()) == len(made)
        assert sum(one.decisions for one in records.checked()) == len(made)
        asked = {"profile": None, "key_id": None, "above": "", "most": 1000}
        assert {ident for ident, _ in records._read(sql.ASKED, **TimeSpan().values(), **asked)} <= set(ids)
        assert sum(one.count for one in records.rule_counts()) == len(records.breaches(most=10_000))
        if made:
            assert records.stats().latency_us["max"] == max(decision.elapsed_ns for decision in made) / 1000
            assert records.get("last").id == made[-1].id
        turns = [turn for session in SESSIONS for turn in records.turns(session, most=10_000)]
        assert sum(turn.role == "assistant" for turn in turns) == self.replies[at]
        assert len(turns) == len(made) + self.replies[at]
        for ident in ids:
            assert records.get(ident).tenant == records.tenant
        for other in {decision.profile.hash for made in self.made for decision in made}:
            mine = other in {decision.profile.hash for decision in made}
            assert (records.profile(other) is not None) == mine


@pytest.mark.alike(2)
@given(st.lists(done, min_size=2, max_size=12))
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_isolation(store: Store, did: list[Did]) -> None:
    world = World(store, next(_numbers))
    for one in did:
        world.do(one)
    event(f"{sum(map(bool, world.made))} tenants have decisions")
    world.check()


def test_isolation_of_all_that_can_be_done(store: Store) -> None:
    """Each of three tenants does everything, in turn: no example need be lucky to find a leak."""
    world = World(store, next(_numbers))
    for what in ("record", "taught", "breach", "settle", "reply", "judge"):
        for tenant in range(3):
            world.do(Did(tenant, what, SESSIONS[tenant % 2], TEXTS[1], 0))
    world.check()
    for at, name in enumerate(world.names):
        records = store.records(name)
        assert records.feedback(world.made[at][0].id)[0].by == world.marks[at]
        assert records.breaches()
        (spent,) = records.stats().spent
        assert (spent.model, spent.answers) == (world.marks[at], 1)


# An ending only leads to an id, whose decision is then asked for by tenant: what it forgets cannot be seen.
SECTION = [
    one
    for one in statements(Path(sql.__file__).read_text(encoding="utf-8"))
    if one.section == "what a tenant may read" and one.name != "IDS_ENDING"
]


@pytest.mark.parametrize("one", SECTION, ids=lambda one: one.name)
def test_a_leak_would_be_found(one: Statement, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Were a statement to forget whose rows it reads, the world would not pass."""
    forgetful = re.sub(r"(\w+\.)?tenant = :tenant", ":tenant is not null", one.text)
    with open_store(str(tmp_path / "x.db")) as store:
        world = World(store, next(_numbers))
        for what in ("record", "taught", "breach", "settle", "reply", "judge"):
            # A profile that only one of them has used.
            for tenant in range(1 if what == "taught" else 2):
                world.do(Did(tenant, what, SESSIONS[0], TEXTS[1], 0))
        store.flush()
        monkeypatch.setattr(sql, one.name, forgetful)
        with pytest.raises((AssertionError, StoreError, pytest.fail.Exception)):
            world.check()


def test_a_name_is_exact(store: Store) -> None:
    store.record(decision := ask(tenant="acme", session="s"))
    for other in ("", " ", "acme ", "ACME", "acm", "%", "_cme", "acme' or '1'='1", "acme\0", "ａcme"):
        records = store.records(other)
        assert list(records.decisions()) == [], other
        with pytest.raises(UnknownDecision):
            records.get(decision.id)
        assert records.turns("s") == records.intents("s") == ()


def test_no_tenant_is_a_tenant_too(store: Store) -> None:
    store.record(mine := ask())
    store.record(theirs := ask(tenant="acme"))
    assert [one.id for one in store.records().decisions()] == [mine.id]
    assert [one.id for one in store.records("acme").decisions()] == [theirs.id]
    assert store.tenants() == {"": 1, "acme": 1}


def test_an_outcome_cannot_be_told_for_another(store: Store) -> None:
    """Told with a decision in hand it is the decision's tenant's, whatever else is said."""
    store.record(decision := ask(tenant="acme"))
    store.settle(decision, Outcome(slot="main"), tenant="globex")
    assert store.records("acme").outcome(decision.id) == Outcome(slot="main")
    assert store.records("globex").outcome(decision.id) is None
