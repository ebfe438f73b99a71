"""Golden cases too long for a file of cases: token limits, huge texts, where the tail of a message begins.

Scores and confidences are the published formulas', computed apart from the engine.
"""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from toml_router import unlearnt
from turnout import Decision, Query, Turn

# Words alone decide in the published formula; in `tiers` only a context beyond measure does.
SEED = ("tiers-seed",)
BOTH = ("tiers", "tiers-seed")
# Words in which no keyword of any list occurs, not even inside a word.
FILL = "grey hills lie quiet as rain moves over a wide lake and birds go home "
TRAIN = "\N{TRAIN}"  # two UTF-16 units


def padded(text: str, length: int) -> str:
    """The text and neutral words after it, to exactly this many characters."""
    return (text + " " + FILL * (length // len(FILL) + 1))[: length - 1] + "."


class Long(NamedTuple):
    id: str
    text: str
    route: str
    score: float
    confidence: float
    outcome: str = "S-"
    reason: str = "signals.simpleIndicators"
    profiles: tuple[str, ...] = SEED


LONG = [
    Long("500-tokens", padded("hello", 2003), "SIMPLE", -0.11, 0.789181706522253),
    Long("501-tokens", padded("hello", 2004), "MEDIUM", -0.03, 0.5, "Fl", "signals.tokenCount"),
    Long("500-tokens-utf16", "hello " + TRAIN * 998 + "!", "SIMPLE", -0.11, 0.789181706522253),
    Long("501-tokens-utf16", "hello " + TRAIN * 999, "MEDIUM", -0.03, 0.5, "Fl", "signals.tokenCount"),
    Long("100000-tokens", padded("hello", 400_003), "MEDIUM", -0.03, 0.5, "Fl", "signals.tokenCount"),
    Long("100001-tokens", padded("hello", 400_004), "COMPLEX", -0.03, 0.95, "S-", "override.large-context", BOTH),
    Long(
        "100001-tokens-utf16", "hello " + TRAIN * 199_999, "COMPLEX", -0.03, 0.95, "S-", "override.large-context", BOTH
    ),
    # The first override wins, whatever the words say.
    Long(
        "100001-tokens-proof",
        padded("prove this theorem step by step", 400_004),
        "COMPLEX",
        0.25,
        0.95,
        "S-",
        "override.large-context",
        BOTH,
    ),
    Long(
        "long-proof",
        padded("prove this theorem step by step", 2004),
        "REASONING",
        0.25,
        0.9525741268224334,
        "S-",
        "override.reasoning",
    ),
    Long(
        "long-build",
        padded("build and deploy the database", 2004),
        "COMPLEX",
        0.095,
        0.85,
        "S-",
        "override.complex",
    ),
    # More than 300 UTF-16 units, less than 300 characters.
    Long(
        "300-units",
        "build and deploy the database " + TRAIN * 135,
        "MEDIUM",
        0.015,
        0.5,
        "Fl",
        "signals.imperativeVerbs",
    ),
    Long(
        "301-units",
        "build and deploy the database " + TRAIN * 135 + "!",
        "COMPLEX",
        0.015,
        0.85,
        "S-",
        "override.complex",
    ),
    # No scan window: a word in the middle of any text counts.
    Long(
        "no-window",
        "é " * 50_000 + "prove the theorem" + " é" * 50_000,
        "REASONING",
        0.25,
        0.9525741268224334,
        "S-",
        "override.reasoning",
        ("tiers-seed",),
    ),
]


@pytest.mark.parametrize(
    ("profile", "case"),
    [pytest.param(profile, case, id=f"{profile}-{case.id}") for case in LONG for profile in case.profiles],
)
def test_long_text(profile: str, case: Long) -> None:
    decision = unlearnt(profile).route_sync(case.text)
    assert (decision.route, decision.outcome) == (case.route, case.outcome)
    assert decision.scores["score"] == pytest.approx(case.score, abs=1e-9)
    assert decision.confidence == pytest.approx(case.confidence, abs=1e-9)
    assert case.reason in codes(decision)


def test_large_context_names_its_tokens() -> None:
    decision = unlearnt("tiers").route_sync(padded("hello", 400_004))
    assert decision.reasons[0].text == "large context (100001 tokens) → COMPLEX"


def codes(decision: Decision) -> list[str]:
    return [reason.code for reason in decision.reasons]


PROOF = "prove this theorem step by step"


def head_and_tail(length: int, tail: str) -> str:
    return padded(PROOF, length - len("\n\n" + tail)) + "\n\n" + tail


class Tail(NamedTuple):
    id: str
    user: Callable[[], str]
    cut: bool
    system: str = ""


TAILS = [
    Tail("500-characters", lambda: head_and_tail(500, "3+1"), cut=False),
    Tail("501-characters", lambda: head_and_tail(501, "3+1"), cut=True),
    Tail("tail-499", lambda: head_and_tail(1000, padded("hello", 499)), cut=True),
    Tail("tail-500", lambda: head_and_tail(1000, padded("hello", 500)), cut=False),
    Tail("no-blank-line", lambda: padded(PROOF, 900) + "\n3+1", cut=False),
    Tail("last-blank-line", lambda: head_and_tail(800, "hello") + "\n\n3+1", cut=True),
    Tail("system-role", lambda: head_and_tail(800, "3+1"), cut=False, system="Be kind."),
]


@pytest.mark.parametrize("profile", SEED)
@pytest.mark.parametrize("case", TAILS, ids=lambda case: case.id)
def test_long_message_is_read_at_its_tail(profile: str, case: Tail) -> None:
    system = (Turn("system", case.system),) if case.system else ()
    decision = unlearnt(profile).route_sync(Query(turns=(*system, Turn("user", case.user()))))
    assert decision.route == ("SIMPLE" if case.cut else "REASONING")
    assert ("extract.tail" in codes(decision)) is case.cut


def test_plain_text_is_not_cut() -> None:
    assert unlearnt("tiers-seed").route_sync(head_and_tail(800, "3+1")).route == "REASONING"
