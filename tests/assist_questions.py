"""Questions to a documentation assistant, made from pieces: as many as a test needs, each label with its own manner."""

from __future__ import annotations

import random

from turnout.learn.dataset import WEIGHTS, By, Example

LABELS = ("RETRIEVAL", "CODE_GENERATION", "CONVERSATIONAL", "PLATFORM")
TOPICS = (
    *(
        "webhooks",
        "pagination",
        "retries",
        "the gateway",
        "session tokens",
        "rate limiting",
        "vector search",
        "logging",
    ),
    *(
        "the scheduler",
        "batch imports",
        "feature flags",
        "audit trails",
        "the message queue",
        "image resizing",
        "caching",
    ),
    *("role permissions", "the export job", "schema migrations", "time zones", "csv uploads", "the plugin system"),
)
PLACES = (
    "in production",
    "on a laptop",
    "with docker",
    "for a small team",
    "behind a proxy",
    "across regions",
    "in the demo",
    "at night",
)
LANGUAGES = ("python", "typescript", "go", "rust", "java", "bash", "sql")
MANNERS = {
    "RETRIEVAL": (
        *("what is the difference between {a} and {b} {place}", "where do the docs explain {a} {place}"),
        *("which versions support {a} together with {b}", "how does {a} behave when {b} is disabled {place}"),
        *(
            "what are the limits of {a} {place}",
            "is {a} documented anywhere besides {b}",
            "why would {a} conflict with {b}",
        ),
    ),
    "CODE_GENERATION": (
        *("write a {lang} function that tests {a} {place}", "implement {a} in {lang} without touching {b}"),
        *("refactor this {lang} class so that {a} uses {b}", "generate a {lang} script to clean up {a} {place}"),
        *("give me a {lang} unit test covering {a} and {b}", "fix the {lang} snippet that breaks {a} {place}"),
    ),
    "CONVERSATIONAL": (
        *(
            "thanks, that explains {a} nicely",
            "could you say the part about {a} more briefly",
            "ok got it, {a} makes sense now",
        ),
        *("sorry, i meant the bit on {a} and not {b}", "please rephrase your answer about {a} for beginners"),
        *("haha fine, let us move on from {a} to {b}", "great, now shorter and without {a}"),
    ),
    "PLATFORM": (
        *("how many seats does our workspace have left for {a}", "show what we were charged for {a} last month"),
        *("why was the invoice for {a} higher than for {b}", "upgrade the subscription so that it covers {a}"),
        *(
            "when does the trial with {a} expire",
            "change the card we pay {a} with",
            "cancel the team subscription {place}",
        ),
    ),
}


def question(label: str, chance: random.Random) -> str:
    a, b = chance.sample(TOPICS, 2)
    pieces = {"a": a, "b": b, "place": chance.choice(PLACES), "lang": chance.choice(LANGUAGES)}
    return chance.choice(MANNERS[label]).format(**pieces)


def chatter(
    count: int, *, seed: int, by: By = "teacher", sessions: str = "s", label: str | None = None
) -> list[Example]:
    """So many different questions, labels in turn, each in a session of its own."""
    chance = random.Random(seed)
    found: dict[str, Example] = {}
    while len(found) < count:
        own = label or LABELS[len(found) % len(LABELS)]
        text = question(own, chance)
        session = f"{sessions}{seed}-{len(found)}"
        found.setdefault(text, Example(text, own, by, session, weight=WEIGHTS[by], at=seed))
    return list(found.values())
