"""A decision log of one million decisions, to look at the console with.

Every question of the profiles' own cases is really decided, once; a model's double answers where a layer asks one. The
rows of the log are these decisions over and over, with their own ids, days, sessions, keys and words. Days fill up
towards the end, and so does the share that needs no model: what a log looks like after a quarter. All are one tenant's:
more rows cannot be in anybody's way.

    python benchmarks/million.py LOG.db [--rows 1000000] [--days 90]
"""

import argparse
import asyncio
import json
import random
import sys
import time
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from msgspec import Raw
from msgspec.structs import replace

from turnout.config.load import load_profile
from turnout.core.decision import Decision, first_id
from turnout.core.model import Prompt, Reply
from turnout.core.query import Query
from turnout.core.router import Router
from turnout.store import Store, open_store
from turnout.store.row import NOTHING, DecisionRow, OutcomeRow, ProfileRow, Row, contents, decode_row

ROWS, DAYS = 1_000_000, 90
BATCH = 5_000
DAY_MS = 86_400_000
# Shares of the profiles in a log of a gateway with applications beside it; the last is the rare one.
SHARES = {"tiers": 0.62, "sources": 0.18, "study": 0.12, "assist": 0.075, "claims": 0.005}
KEYS = 24
# Questions of a session.
SESSION = 8
# Of decisions: with feedback, and acted on.
JUDGED, ACTED = 0.004, 0.7
RARE_WORDS = ("xylophone", "quaternion", "Zweischläger")
THINGS = ("the invoice", "our harbour", "chapter two", "the kitchen", "a parser", "the quarterly report", "my sister")


class AskingDouble:
    """Answers for every slot: a route of the profile, by the length of what it is asked."""

    def __init__(self, routes: tuple[str, ...]) -> None:
        self.routes = routes

    def has(self, slot: str) -> bool:
        return True

    def is_open(self, slot: str) -> bool:
        return False

    async def ask(self, slot: str, prompt: Prompt, /) -> Reply:
        return Reply(self.routes[len(prompt.user) % len(self.routes)], "double/small", 0.00002)


def decided(name: str) -> list[Decision]:
    """The profile's own cases, decided."""
    routes = load_profile(name, config="").routes
    router = Router(load_profile(name, config="", models=AskingDouble(routes)))
    cases = resources.files("turnout.profiles").joinpath("cases", f"{name}.jsonl").read_text(encoding="utf-8")
    texts = dict.fromkeys(row["text"] for row in map(json.loads, cases.splitlines()) if row.get("text", "").strip())

    async def decide() -> list[Decision]:
        return [await router.route(Query(text)) for text in texts]

    return asyncio.run(decide())


def templates(store: Store, name: str) -> Iterator[list[DecisionRow]]:
    """The rows of each decision, parts included; the profile is written on the way."""
    for decision in decided(name):
        lines = store.journal.encoder.decision(decision)
        yield [row for row in map(decode_row, filter(None, contents(lines))) if isinstance(row, DecisionRow)]


def profile_rows(store: Store, name: str) -> list[Row]:
    profile = load_profile(name, config="", models=AskingDouble(load_profile(name, config="").routes))
    rows = map(decode_row, filter(None, contents(store.journal.encoder.profile(profile))))
    return [row for row in rows if isinstance(row, ProfileRow)]


def one(rows: list[DecisionRow], number: int, at_ms: int, chance: random.Random) -> Iterator[Row]:
    """These rows as if they had been decided then."""
    root = rows[-1] if rows[-1].parent_id is None else rows[0]
    key = f"key{int(KEYS * chance.random() ** 2):09}" if root.profile in ("tiers", "assist") else ""
    session = f"s-{number // SESSION:07}" if chance.random() < 0.8 else None
    word = RARE_WORDS[number // 5_000 % 3] if number % 5_000 == 17 else ""
    words = f" {chance.choice(THINGS)} {number}{' ' * bool(word)}{word}"
    ids = {row.id: f"{first_id(at_ms)}{number:013}{place:03}" for place, row in enumerate(rows)}
    for row in rows:
        ident, parent = ids[row.id], ids.get(row.parent_id or "")
        body = Raw(bytes(row.body).replace(row.id.encode(), ident.encode()))
        question = (row.question or "") + (words if parent is None else "")
        us = row.elapsed_us * chance.lognormvariate(0, 0.5)
        where = {"key_id": key, "session": session, "created_ms": at_ms, "elapsed_us": us}
        yield replace(row, id=ident, parent_id=parent, question=question, body=body, **where)
    if chance.random() < ACTED:
        tokens, cost = chance.randrange(20, 2000), chance.random() * 0.01
        yield OutcomeRow(
            ids[root.id], "", "answered", root.route.lower(), "double/large", 1, tokens, tokens // 2, cost, cost * 4,
            0.00002 if root.teacher else None, None, None, None, chance.random() * 4000, NOTHING, NOTHING, at_ms,
        )  # fmt: skip


def make(path: Path, rows: int, days: int) -> None:
    chance = random.Random(18)
    now = time.time_ns() // 1_000_000
    with open_store(str(path), config="") as store:
        made = {name: list(templates(store, name)) for name in SHARES}
        for name in SHARES:
            store.backend.write(profile_rows(store, name))
        names, weights = list(SHARES), list(SHARES.values())
        batch: list[Row] = []
        judged: list[tuple[str, str]] = []
        for number in range(rows):
            share = number / rows
            # More traffic in the last days than in the first.
            at_ms = now - int(days * DAY_MS * (1 - share) ** 1.5)
            name = chance.choices(names, weights)[0]
            chosen = chance.choice(made[name])
            # Fewer models are asked as the local layers learn.
            if chosen[0].teacher is not None and chance.random() < share * 0.8:
                chosen = chance.choice(made[name])
            new = list(one(chosen, number, at_ms, chance))
            batch += new
            root = next(row for row in new if isinstance(row, DecisionRow) and row.parent_id is None)
            if chance.random() < JUDGED:
                judged.append((root.id, root.tenant))
            if len(batch) >= BATCH or number == rows - 1:
                store.backend.write(batch)
                batch = []
                print(f"\r{number + 1:,}", end="", file=sys.stderr)
        for ident, tenant in judged:
            store.records(tenant).judge(ident, chance.choice(("right", "right", "wrong")), by="benchmark")
    print(file=sys.stderr)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("path", type=Path)
    options.add_argument("--rows", type=int, default=ROWS)
    options.add_argument("--days", type=int, default=DAYS)
    said = options.parse_args()
    if said.path.exists():
        options.error(f"{said.path} is there already")
    began = time.monotonic()
    make(said.path, said.rows, said.days)
    size = said.path.stat().st_size
    print(f"{said.path}: {said.rows:,} decisions, {size / 2**20:,.0f} MiB, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
