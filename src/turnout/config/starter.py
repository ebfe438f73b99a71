"""Writes a first profile, as TOML with comments.

There are two: one for a trained student, with a route for each label and a fallback, and a small help desk that decides
by words alone, as an example to change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .write import toml_comment, toml_key, toml_text, toml_value

STUDENT = "student"
"""The id of the layer that is trained."""
OTHER = "other"
"""The fallback's route, unless one of the labels is to be the fallback."""
# Just above even odds, the most that a student says of a question unlike its examples. With 5 to 20 rows for each of 5
# to 77 labels of Banking77 this gate loses 0 to 7 points of correct answers and holds back nine in ten of the CLINC150
# questions that belong to no route (0.6: 0 to 12 points, nineteen in twenty).
GATE = 0.51

_HEAD = """\
#   turnout route "a question" -p {name}        decides one
#   turnout explain "a question" -p {name}      draws how, and what would change it
#   turnout check {name} --cases                finds every mistake and runs the golden cases
#
# Help while you type: run `turnout schema -o profile.schema.json`, then make this the first line of the file:
#   #:schema ./profile.schema.json
# Lines that begin with `# ` and a key are options, to uncomment."""

_DECLARED = """\
# 1. A caller may name a route; that settles it.
[[layers]]
id = "declared"
kind = "declared.v1"
"""

_RULES = """\
# 2. What must hold whatever the layers below say. The first rule that matches decides.
# [[layers]]
# id = "rules"
# kind = "rules.v1"
#
# [[layers.rules]]
# id = "sure"
# route = {route}
# when = {{ any = ["a phrase", "one phrase|with its forms"], none = ["but not with this one"] }}
# text = "how people read it"
"""

_OPTIONS = """\
# model = "small"           # the model slot that answers
# history = true            # send earlier turns; history_turns = 2 says how many
# retrieval = true          # look something up first
# sources = ["handbook"]    # where to look
# max_sentences = 3         # how long the answer may be
# instruction = "Answer in one paragraph.\""""


def choose_fallback(labels: Sequence[str], asked: str | None = None) -> tuple[tuple[str, ...], str]:
    """The routes, and the fallback among them: as asked, else `other`, which is added if it is not a label."""
    if asked is not None:
        return (tuple(labels) if asked in labels else (*labels, asked)), asked
    named = next((label for label in labels if label.casefold() == OTHER), None)
    return (tuple(labels), named) if named is not None else ((*labels, OTHER), OTHER)


def student_profile(
    name: str, labels: Sequence[str], *, fallback: str | None = None, gate: float = GATE, source: str = ""
) -> str:
    """A profile whose layer is a student trained on these labels."""
    routes, least = choose_fallback(labels, fallback)
    lines = [
        toml_comment(f"Learnt from {source} by turnout init." if source else "Learnt from examples."),
        "#",
        _HEAD.format(name=name),
        f"name = {toml_text(name)}",
        f"description = {toml_text(f'learnt from {source}' if source else 'learnt from examples')}",
        f"routes = {toml_value(routes)}",
        "# ordered = true       # the routes stand from cheapest to most expensive: a caller may be given a ceiling",
        f'# cases = "{name}.cases.jsonl"    # golden cases: questions with the route each must get',
        "",
        "# Where a question goes that the student does not know, or is not sure about.",
        f"fallback = {{ route = {toml_text(least)}, confidence = 0.5 }}",
        "",
        _DECLARED,
        _RULES.format(route=toml_text(routes[0])),
        "# 3. The student: turnout train learns anew, turnout student promote lets the better one serve.",
        "[[layers]]",
        f"id = {toml_text(STUDENT)}",
        'kind = "student.v1"',
        "# How sure it must be to be right; what is below goes to the fallback.",
        f"accept = {{ confidence = {gate} }}",
        "",
        *_policies(routes),
    ]
    return "\n".join(lines)


def _policies(routes: Sequence[str]) -> Iterator[str]:
    yield "# What each route means to the program that acts on the decision. A key that is left out is not governed."
    for number, route in enumerate(routes):
        yield f"[policy.{toml_key(route)}]"
        if number == 0:
            yield _OPTIONS
        yield ""


WORDS: Mapping[str, Sequence[str]] = {
    "general": ("opening hours", "office|offices", "address"),
    "billing": ("refund|refunds", "invoice|invoices", "charged", "payment|payments"),
    "technical": ("crash|crashes|crashed", "error|errors", "login|log in", "update|updates"),
}
"""The routes of the small help desk and the words for each."""

CASES: Sequence[Mapping[str, Any]] = (
    {"id": "general-1", "text": "What are your opening hours?", "route": "general"},
    {"id": "general-2", "text": "Do you have an office in Lisbon?", "route": "general"},
    {"id": "billing-1", "text": "I was charged twice this month", "route": "billing"},
    {"id": "billing-2", "text": "Where can I download my invoice?", "route": "billing"},
    {"id": "technical-1", "text": "The app crashes when I open a photo", "route": "technical"},
    {"id": "technical-2", "text": "I get an error message at every login", "route": "technical"},
)


def words_profile(name: str, cases: str) -> str:
    """A small help desk that decides by words alone."""
    routes = tuple(WORDS)
    lines = [
        "# A small help desk, to look at and to change.",
        "#",
        _HEAD.format(name=name),
        f"name = {toml_text(name)}",
        'description = "describe in one sentence what is decided here"',
        f"routes = {toml_value(routes)}",
        f"cases = {toml_text(cases)}",
        "",
        "# When no layer is sure. Choose the route that does least harm.",
        f"fallback = {{ route = {toml_text(routes[0])}, confidence = 0.5 }}",
        "",
        _DECLARED,
        _RULES.format(route=toml_text(routes[0])),
        "# 3. Words that speak for a route. `refund|refunds` is one phrase with its forms; case does not matter.",
        "#    With a hundred labelled questions a student knows more: turnout init NAME --from FILE.",
        "[[layers]]",
        'id = "words"',
        'kind = "signals.v1"',
        "# A verdict below either number is held back, and the fallback decides.",
        "accept = { confidence = 0.65, margin = 0.25 }",
        "",
        *(f"[[layers.signals]]\nid = {toml_text(route)}\nwords = {toml_value(WORDS[route])}\n" for route in routes),
        "# What each list adds to its route. The highest sum wins; two alike are a tie, which passes no gate.",
        "[layers.ranking.sums]",
        *(f"{toml_key(route)} = {{ {toml_key(route)} = 0.6 }}" for route in routes),
        "\n[layers.ranking.routes]",
        *(f"{toml_key(route)} = [{{ add = 1.0, of = {toml_text(route)} }}]" for route in routes),
        "",
        *_policies(routes),
    ]
    return "\n".join(lines)
