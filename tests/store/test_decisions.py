"""What is recorded is what is read: every profile, every kind of text, once, whole, and by any of its names."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import msgspec
import pytest

from random_text import router
from stored_decisions import ask, select, taught
from turnout import Decision, Query, Turn, profile_names
from turnout.core.errors import StoreError, UnknownDecision
from turnout.store import Logged, Store, TimeSpan
from turnout.store import records as records_module
from turnout.testing import hostile_queries

COMPOUND = "What is the weather tomorrow and who won the match yesterday?"
QUESTIONS = ("Define entropy", "Write a function that sorts a list", "How much of my quota is left?", COMPOUND)


def writable(text: str) -> str:
    """What of a text a database can hold, said in the plainest way."""
    return "".join("\ufffd" if letter == "\0" or "\ud800" <= letter <= "\udfff" else letter for letter in text)


def kept(decision: Decision, parent: str | None = None) -> dict[str, Any]:
    """What must be read again of a decision."""
    query = decision.query
    return {
        "id": decision.id,
        "parent_id": parent,
        "tenant": query.tenant or "",
        "session": query.session,
        "profile": decision.profile.name,
        "profile_hash": decision.profile.hash,
        "route": decision.route,
        "routes": decision.routes,
        "confidence": decision.confidence,
        "by": decision.by,
        "outcome": decision.outcome,
        "elapsed_us": decision.elapsed_ns / 1000,
        "question": query.text,
        "digest": None,
        "kept": "full",
    }


def read(found: Logged, like: dict[str, Any]) -> dict[str, Any]:
    return {name: getattr(found, name) for name in like}


class TestRoundTrip:
    @pytest.mark.parametrize("name", profile_names())
    def test_every_profile(self, store: Store, name: str) -> None:
        made = [ask(text, name, session="s") for text in QUESTIONS]
        for decision in made:
            store.record(decision)
        records = store.records()
        for decision in made:
            found = records.get(decision.id)
            assert read(found, kept(decision)) == kept(decision)
            assert found.to_dict() == decision.to_dict()
        assert [found.id for found in records.decisions(oldest_first=True)] == [decision.id for decision in made]

    def test_the_profile_of_the_day_is_kept_beside_it(self, store: Store) -> None:
        for name in profile_names():
            store.record(decision := ask(profile=name))
            resolved = msgspec.json.decode(msgspec.json.encode(router(name).profile.resolved))
            assert store.records().profile(decision.profile.hash) == resolved, name

    def test_what_the_profile_looks_for_is_kept_once(self, store: Store, store_url: str) -> None:
        decision = ask()
        profile = decision.profile
        assert profile.patterns
        for _ in range(2):
            # A version before this one wrote the profile without.
            store.record(decision)
            assert store.flush()
            assert store.records().patterns(profile.hash) == profile.patterns
            store.backend.change("update profiles set patterns = null", {})
            assert store.records().patterns(profile.hash) == ()
            store.journal._profiles.clear()
        assert store.records("another").patterns(profile.hash) == ()

    def test_parts_hang_below_their_question(self, store: Store, store_url: str) -> None:
        whole = ask(COMPOUND, "sources", session="s", tenant="acme")
        assert len(whole.parts) == 2
        store.record(whole)
        records = store.records("acme")
        expected = [kept(part, whole.id) for part in whole.parts]
        assert [read(part, expected[0]) for part in records.parts(whole.id)] == expected
        assert [found.id for found in records.decisions()] == [whole.id]
        assert records.get(whole.parts[0].id).parent_id == whole.id
        assert select(store_url, "select count(*) from decisions where parent_id is null") == [(1,)]

    def test_a_decision_without_parts_has_none(self, store: Store) -> None:
        store.record(decision := ask())
        assert store.records().parts(decision.id) == []

    def test_one_root_row_also_when_recorded_twice(self, store: Store, store_url: str) -> None:
        whole = ask(COMPOUND, "sources")
        for _ in range(3):
            store.record(whole)
            store.flush()
        assert select(store_url, "select id, parent_id from decisions order by id") == [
            *sorted((part.id, whole.id) for part in whole.parts),
            (whole.id, None),
        ]
        counts = store.counts()
        assert (counts.recorded, counts.repeated, counts.rejected, counts.lost) == (3, 6, 0, 0)

    def test_twice_in_one_group(self, store: Store) -> None:
        decision = ask()
        for _ in range(50):
            store.record(decision)
        store.flush()
        assert len(list(store.records().decisions())) == 1
        assert store.counts().repeated == 49

    def test_what_a_model_said_is_kept_apart(self, store: Store) -> None:
        store.record(decision := taught("second"))
        assert store.records().get(decision.id).teacher == "second"
        store.record(local := ask())
        assert store.records().get(local.id).teacher is None


SQL_LOOKING = "'; drop table decisions; -- %s %(tenant)s %% ? ?1 :tenant :id $1 {0} E'\\'' \"x\" /* */"
HOSTILE = {
    "sql": SQL_LOOKING,
    "placeholders": "100% of ?s ask: what is :this, %d, %s or %(that)s?",
    "nul": "a\0b",
    "surrogates": "a \ud800 b \udfff",
    "line ends": "a\u2028b\u2029c\r\nd\x85e",
    "emoji": "👩‍👩‍👧‍👦 what?",
    "right to left": "\u202edefine\u202c שלום",
    "backslashes": "\\u0000 \\ud800 \\\\ \\n \\",
    "one megabyte": "define the page " * 65_536,
}


class TestHostileText:
    @pytest.mark.parametrize("profile", ["study", "sources"])
    def test_a_text_comes_back(self, store: Store, profile: str) -> None:
        made = {name: ask(text, profile, session=text[:50], tenant=text[:50]) for name, text in HOSTILE.items()}
        for decision in made.values():
            store.record(decision)
        for name, text in HOSTILE.items():
            records, decision = store.records(text[:50]), made[name]
            found = records.get(decision.id)
            assert found.question == writable(text), name
            assert (found.session, found.tenant) == (writable(text[:50]), writable(text[:50])), name
            assert [one.id for one in records.decisions(session=text[:50])] == [decision.id], name
            assert [turn.text for turn in records.turns(text[:50])] == [writable(text)], name
        assert store.counts().rejected == 0

    def test_every_hostile_query(self, store: Store) -> None:
        made = [
            router("sources").route_sync(query)
            for query in hostile_queries(("forecast",)).values()
            if not query.ceiling
        ]
        for decision in made:
            store.record(decision)
        assert store.flush()
        counts = store.counts()
        assert (counts.rejected, counts.lost, counts.torn, counts.last_error) == (0, 0, 0, "")
        for decision in made:
            found = store.records(decision.query.tenant or "").get(decision.id)
            assert found.to_dict()["id"] == decision.id

    def test_the_whole_query_is_kept_where_it_says_more_than_its_text(self, store: Store) -> None:
        query = Query(
            turns=(Turn("user", "one\0"), Turn("assistant", "\ud800two"), Turn("user", "and now?")),
            attachments=("image/png", "\udfff", "a\0"),
            declared="RETRIEVAL",
            session="s\ud800",
        )
        store.record(decision := router("assist").route_sync(query))
        found = store.records().get(decision.id)
        assert found.question == "and now?"
        assert found.asked == Query(
            turns=(Turn("user", "one\ufffd"), Turn("assistant", "\ufffdtwo"), Turn("user", "and now?")),
            attachments=("image/png", "\ufffd", "a\ufffd"),
            declared="RETRIEVAL",
            session="s\ufffd",
        )

    def test_a_plain_query_is_not_kept_twice(self, store: Store) -> None:
        store.record(decision := ask(session="s"))
        assert store.records().get(decision.id).asked is None

    def test_the_words_of_an_escape_are_not_taken_for_one(self, store: Store) -> None:
        """A part's text is in the JSON form; `\\u0000` typed by a user is six letters, not a NUL."""
        text = "What does \\u0000 mean and who won the match yesterday?"
        store.record(decision := ask(text, "sources"))
        assert decision.parts
        assert store.records().get(decision.id).to_dict() == decision.to_dict()

    def test_a_nul_inside_the_json_form_can_be_read(self, store: Store, store_url: str) -> None:
        store.record(decision := ask("What does \0\0 mean and who won the match yesterday?", "sources"))
        assert decision.parts
        expected = msgspec.json.decode(decision.json().replace(b"\\u0000", b"\\ufffd"))
        assert store.records().get(decision.id).to_dict() == expected
        assert len(select(store_url, "select reasoning from router_decisions")) == 1

    def test_names_of_any_length(self, store: Store) -> None:
        """PostgreSQL indexes no more than 2,704 bytes: a long name must neither be refused nor stop the others."""
        pick = random.Random(7)
        noise = "".join(pick.choice("abcdefghijklmnopqrstuvwxyz0123456789") for _ in range(9000))
        begun = [letter * 300 for letter in ("x", "é", "😀")]
        names = [name for start in begun for name in (start + noise, start + noise[1:], start[:200])]
        made = {name: ask(session=name, tenant=name) for name in names}
        for decision in made.values():
            store.record(decision)
        for name, decision in made.items():
            assert [found.id for found in store.records(name).decisions(session=name)] == [decision.id]
            assert len(store.records(name).turns(name)) == 1
        assert store.counts().rejected == 0


class TestPaging:
    @pytest.fixture
    def many(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """More rows than fit on two pages, and some of others."""
        monkeypatch.setattr(records_module, "PAGE", 7)
        made = []
        for number in range(17):
            store.record(decision := ask(f"Define entropy {number}", tenant="acme"))
            store.record(ask(tenant="other"))
            made.append(decision.id)
        return made

    def test_newest_first(self, store: Store, many: list[str]) -> None:
        assert [found.id for found in store.records("acme").decisions()] == many[::-1]

    def test_oldest_first(self, store: Store, many: list[str]) -> None:
        assert [found.id for found in store.records("acme").decisions(oldest_first=True)] == many

    @pytest.mark.parametrize("oldest_first", [False, True])
    def test_between_two_ids(self, store: Store, many: list[str], oldest_first: bool) -> None:
        found = store.records("acme").decisions(above=many[2], below=many[14], oldest_first=oldest_first)
        assert sorted(one.id for one in found) == many[3:14]

    @pytest.mark.parametrize("count", [0, 7, 14])
    def test_whole_pages(self, store: Store, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
        monkeypatch.setattr(records_module, "PAGE", 7)
        for _ in range(count):
            store.record(ask())
        assert len(list(store.records().decisions())) == count
        assert len(list(store.records().labels())) == count

    def test_a_page_is_fetched_when_it_is_asked_for(self, store: Store, many: list[str]) -> None:
        reading = store.records("acme").decisions(oldest_first=True)
        assert next(reading).id == many[0]
        store.record(late := ask(tenant="acme"))
        assert [found.id for found in reading] == [*many[1:], late.id]

    def test_labels_come_in_order(self, store: Store, many: list[str]) -> None:
        assert [label.id for label in store.records("acme").labels()] == many

    def test_a_real_page(self, store: Store) -> None:
        decision = ask()
        count = records_module.PAGE + 3
        for number in range(count):
            store.record(msgspec.structs.replace(decision, id=f"{number:026}"))
        assert [int(found.id) for found in store.records().decisions()] == list(range(count))[::-1]


class Filter(NamedTuple):
    id: str
    options: dict[str, Any]
    expected: set[str]


FILTERED = {
    "define": lambda: ask("Define entropy", "study", session="a"),
    "vague": lambda: ask("zxcv qwer", "study", session="b"),
    "code": lambda: ask("hello, Écris CODE: 100 %", "tiers"),
    "multi": lambda: ask(COMPOUND, "sources", session="a"),
    "learned": lambda: taught("second", "something else"),
}
FILTERS = [
    Filter("none", {}, set(FILTERED)),
    Filter("profile", {"profile": "study"}, {"define", "vague"}),
    Filter("no such profile", {"profile": "stud"}, set()),
    Filter("by", {"by": "fallback"}, {"vague"}),
    Filter("by parts", {"by": "parts"}, {"multi"}),
    Filter("route", {"route": "second"}, {"learned"}),
    Filter("second of several routes", {"route": "web"}, {"multi"}),
    Filter("outcome", {"outcome": "L-"}, {"learned"}),
    Filter("first letter", {"outcome": "F?"}, {"vague"}),
    Filter("first letter alone", {"outcome": "F"}, {"vague"}),
    Filter("second letter", {"outcome": "?l"}, {"vague"}),
    Filter("any outcome", {"outcome": "??"}, set(FILTERED)),
    Filter("outcome too long", {"outcome": "F?l"}, set()),
    Filter("session", {"session": "a"}, {"define", "multi"}),
    Filter("contains", {"contains": "ENTROPY"}, {"define"}),
    Filter("contains, another script's case", {"contains": "éCRIS"}, {"code"}),
    Filter("contains a wildcard", {"contains": "%"}, {"code"}),
    Filter("contains nothing", {"contains": ""}, set(FILTERED)),
    Filter("contains what is not there", {"contains": "_"}, set()),
    Filter("two at once", {"profile": "study", "session": "b"}, {"vague"}),
    Filter("contradictory", {"profile": "study", "by": "parts"}, set()),
    Filter("hostile", {"profile": "\0", "by": "\ud800", "session": SQL_LOOKING, "contains": "\0"}, set()),
    Filter("from the beginning", {"span": TimeSpan(0)}, set(FILTERED)),
    Filter("the future", {"span": TimeSpan(4_000_000_000_000)}, set()),
    Filter("long ago", {"span": TimeSpan(0, 1_000_000_000_000)}, set()),
]


def test_every_filter(store: Store) -> None:
    made = {name: make() for name, make in FILTERED.items()}
    for decision in made.values():
        store.record(decision)
    names = {decision.id: name for name, decision in made.items()}
    wrong = {}
    for case in FILTERS:
        for oldest_first in (False, True):
            found = {names[one.id] for one in store.records().decisions(**case.options, oldest_first=oldest_first)}
            if found != case.expected:
                wrong[case.id, oldest_first] = found
    assert wrong == {}


def test_the_end_of_a_span_is_outside_it(store: Store) -> None:
    store.record(decision := ask())
    at = store.records().get(decision.id).created_ms
    spans = {TimeSpan(at, at + 1): 1, TimeSpan(at, at): 0, TimeSpan(at + 1): 0, TimeSpan(0, at): 0}
    for span, expected in spans.items():
        assert len(list(store.records().decisions(span=span))) == expected, span
        assert len(list(store.records().labels(span=span))) == expected, span
        assert store.records().stats(span=span).decisions == expected, span


class TestGet:
    @pytest.fixture
    def ids(self, store: Store) -> list[str]:
        decision = ask()
        ids = ["01AAAAAAAA0000000000000001", "01AAAAAAAA0000000000000002", "01BBBBBBBB0000000000000003"]
        for ident in ids:
            store.record(msgspec.structs.replace(decision, id=ident))
        store.record(msgspec.structs.replace(ask(tenant="other"), id="01CCCCCCCC0000000000000004"))
        return ids

    class Case(NamedTuple):
        id: str
        piece: str
        expected: str
        """The last letter of the id that is found; else how the error begins."""

    CASES = (
        Case("whole", "01AAAAAAAA0000000000000002", "2"),
        Case("last", "last", "3"),
        Case("beginning", "01BB", "3"),
        Case("beginning in lower case", "01bbbbbbbb0", "3"),
        Case(
            "all but one letter", "01AAAAAAAA000000000000000", "'01AAAAAAAA000000000000000' is the beginning of several"
        ),
        Case("several", "01AA", "'01AA' is the beginning of several ids: write more of it"),
        Case("too short", "01B", "no decision '01B' (see turnout log)"),
        Case("unknown", "01ZZZZZZ", "no decision '01ZZZZZZ'"),
        Case("unknown, whole", "01ZZZZZZZZ0000000000000002", "no decision '01ZZZZZZZZ0000000000000002'"),
        Case("another tenant's", "01CCCCCCCC0000000000000004", "no decision '01CCCCCCCC0000000000000004'"),
        Case("the beginning of another tenant's", "01CCCC", "no decision '01CCCC'"),
        Case("empty", "", "no decision ''"),
        Case("too long", "0" * 5000, "no decision '0000"),
        Case("a wildcard", "01%%%", "no decision '01%%%'"),
        Case("quotes", "' or 1=1 --", 'no decision "\' or 1=1 --"'),
        Case("nul", "01B\0", "no decision '01B\\x00'"),
        Case("surrogate", "\ud800\ud800\ud800\ud800", "no decision '\\ud800"),
    )

    @pytest.mark.usefixtures("ids")
    def test_by_any_name(self, store: Store) -> None:
        for case in self.CASES:
            if len(case.expected) == 1:
                assert store.records().get(case.piece).id.endswith(case.expected), case
                continue
            with pytest.raises(StoreError) as caught:
                store.records().get(case.piece)
            assert str(caught.value).startswith(case.expected), case
            assert len(str(caught.value)) < 200, case

    def test_last_of_nothing(self, store: Store) -> None:
        with pytest.raises(UnknownDecision, match="no decision 'last' of tenant 'acme'"):
            store.records("acme").get("last")

    def test_last_is_a_whole_question(self, store: Store) -> None:
        store.record(whole := ask(COMPOUND, "sources"))
        assert store.records().get("last").id == whole.id


def test_recorded_from_many_threads(opened: Callable[..., Store]) -> None:
    store = opened()
    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda number: _record(store, number), range(400)))
    assert sorted(found.id for found in store.records().decisions()) == sorted(ids)
    counts = store.counts()
    # The profile goes with the first decision, and with those that are on their way at the same time.
    assert 401 <= counts.committed <= 408
    assert (counts.recorded, counts.repeated, counts.lost, counts.rejected) == (400, 0, 0, 0)


def _record(store: Store, number: int) -> str:
    store.record(decision := ask(f"Define entropy {number}"))
    return decision.id
