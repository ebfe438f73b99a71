"""A starter profile as text: TOML that explains itself, and the examples as its golden cases.

Invariant: what is written loads, and every case that says it must hold does. Both are tried with the engine itself
before anything is written, so a phrase that does not do what was hoped for shows as a measured case, not as a failure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from turnout.core.router import Router
from turnout.text.control import escape_json

from .cases import Case
from .document import from_source
from .propose import Proposal, RouteExample, propose
from .resolve import build
from .write import toml_key, toml_text, toml_value

# A telling phrase alone passes the gate below, a leaning one does too where nothing speaks against it; a telling phrase
# of another route beats a leaning one; two telling phrases of two routes are a tie, which the fallback decides.
TELLING, LEANING = 0.6, 0.3
CONFIDENCE, MARGIN = 0.65, 0.25

DEMONSTRATION = (
    RouteExample("What are your opening hours?", "general"),
    RouteExample("Do you have an office in Lisbon?", "general"),
    RouteExample("I was charged twice this month", "billing"),
    RouteExample("Where can I download my invoice?", "billing"),
    RouteExample("I would like a refund for my last invoice", "billing"),
    RouteExample("The app crashes when I open a photo", "technical"),
    RouteExample("I get an error message at every login", "technical"),
    RouteExample("The login page shows an error", "technical"),
)
"""What a profile without examples of its own is made from: a small help desk."""


class MissedExample(NamedTuple):
    """An example whose words do not lead to its route."""

    example: RouteExample
    decided: str


class Starter(NamedTuple):
    profile: str
    cases: str
    routes: tuple[str, ...]
    proposals: dict[str, Proposal]
    missed: tuple[MissedExample, ...]


def make_starter(name: str, examples: Sequence[RouteExample], cases_file: str) -> Starter:
    """A profile of this name that tells these examples apart as far as their words allow."""
    routes = tuple(dict.fromkeys(example.route for example in examples))
    fallback = routes[0]
    if len(routes) == 1:  # one route leaves nothing to decide: everything else needs somewhere to go
        fallback = "other" if routes[0] != "other" else "another"
        routes = (*routes, fallback)
    proposals = propose(examples, routes)
    profile = "\n".join(_profile(name, routes, fallback, proposals, cases_file))
    router = Router(build(from_source(profile, f"{name}.toml")))
    ids = slugs(routes)
    numbers: Counter[str] = Counter()
    cases: list[Case] = []
    missed: list[MissedExample] = []
    for example in examples:
        numbers[example.route] += 1
        ident = f"{ids[example.route]}-{numbers[example.route]}"
        decided = router.route_sync(example.text).route
        holds = decided == example.route
        why = "" if holds else f"the proposed phrases cannot tell this from {decided}: add one that does, then must"
        cases.append(Case(ident, example.route, text=example.text, must=holds, why=why))
        if not holds:
            missed.append(MissedExample(example, decided))
    lines = "".join(f"{escape_json(msgspec.json.encode(case)).decode()}\n" for case in cases)
    return Starter(profile, lines, routes, proposals, tuple(missed))


def slugs(routes: Iterable[str]) -> dict[str, str]:
    """For each route a name that can stand in a reason code, no two alike, without the dot that its hints have."""
    found: dict[str, str] = {}
    for route in routes:
        base = re.sub(r"[^A-Za-z0-9_-]+", "-", route).strip("-_") or "route"
        slug, number = base, 1
        while slug in found.values():
            number += 1
            slug = f"{base}-{number}"
        found[route] = slug
    return found


def _profile(
    name: str, routes: tuple[str, ...], fallback: str, proposals: dict[str, Proposal], cases_file: str
) -> Iterable[str]:
    ids = slugs(routes)
    yield f"""\
# A starter profile. Every line with a key is in use; lines that begin with `# ` and a key are options, to uncomment.
#
#   turnout check {name}.toml --cases          finds every mistake and runs the golden cases
#   turnout explain "a question" -p {name}.toml   draws how a question is decided, and what would change it
#
# Help while you type: run `turnout schema -o profile.schema.json`, then make this the first line of the file:
#   #:schema ./profile.schema.json
name = {toml_text(name)}
description = "describe in one sentence what is decided here"
routes = {toml_value(routes)}
# ordered = true       # the routes stand from cheapest to most expensive, so a caller may be given a ceiling
cases = {toml_text(cases_file)}

# When no layer is sure. Choose the route that does least harm.
fallback = {{ route = {toml_text(fallback)}, confidence = 0.5 }}
# blank = {{ route = {toml_text(fallback)} }}    # what a blank question gets, without asking any layer

# 1. A caller may name a route; that settles it.
[[layers]]
id = "declared"
kind = "declared.v1"
# aliases = {{ {toml_key(f"{ids[routes[0]]}-questions")} = {toml_text(routes[0])} }}

# 2. What must hold whatever the words below say. The first rule that matches decides.
# [[layers]]
# id = "rules"
# kind = "rules.v1"
#
# [[layers.rules]]
# id = "sure"
# route = {toml_text(routes[0])}
# when = {{ any = ["a phrase", "one phrase|with its forms"], none = ["but not with this one"] }}
# text = "how people read it"

# 3. Words that speak for a route. They were proposed by counting: a phrase in a route's own list is in no example of
#    another route; one in its `.hint` list is in others too, but less often. Take out what is there by chance, add
#    what you know. `refund|refunds` is one phrase with its forms; case and kinds of quotes do not matter.
[[layers]]
id = "words"
kind = "signals.v1"
# A verdict below either number is held back, and the fallback decides.
accept = {{ confidence = {CONFIDENCE}, margin = {MARGIN} }}
"""
    sums: dict[str, list[str]] = {route: [] for route in routes}
    signals = False
    for route in routes:
        for suffix, weight, phrases in _lists(proposals[route]):
            signals = True
            ident = f"{ids[route]}{suffix}"
            sums[route].append(f"{toml_key(ident)} = {weight}")
            yield f"[[layers.signals]]\nid = {toml_text(ident)}\nwords = {toml_value(phrases)}\n"
        if not sums[route]:
            yield f"# No phrase was found for {toml_key(route)}: a signal of its own goes here.\n"
    if not signals:
        yield "signals = []\n"
    yield "# What each list adds to its route. The highest sum wins; two alike are a tie, which passes no gate."
    yield "[layers.ranking.sums]"
    yield from (f"{toml_key(ids[route])} = {{ {', '.join(sums[route])} }}" for route in routes if sums[route])
    yield "\n[layers.ranking.routes]"
    for route in routes:
        terms = f"{{ add = 1.0, of = {toml_text(ids[route])} }}" if sums[route] else ""
        yield f"{toml_key(route)} = [{terms}]"
    yield "\n# What each route means to the program that acts on the decision. A key that is left out is not governed."
    for number, route in enumerate(routes):
        yield f"[policy.{toml_key(route)}]"
        yield from _OPTIONS if number == 0 else ()
        yield ""


def _lists(proposal: Proposal) -> Iterable[tuple[str, float, tuple[str, ...]]]:
    if proposal.telling:
        yield "", TELLING, proposal.telling
    if proposal.leaning:
        yield ".hint", LEANING, proposal.leaning


_OPTIONS = (
    '# model = "small"           # the model slot that answers',
    "# history = true            # send earlier turns; history_turns = 2 says how many",
    "# retrieval = true          # look something up first",
    '# sources = ["handbook"]    # where to look',
    "# max_sentences = 3         # how long the answer may be",
    '# instruction = "Answer in one paragraph."',
)
