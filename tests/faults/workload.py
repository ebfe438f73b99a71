"""What a process that will be killed is busy with: decisions of five profiles, each of which can be told again.

A decision's number says everything about it: profile, question, tenant. Its session carries the number into the
database, so a row found there can be held against what routing gives without any store.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

import turnout
import turnout.profiles
from turnout import Decision, Query, Router

PROFILES = ("sources", "tiers", "study", "assist", "claims")
TENANTS = ("", "acme", "globex")
LONGEST = 400
# Every so many decisions also have an outcome, which is acknowledged with them.
SETTLED = 10


class RoutedDecision(NamedTuple):
    """What a decision comes to, parts below it."""

    routes: tuple[str, ...]
    by: str
    parts: tuple[RoutedDecision, ...]


@cache
def router(profile: str) -> Router:
    return turnout.load(profile)


@cache
def corpus(profile: str) -> tuple[str, ...]:
    """The questions of the profile's own cases: compound ones, empty ones, other scripts."""
    file = Path(turnout.profiles.__file__).parent / "cases" / f"{profile}.jsonl"
    texts = (json.loads(row).get("text") for row in file.read_text(encoding="utf-8").splitlines() if row.strip())
    return tuple(text for text in texts if isinstance(text, str) and len(text) <= LONGEST)


def asked(number: int) -> tuple[str, str]:
    """The profile and the question of a decision."""
    profile = PROFILES[number % len(PROFILES)]
    texts = corpus(profile)
    return profile, texts[number // len(PROFILES) % len(texts)]


def decide(worker: str, number: int) -> Decision:
    profile, text = asked(number)
    return router(profile).route_sync(
        Query(text=text, session=f"{worker}-{number}", tenant=TENANTS[number % len(TENANTS)] or None)
    )


@cache
def expected(profile: str, text: str) -> RoutedDecision:
    """What routing gives when nothing is written down."""
    return routed(router(profile).route_sync(text))


def routed(decision: Decision) -> RoutedDecision:
    return RoutedDecision(decision.routes, decision.by, tuple(routed(part) for part in decision.parts))
