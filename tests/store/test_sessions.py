"""Sessions: turns in order, an intent history of at most six, sixty characters each, and the whole questions kept."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stored_decisions import ask, select
from turnout import Turn
from turnout.core.errors import TextNotKept
from turnout.store import Intent, Store

LONG = "Why is entropy said to grow, and what has that to do with the heat death of the universe, if anything?"
assert len(LONG) > 60


def talk(store: Store, count: int, *, session: str = "s", tenant: str = "") -> list[str]:
    """A session of so many questions, each answered; the ids of its decisions."""
    ids = []
    for number in range(count):
        decision = ask(f"Define entropy {number}. {LONG}", "assist", session=session, tenant=tenant)
        store.record(decision)
        store.reply(decision, f"Answer {number}")
        ids.append(decision.id)
    return ids


class TestTurns:
    def test_in_order(self, store: Store) -> None:
        talk(store, 3)
        assert store.records().turns("s") == tuple(
            turn
            for number in range(3)
            for turn in (Turn("user", f"Define entropy {number}. {LONG}"), Turn("assistant", f"Answer {number}"))
        )

    def test_the_last_ones(self, store: Store) -> None:
        talk(store, 3)
        for most, found in ((50, 6), (6, 6), (3, 3), (1, 1), (0, 0), (-1, 0)):
            turns = store.records().turns("s", most=most)
            assert turns == store.records().turns("s")[6 - found :], most

    def test_of_any_role(self, store: Store) -> None:
        decision = ask(session="s")
        store.record(decision)
        store.reply(decision, "looked it up", role="tool")
        assert store.records().turns("s")[-1] == Turn("tool", "looked it up")

    def test_without_a_session_nothing_is_said(self, store: Store, store_url: str) -> None:
        store.record(decision := ask())
        store.reply(decision, "an answer")
        store.flush()
        assert select(store_url, "select * from replies") == []
        assert store.records().turns("") == ()

    def test_parts_are_no_turns(self, store: Store) -> None:
        decision = ask("What is the weather tomorrow and who won the match yesterday?", "sources", session="s")
        store.record(decision)
        assert len(store.records().turns("s")) == len(store.records().intents("s")) == 1


class TestIntents:
    def test_at_most_six_whatever_is_asked(self, store: Store) -> None:
        ids = talk(store, 8)
        for asked in (6, 7, 100, 10**9, 5, 1, 0, -1, -(10**9)):
            found = [intent.decision_id for intent in store.records().intents("s", most=asked)]
            assert found == ids[len(ids) - max(0, min(asked, 6)) :], asked

    def test_six_unless_told(self, store: Store) -> None:
        ids = talk(store, 8)
        assert [intent.decision_id for intent in store.records().intents("s")] == ids[-6:]

    def test_those_before_a_decision(self, store: Store) -> None:
        ids = talk(store, 8)
        assert [intent.decision_id for intent in store.records().intents("s", before=ids[4])] == ids[:4]

    def test_a_topic_is_sixty_characters_and_the_question_is_kept(self, store: Store) -> None:
        for letter in ("x", "é", "😀"):
            store.record(decision := ask(letter * 100, "assist", session=letter))
            (intent,) = store.records().intents(letter)
            assert intent == Intent(decision.route, letter * 60, decision.id)
            assert str(intent) == f'[{decision.route}] "{letter * 60}"'
            assert store.records().get(decision.id).question == letter * 100

    def test_a_decision_without_text_has_an_empty_topic(self, store: Store) -> None:
        store.record(ask("", "assist", session="s"))
        assert [intent.topic for intent in store.records().intents("s")] == [""]


class TestSessions:
    def test_the_last_used_first(self, store: Store) -> None:
        talk(store, 2, session="a")
        talk(store, 1, session="b")
        store.flush()
        first, second = store.records().sessions()
        assert {first.id: first.decisions, second.id: second.decisions} == {"a": 2, "b": 1}
        assert first.last_ms >= second.last_ms
        assert all(one.first_ms <= one.last_ms for one in (first, second))

    def test_limits(self, store: Store) -> None:
        talk(store, 1, session="a")
        talk(store, 1, session="b")
        records = store.records()
        assert [len(records.sessions(most=most)) for most in (2, 1, 0, -1)] == [2, 1, 0, 0]
        assert records.sessions(since_ms=4_000_000_000_000) == []

    def test_per_tenant(self, store: Store) -> None:
        mine, theirs = talk(store, 2, tenant="acme"), talk(store, 3, tenant="other")
        for tenant, ids in (("acme", mine), ("other", theirs), ("", [])):
            records = store.records(tenant)
            assert [intent.decision_id for intent in records.intents("s")] == ids
            assert len(records.turns("s")) == 2 * len(ids)
            assert sum(session.decisions for session in records.sessions()) == len(ids)

    def test_of_any_name(self, store: Store) -> None:
        names = ("", "%", "_", "a'b", "\0", "\ud800\ud800", "?", ":s", "x" * 5000)
        for name in names:
            store.record(decision := ask(session=name))
            store.reply(decision, "an answer")
        records = store.records()
        for name in names:
            assert (len(records.turns(name)), len(records.intents(name))) == (2, 1), name
        assert len(records.sessions()) == len(names)
        for session in records.sessions():
            assert len(records.turns(session.id)) == 2, session
        assert records.turns("another") == ()


class TestLevels:
    @pytest.mark.parametrize("level", ["hash", "off"])
    def test_what_needs_text_says_so(self, opened: Callable[..., Store], level: str) -> None:
        store = opened(text=level)
        talk(store, 1)
        for method, what in ((store.records().turns, "the turns"), (store.records().intents, "the intent history")):
            with pytest.raises(TextNotKept) as caught:
                method("s")
            assert str(caught.value) == (
                f"{what} of a session need text, but it was logged with text = {level!r}: "
                "set text to 'snippet' or 'full' in [store]"
            )
        assert len(store.records().sessions()) == 1

    def test_a_snippet_is_enough_for_the_history(self, opened: Callable[..., Store]) -> None:
        store = opened(text="snippet")
        store.record(decision := ask(LONG, "assist", session="s"))
        store.reply(decision, LONG)
        records = store.records()
        assert [intent.topic for intent in records.intents("s")] == [LONG[:60]]
        assert [turn.text for turn in records.turns("s")] == [LONG[:60]] * 2

    def test_an_empty_session_needs_no_text(self, opened: Callable[..., Store]) -> None:
        store = opened(text="off")
        assert store.records().turns("s") == store.records().intents("s") == ()
