"""The head that reads terms: what it serves is what was fitted, in bounded time, the same in every process, and it does
not claim to know what it was never shown."""

import json
import random
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from small_student import Words, keep, questions, teach
from timing import is_within
from turnout import load
from turnout.layers import student_model, term_head
from turnout.layers.student import Student
from turnout.layers.student_model import make_student
from turnout.layers.term_head import KEPT, WORD_COUNTS, ZERO, Memo, TermHead, Terms
from turnout.learn.fit import FitSettings, StudentFit, fit, read_terms
from turnout.testing import make_reading
from turnout.text.fold import fold

PLAIN = teach()
MANY = tuple(f"route-{at}" for at in range(12))
SMALL = FitSettings(folds=2)
ASKED = ("where is the", "tell me about the", "how much is a", "show it to me, that", "why is there no", "i lost my")
NAMES = ("parcel", "ticket", "zebra", "opera", "guitar", "soup", "letter", "invoice", "museum", "天気", "ferry", "oven")
OF_MANY = fit([(f"{asked} {name}", route) for name, route in zip(NAMES, MANY, strict=True) for asked in ASKED],
              settings=SMALL)  # fmt: skip
SAID = [text for text, _ in questions()]
TEXTS = st.text() | st.lists(st.sampled_from([*" ".join(SAID).split(), "天気", "?", "\n", "42"])).map(" ".join)


# --- what is served is what was fitted


def score(fitted: StudentFit, texts: list[str]) -> tuple[Any, Any]:
    """The scores and shares of known terms by matrices, from the weights as they are kept."""
    terms = fitted.draft.terms
    assert terms is not None
    read = read_terms(texts, terms)
    weights = (fitted.arrays["table"][:, 1:].astype(np.float64) - ZERO) * fitted.draft.step * WORD_COUNTS
    scores = read.terms @ weights + read.shape @ fitted.arrays["shape"].astype(np.float64) + fitted.arrays["bias"]
    learnt = fitted.arrays["table"][:, 0].astype(float)
    counts = np.maximum(np.asarray(read.known.sum(axis=1)).ravel(), 1.0)
    return scores, (read.known @ learnt) / counts


@pytest.mark.alike(2)
@pytest.mark.parametrize("fitted", [PLAIN, OF_MANY], ids=["few labels", "many labels"])
def test_it_scores_as_the_matrices_do(fitted: StudentFit) -> None:
    trained = fitted.model()

    @settings(max_examples=50, deadline=None)
    @given(TEXTS)
    @example("")
    @example("\ud800 half a character")
    @example("where is my parcel " * 400)
    @example("天" * 9_000)
    def check(text: str) -> None:
        heard = trained.hear(text)
        scores, known = score(fitted, [text])
        # Many labels are added up in float32.
        assert list(heard.scores) == pytest.approx(scores[0].tolist(), abs=1e-6, rel=1e-6)
        assert heard.known == pytest.approx(known[0], abs=1e-9)

    check()


def test_few_labels_and_many_are_added_up_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    few = PLAIN.model()
    for module in (student_model, term_head):
        monkeypatch.setattr(module, "FEW", 0)
    many = make_student(PLAIN.draft, PLAIN.arrays)
    for text in (*SAID, "", "zzz", "where " * 5_000, "天気は?"):
        one, other = few.hear(text), many.hear(text)
        assert isinstance(other.scores, np.ndarray)
        assert list(one.scores) == pytest.approx(other.scores.tolist(), abs=1e-6)
        assert one.known == other.known


def test_a_word_that_was_read_before_says_the_same() -> None:
    """What a word adds is kept, until too many are; then it is worked out again."""
    trained = PLAIN.model()
    first = [trained.judge(text) for text in SAID]
    for at in range(KEPT // 500 + 2):
        trained.judge(" ".join(f"w{at}x{n}" for n in range(500)))
    assert [trained.judge(text) for text in SAID] == first


def test_no_more_is_kept_than_there_is_room_for() -> None:
    kept: Memo[int] = Memo(lambda word: int(word) + 1)
    for number in range(3 * KEPT):
        assert kept[str(number)] == number + 1
        assert len(kept) <= KEPT


def test_what_is_too_long_for_a_word_is_not_kept() -> None:
    kept: Memo[int] = Memo(len)
    assert (kept["w" * 24], kept["w" * 25]) == (24, 25)
    assert list(kept) == ["w" * 24]


# --- without NumPy, and in another process

CHILD = """
import json, sys
if sys.argv[1] == "blocked":
    sys.modules["numpy"] = None
from turnout import load
router = load(sys.argv[2], config="")
said = []
for text in json.loads(sys.argv[3]):
    decision = router.route_sync(text)
    verdict = decision.steps[0].verdict
    layer = router.profile.layers[0].call
    reasons = [*layer.explain(verdict), *layer.elaborate(verdict)] if verdict else []
    said.append([decision.route, decision.by, verdict and [verdict.routes, repr(verdict.confidence), verdict.scores],
                 [[reason.code, reason.text] for reason in reasons]])
assert (sys.modules.get("numpy") is None) or sys.argv[1] != "blocked"
print(json.dumps([router.profile.hash, said]))
"""
PROFILE = """\
name = "taught"
routes = {routes}
fallback = {{ route = "{fallback}" }}

[[layers]]
id = "student"
kind = "student.v1"
model = "kept"
accept = {{ confidence = 0.6 }}
{policies}
"""


def write(folder: Path, fitted: StudentFit) -> Path:
    keep(folder / "kept", fitted)
    routes = list(fitted.draft.labels)
    policies = "\n".join(f"[policy.{route}]" for route in routes)
    text = PROFILE.format(routes=json.dumps(routes), fallback=routes[-1], policies=policies)
    (folder / "taught.toml").write_text(text)
    return folder / "taught.toml"


def ask_child(profile: Path, texts: list[str], *, blocked: bool, seed: str = "0") -> Any:
    ran = subprocess.run(
        [sys.executable, "-c", CHILD, "blocked" if blocked else "free", str(profile), json.dumps(texts)],
        env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path), "HOME": str(profile.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


OTHERS = ["zebras eat opera soup", "¿dónde está mi paquete?", "天気は?", "x" * 5_000, "refund " * 900, "  "]


def name_eight() -> StudentFit:
    """As many labels as plain Python adds up."""
    named = list(zip(NAMES[:8], MANY[:8], strict=True))
    return fit([(f"{asked} {name}", route) for name, route in named for asked in ASKED], settings=SMALL)


@pytest.mark.parametrize(
    "make", [lambda: PLAIN, lambda: teach(Words()), name_eight], ids=["three labels", "with vectors", "eight labels"]
)
def test_up_to_eight_labels_need_no_numpy(make: Any, tmp_path: Path) -> None:
    """Nor does a student of vectors where its embedder is missing; verdicts and reasons are the same to the digit."""
    profile = write(tmp_path, make())
    texts = [*SAID[::9], *(f"{asked} {name}" for asked, name in zip(ASKED, NAMES, strict=False)), *OTHERS]
    without, beside = (ask_child(profile, texts, blocked=blocked) for blocked in (True, False))
    assert without == beside
    assert sum(by == "student" for _, by, _, _ in without[1]) >= len(ASKED)


@pytest.mark.alike(2)
@pytest.mark.parametrize("fitted", [PLAIN, OF_MANY], ids=["few labels", "many labels"])
def test_every_process_says_the_same(fitted: StudentFit, tmp_path: Path) -> None:
    """Words are added up as a set, whose order differs from process to process; the sums are of whole numbers."""
    profile = write(tmp_path, fitted)
    texts = [*SAID[::9], *OTHERS]
    found = [ask_child(profile, texts, blocked=False, seed=seed) for seed in ("0", "1", "7")]
    assert found[0] == found[1] == found[2]
    here = load(profile, config="")
    assert [here.route_sync(text).route for text in texts] == [route for route, *_ in found[0][1]]


@pytest.mark.parametrize("hidden", ["\u200b", "\u00ad", "\u2060", "\ufeff"])
def test_invisible_characters_change_nothing(hidden: str) -> None:
    layer = Student(PLAIN.model())
    for text in SAID[::7]:
        assert layer(make_reading(f"{hidden}{hidden.join(text)}{hidden}")) == layer(make_reading(text))


# --- time


def test_no_more_is_read_than_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    take = TermHead._read
    monkeypatch.setattr(TermHead, "_read", lambda head, text: (read.append(len(text)), take(head, text))[1])
    layer = Student(PLAIN.model())
    terms = PLAIN.draft.terms or Terms()
    for size in (10, 1_000, 10_000, 300_000):
        assert layer(make_reading("where is it " * (size // 12 + 1))) is not None
    assert read[0] < read[1] < read[2] == read[3] == terms.head + terms.tail + 1


MEGABYTE = 1_000_000
WORDS = sorted({word for text in SAID for word in text.split()})
HUGE = {
    "one word": ("a" * MEGABYTE, 0.05),
    "one word again and again": ("parcel " * (MEGABYTE // 7), 0.05),
    "words of the vocabulary": (" ".join(random.Random(1).choices(WORDS, k=MEGABYTE // 5)), 0.05),
    "words never seen": (" ".join(f"w{n}" for n in range(MEGABYTE // 7)), 0.05),
    "signs": ("?!" * (MEGABYTE // 2), 0.05),
    "no spaces between": ("天気予報を教えて" * (MEGABYTE // 24), 0.2),
    "other letters": ("где моя посылка " * (MEGABYTE // 29), 0.2),
    "half characters": ("\ud800" * (MEGABYTE // 3), 0.2),
}


@pytest.mark.parametrize(("text", "seconds"), HUGE.values(), ids=HUGE)
@pytest.mark.parametrize("fitted", [PLAIN, OF_MANY], ids=["few labels", "many labels"])
def test_a_megabyte_is_judged_in_time(fitted: StudentFit, text: str, seconds: float) -> None:
    """Also by a head that has read nothing yet."""
    reading = make_reading(text)
    layer = Student(fitted.model())
    assert layer(reading) is not None
    assert is_within(seconds, partial(layer, reading))

    def judge_first() -> None:
        layer.trained._head._words.clear()  # type: ignore[union-attr]
        layer(reading)

    assert is_within(seconds, judge_first)


# --- what it was never shown


def scramble(seed: int, letters: str, sizes: tuple[int, int] = (2, 9)) -> str:
    chance = random.Random(seed)
    return " ".join("".join(chance.choices(letters, k=chance.randint(2, 8))) for _ in range(chance.randint(*sizes)))


STRANGE = {
    "noise": [scramble(seed, "abcdefghijklmnopqrstuvwxyz") for seed in range(40)],
    "long noise": [scramble(seed, "abcdefghijklmnopqrstuvwxyz", (60, 90)) for seed in range(10)],
    "backwards": [text[::-1] for text in SAID],
    "greek": [scramble(seed, "αβγδεζηθικλμνξοπρστυφχψω") for seed in range(40)],
    "han": [scramble(seed, "天気予報東京大阪名古屋春夏秋冬") for seed in range(40)],
    "arabic": [scramble(seed, "ابتثجحخدذرزسشصضطظعغفقكلمنهوي") for seed in range(40)],
    "numbers": [scramble(seed, "0123456789") for seed in range(40)],
}
TOLD_NOTHING = fit(questions())
"""Without a single question outside every label."""
# What a profile asks for at least (tests and shipped profiles alike).
GATE = 0.6


@pytest.mark.parametrize("texts", STRANGE.values(), ids=STRANGE)
@pytest.mark.parametrize("fitted", [PLAIN, TOLD_NOTHING], ids=["with strangers", "without"])
def test_what_was_never_shown_is_not_answered(fitted: StudentFit, texts: list[str]) -> None:
    trained = fitted.model()
    judged = [trained.judge(fold(text).text) for text in texts]
    assert max(one.confidence for one in judged) < GATE
    assert max(one.near for one in judged) < 0.5


@pytest.mark.parametrize("fitted", [PLAIN, TOLD_NOTHING], ids=["with strangers", "without"])
def test_what_was_shown_is_answered(fitted: StudentFit) -> None:
    trained = fitted.model()
    judged = [trained.judge(text) for text in SAID]
    assert min(one.confidence for one in judged) > GATE
    assert all(one.near == 1.0 for one in judged), "every word and pair of it was learnt"


def test_even_odds_are_the_most_that_is_said_of_noise() -> None:
    """Whatever the curve says: one that is sure of everything is not sure of this."""
    sure = replace(PLAIN.draft.confidence, bias=30.0)
    trained = make_student(replace(PLAIN.draft, confidence=sure), PLAIN.arrays)
    assert trained.judge("where is my parcel").confidence > 0.99
    for texts in STRANGE.values():
        assert {trained.judge(fold(text).text).confidence for text in texts} == {0.5}


def test_words_that_were_learnt_are_told_from_others() -> None:
    """A mark for each word and pair: of those that were not learnt hardly one seems to be."""
    trained = PLAIN.model()
    shares = [trained.hear(f"w{n}q").known for n in range(200)]
    assert PLAIN.arrays["table"][:, 0].sum() < 1_000
    assert sum(shares) / len(shares) < 0.01
