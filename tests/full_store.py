"""A store with something in every table, and a look at all of it."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from typing import Any

import psycopg
from msgspec.structs import replace
from psycopg.types.string import TextLoader

from stored_decisions import TABLES, ask, taught
from turnout import Decision, Turn
from turnout.core.decision import first_id, new_id
from turnout.store import Outcome, Store
from turnout.store.cards import CardRow
from turnout.store.keys import Key
from turnout.store.study import StudyTurn

DAY_MS = 86_400_000
COMPOUND = "Will it rain in Paris tomorrow, and who won the game last night?"
KEYS = {"breaches": "decision_id, rule, fact, phase", "store_settings": "name", "profiles": "hash"}
ASKED = "zebra-crossing"


def aged(decision: Decision, days: float, now_ms: int) -> Decision:
    """The same decision, made so many days ago."""

    def ident() -> str:
        return first_id(now_ms - round(days * DAY_MS)) + new_id()[10:]

    # A part is older than its question by a hair, as in life.
    parts = tuple(replace(part, id=ident()) for part in decision.parts)
    return replace(decision, id=ident(), parts=parts)


def belongings(store: Store, decision: Decision, note: str = f"they said {ASKED}") -> None:
    """An outcome that breaks the contract, an answer, and a human's word."""
    tenant = decision.query.tenant or ""
    store.settle(
        decision,
        Outcome(
            "answered",
            slot="main",
            model="modèle-1",
            attempts=2,
            input_tokens=1_000_000_007,
            cost_usd=0.1 + 0.2,
            retrieval=decision.id[-1] in "02468ACEGJMPRTWY",
            elapsed_ms=1 / 3,
            sources=("docs", "新聞"),
            extra={"reformulated_question": f"what is {ASKED}", "classifier_history": 9, "deep": [{"a": None}]},
        ),
    )
    store.reply(decision, f"{ASKED} is elucidated")
    store.records(tenant).judge(decision.id, "wrong", should_be=decision.route, by="ada", note=note)


def fill(store: Store) -> None:
    """Something of everything: tenants, sessions, parts, profiles, a teacher, hostile text."""
    made = [
        ask("show my quota", "assist", session="s", tenant="acme"),
        ask("What is addVar?", "assist", session="s"),
        ask(COMPOUND, "sources", session="Zürich 🚆"),
        ask("And the second one?", "claims", turns=(Turn("user", "hi"), Turn("assistant", "\U0001f600"))),
        ask("nul \0 and lone \ud800 and \\u0000", "study"),
        taught("second", "a taught one", session="t"),
    ]
    for decision in made:
        store.record(decision)
    assert store.flush()
    for decision in made:
        belongings(store, decision)
    store.keys.add(Key("k1", "0" * 64, "a key", "acme", profiles=("study",), may_force=False, budget_usd=0.1))
    store.keys.add(Key("k2", "1" * 64, "another"))
    store.spend(made[0], "k1", 0.1 + 0.2)
    study = store.study("acme")
    session = study.open_session("s", 1)
    study.add(session.id, StudyTurn("0" * 26, "Define entropy", "Disorder.", "standalone_definition", 2))
    study.end(session.id, "Entropy.", 3)
    store.cache.put("result", "acme", "0" * 32, b'{"text": "kept"}', 1, 2**52, 10)
    store.cards.put([CardRow("c1", "It's so.", "historical", "True", "", True, False, 1, '{"id": "c1"}')])
    assert store.flush()


def fill_many(store: Store, count: int, seed: int = 7) -> None:
    chance = random.Random(seed)
    for number in range(count):
        text = f"question {number} {'x' * chance.randint(0, 400)}"
        store.record(ask(COMPOUND if number % 97 == 0 else text, "sources", tenant=chance.choice([None, "acme"])))
    assert store.flush(60)


def tables(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table but the list of migrations, JSON as it was written, read with nothing of ours."""
    opened: Any
    if url.startswith("sqlite"):
        opened = sqlite3.connect(url.removeprefix("sqlite:///"))
    else:
        opened = psycopg.connect(url)
        opened.adapters.register_loader("json", TextLoader)
    with closing(opened) as connection:
        ordered = {name: f"select * from {name} order by {KEYS.get(name, '1')}" for name in TABLES}  # noqa: S608
        return {name: connection.execute(statement).fetchall() for name, statement in ordered.items()}
