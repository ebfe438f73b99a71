"""Whether a challenger may serve in the champion's place: every reason against it, at once.

Nothing here is a bare "at least as good": what a sample shows is taken for what it proves, a lower bound at the
confidence asked for. A challenger that is as good as the champion on few questions has proven little, and the report
says how many it would take. Each check is a row of the report, also those that passed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from turnout.config.cases import Case, run_cases
from turnout.config.learning import LearnSettings
from turnout.core.errors import QueryError
from turnout.core.query import Query
from turnout.core.router import Router
from turnout.core.verdict import Verdict
from turnout.store.contract import check_decision, decided_rules
from turnout.store.flip import FlipQuestion, measure

from .contest import place_of
from .dataset import OUT_OF_SCOPE, Example
from .layer import GAIN, STUDENT
from .poison.probe import MOST_WORDS, doubtful, new_words, probe
from .poison.screen import ScreenResult
from .shadow import Shadow

# Questions whose histories are tried for flips, and histories for each: some seconds.
FLIP_QUESTIONS, FLIP_HISTORIES = 100, 10
# A recall of nothing is a collapse whatever a test of few questions says.
COLLAPSED_ROWS = 5
# Lines of detail behind a check that failed; the rest is counted.
LISTED = 5


class Check(Struct, frozen=True):
    """A row of the report."""

    check: str
    value: str
    limit: str
    passed: bool
    why: str = ""
    """What it means, and where it failed what to do."""
    setting: str = ""
    """Where the limit is set."""


# Who may change what a check asks for, and where.
GOVERNED = {
    "cross-validated accuracy": "min_accuracy in [learn]",
    "held-out accuracy": "max_loss in [learn]",
    "errors past the gate": "max_loss in [learn]",
    "recall of each label": "max_label_loss in [learn]",
    "golden cases": "cases in the profile",
    "contract": "contract in the profile",
    "flip rate": "RC-03: history changes no route",
    "shadow decisions": "shadow_decisions in [learn]",
    "quarantined rows": "max_quarantined in [learn]",
    "trigger probe": "max_trigger_effect in [learn]",
    "quality kept": "the aim it was trained for: --keep-quality, --budget or --max-cost",
}


class Promotion(Struct, frozen=True):
    """The report, and what came of it."""

    profile: str
    layer: str
    challenger: str
    champion: str
    """The champion it was compared with: a digest, or `shipped`."""
    checks: tuple[Check, ...]
    promoted: bool = False
    forced: bool = False

    @property
    def failed(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if not check.passed)

    @property
    def passed(self) -> bool:
        return not self.failed

    def __str__(self) -> str:
        refused = "; ".join(f"{check.check} {check.value} (limit {check.limit})" for check in self.failed)
        return f"{self.challenger} for {self.profile}/{self.layer}: " + (refused or "every check passed")


class PromotionEvidence(Struct, frozen=True):
    """All that is held against a challenger, or for it."""

    new: Router
    """The profile with the challenger in its place."""
    old: Router | None
    """The same with the champion; None where nothing serves yet."""
    layer: str
    rows: Sequence[Example]
    """Held-out questions: neither model has learnt from them."""
    cases: Sequence[Case] = ()
    screened: ScreenResult | None = None
    """What the poisoning screen said of the rows the challenger learnt from."""
    fresh: Sequence[Example] = ()
    """Rows it learnt from that the champion had not seen."""
    known: Sequence[Example] = ()
    """Rows the champion learnt from."""
    accept: Sequence[str] = ()
    """New words the operator stands behind."""
    cross_validated: tuple[int, int] | None = None
    """Right answers and questions of the cross-validation."""
    shadow: Shadow | None = None
    metrics: Mapping[str, Any] = {}
    """What its manifest says of it."""
    kind: str = STUDENT
    """The kind of layer it would serve in."""


def examine(
    evidence: PromotionEvidence,
    challenger: str,
    champion: str,
    settings: LearnSettings,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Promotion:
    """Every check there is, none left out because another has failed.

    A model of what more expensive routes gain has no labels, so that none of the checks of labels applies: accuracy,
    recall, and what is planted for a label. In their place it must pay; the others hold as ever.
    """
    steps: list[Callable[[], list[Check]]] = [
        lambda: _cases(evidence),
        lambda: [_contract(evidence)],
        lambda: [_flips(evidence)],
        lambda: [_shadow(evidence, champion, settings)],
    ]
    if evidence.kind == GAIN:
        steps = [lambda: [_pays(evidence)], *steps]
    else:
        answers = answer_all(evidence)
        steps = [
            lambda: [_accuracy(evidence, settings)],
            lambda: _against_champion(evidence, answers, settings),
            lambda: _labels(evidence, answers, settings),
            *steps,
            lambda: [_screen(evidence, settings)],
            lambda: [_probe(evidence, settings)],
        ]
    checks: list[Check] = []
    for number, step in enumerate(steps, 1):
        checks += [replace(check, setting=GOVERNED[check.check]) for check in step()]
        progress(number, len(steps))
    return Promotion(evidence.new.profile.name, evidence.layer, challenger, champion, tuple(checks))


# --- answers


class ModelAnswer(NamedTuple):
    label: str | None
    accepted: bool
    """Whether its gate would let it through."""

    @property
    def sure(self) -> str | None:
        """The label, if its gate lets it through."""
        return self.label if self.accepted else None


class ModelAnswers(NamedTuple):
    new: list[ModelAnswer]
    old: list[ModelAnswer] | None


def answer_all(evidence: PromotionEvidence) -> ModelAnswers:
    texts = [row.text for row in evidence.rows]
    new = answerer(evidence.new, evidence.layer)
    old = answerer(evidence.old, evidence.layer) if evidence.old is not None else None
    return ModelAnswers([new(text) for text in texts], [old(text) for text in texts] if old is not None else None)


def answerer(router: Router, layer: str) -> Callable[[str], ModelAnswer]:
    """What the model in a layer's place says of a text, whatever the layers before it would say."""
    placed = place_of(router, layer)
    call, read = placed.call, router.profile.read

    def answer(text: str) -> ModelAnswer:
        said = call(read(Query(text))) if call is not None else None
        if not isinstance(said, Verdict):
            return ModelAnswer(None, False)
        return ModelAnswer(said.routes[0], placed.gate.admits(said))

    return answer


# --- checks


def _pays(evidence: PromotionEvidence) -> Check:
    """More of the quality gap is kept than by sending as many questions to the dear route by lot: a lower bound."""
    low, share = evidence.metrics.get("kept_low"), evidence.metrics.get("cost_share")
    if not isinstance(low, float | int) or not isinstance(share, float | int):
        return Check(
            "quality kept", "unknown", "> the share of the cost", passed=False, why="its manifest does not say"
        )
    why = f"at least {low:.1%} of what the dear route gains, for {share:.1%} of its extra cost"
    return Check("quality kept", f"{low:.1%}", f"> {share:.1%}", low > share, why)


def _accuracy(evidence: PromotionEvidence, settings: LearnSettings) -> Check:
    from .bound import floor_of

    name, limit = "cross-validated accuracy", f"≥ {settings.min_accuracy:.1%}"
    if evidence.cross_validated is None:
        return Check(name, "unknown", limit, passed=False, why="its manifest does not say: train it again")
    right, count = evidence.cross_validated
    if not count:
        return Check(name, "no questions", limit, passed=False, why="nothing was cross-validated: train it again")
    share, floor = right / count, floor_of(right, count, 1 - settings.confidence)
    # The figure is what was asked for; the bound keeps a few lucky questions from reaching it.
    passed = share >= settings.min_accuracy and floor >= settings.min_accuracy - settings.max_loss
    why = f"{right:,} of {count:,}; at {settings.confidence:.0%} confidence at least {floor:.1%}"
    if not passed and share >= settings.min_accuracy:
        why += f", and {settings.min_accuracy - settings.max_loss:.1%} is needed: more labelled questions would tell"
    return Check(name, f"{share:.1%}", limit, passed, why)


def _against_champion(evidence: PromotionEvidence, answers: ModelAnswers, settings: LearnSettings) -> list[Check]:
    """The difference on the same questions: of the labels, and of the errors that a gate lets through."""
    limit = f"≥ {-settings.max_loss:+.1%}"
    if answers.old is None:
        return [Check(name, "no champion", limit, passed=True, why="nothing serves yet") for name, _, _ in _ASPECTS]
    from .bound import compare_paired

    checks = []
    for name, said, is_fine in _ASPECTS:
        # A question for no route has no right label, but letting its answer through is an error all the same.
        at = [i for i, row in enumerate(evidence.rows) if is_fine is not _is_right or row.label != OUT_OF_SCOPE]
        new = [is_fine(answers.new[i], evidence.rows[i]) for i in at]
        old = [is_fine(answers.old[i], evidence.rows[i]) for i in at]
        found = compare_paired(new, old, 1 - settings.confidence)
        passed = found.floor >= -settings.max_loss
        why = (
            f"{found.difference:+.1%} on {found.count:,} questions ({found.wins} better, {found.losses} worse); at "
            f"{settings.confidence:.0%} confidence at least {found.floor:+.1%}"
        )
        if not passed and found.difference >= 0:
            why += ": not shown to be worse, but so few questions prove no more: label more of them"
        elif not passed:
            why += f": {said}"
        checks.append(Check(name, f"{found.floor:+.1%}", limit, passed, why))
    return checks


def _is_right(answer: ModelAnswer, row: Example) -> bool:
    return answer.label == row.label


def _does_no_harm(answer: ModelAnswer, row: Example) -> bool:
    return not answer.accepted or answer.label == row.label


_ASPECTS: tuple[tuple[str, str, Callable[[ModelAnswer, Example], bool]], ...] = (
    ("held-out accuracy", "worse than the champion", _is_right),
    ("errors past the gate", "more wrong answers are let through", _does_no_harm),
)


def _labels(evidence: PromotionEvidence, answers: ModelAnswers, settings: LearnSettings) -> list[Check]:
    """No label's recall may collapse. A label has few questions: it counts against the challenger when the drop is
    larger than the margin and, by the exact test, no accident."""
    name, limit = "recall of each label", f"≥ {-settings.max_label_loss:+.1%}"
    if answers.old is None:
        lost = _collapsed(evidence.rows, answers.new)
        why = "; ".join(lost) or "nothing serves yet; no label is lost"
        return [Check(name, "no champion", limit, passed=not lost, why=why)]
    from .bound import mcnemar

    old = answers.old
    worst, worst_drop = "", 0.0
    failed = _collapsed(evidence.rows, answers.new)
    for label in sorted({row.label for row in evidence.rows} - {OUT_OF_SCOPE}):
        at = [index for index, row in enumerate(evidence.rows) if row.label == label]
        wins = sum(answers.new[i].label == label != old[i].label for i in at)
        losses = sum(old[i].label == label != answers.new[i].label for i in at)
        drop = (losses - wins) / len(at)
        if not worst or drop > worst_drop:
            worst, worst_drop = label, drop
        if drop > settings.max_label_loss and mcnemar(losses, wins) <= 1 - settings.confidence:
            failed.append(f"{label} {-drop:+.1%} ({losses} of {len(at)} lost, {wins} won)")
    value = f"{worst} {0.0 - worst_drop:+.1%}" if worst else "no questions"
    why = "; ".join(dict.fromkeys(failed)) or "no label is found less often beyond chance and the margin"
    return [Check(name, value, limit, passed=not failed and bool(worst), why=why)]


def _collapsed(rows: Sequence[Example], answers: Sequence[ModelAnswer]) -> list[str]:
    there = Counter(row.label for row in rows if row.label != OUT_OF_SCOPE)
    found = Counter(row.label for row, answer in zip(rows, answers, strict=True) if answer.label == row.label)
    return [
        f"{label} is never found, in {count} questions"
        for label, count in sorted(there.items())
        if count >= COLLAPSED_ROWS and not found[label]
    ]


def _cases(evidence: PromotionEvidence) -> list[Check]:
    """The golden cases that must hold, with the challenger in place."""
    must = [case for case in evidence.cases if case.must]
    missed = []
    for case in must:
        try:
            missed += [f"{one.case.id}: {said}" for one in run_cases(evidence.new, (case,)) for said in one.misses[:1]]
        except QueryError as error:
            missed.append(f"{case.id}: refused, {error}")
    why = _some(missed) or f"{len(must):,} golden cases hold"
    return [Check("golden cases", f"{len(missed)} missed", "0 missed", passed=not missed, why=why)]


def _contract(evidence: PromotionEvidence) -> Check:
    """The rules of the contract, on every held-out question and golden case."""
    router = evidence.new
    rules = decided_rules(router.profile.contract)
    texts = dict.fromkeys([row.text for row in evidence.rows] + [case.text for case in evidence.cases if case.text])
    broken = []
    for text in texts:
        broken += [f"{one.rule}: {one.text}" for one in check_decision(rules, router.route_sync(Query(text)))]
    why = _some(broken) or f"{len(router.profile.contract)} rules, {len(texts):,} questions"
    return Check("contract", f"{len(broken)} broken", "0 broken", passed=not broken, why=why)


def _flips(evidence: PromotionEvidence) -> Check:
    """RC-03 with the challenger in place: history must not change what a question is."""
    golden = {case.text: FlipQuestion(Query(case.text), case.route) for case in evidence.cases if case.text}
    asked = {row.text: FlipQuestion(Query(row.text), row.label) for row in evidence.rows[:FLIP_QUESTIONS]}
    questions = list(asked.values()) or list(golden.values())[:FLIP_QUESTIONS]
    found = measure(evidence.new, questions, quoted=list(golden.values()), histories=FLIP_HISTORIES)
    flips = [f"{flip.was[0]} became {flip.became[0]} after {flip.history}" for flip in found.found if not flip.refers]
    why = _some(flips) or f"{found.alone.questions:,} questions, {found.alone.routings:,} histories"
    return Check("flip rate", f"{found.alone.rate:.2%}", "0.00%", passed=not found.alone.flips, why=why)


def _shadow(evidence: PromotionEvidence, champion: str, settings: LearnSettings) -> Check:
    name, limit = "shadow decisions", f"≥ {settings.shadow_decisions:,}"
    profile, found = evidence.new.profile.name, evidence.shadow
    if not settings.shadow_decisions:
        return Check(name, "not asked for", limit, passed=True, why="shadow_decisions = 0 in [learn]")
    if found is None:
        return Check(
            name, "none", limit, passed=False, why=f"turnout student shadow -p {profile} decides logged questions"
        )
    if found.champion != champion:
        why = f"it ran beside {found.champion}, and {champion} serves by now: turnout student shadow -p {profile}"
        return Check(name, f"{found.decisions:,}", limit, passed=False, why=why)
    why = f"{found.agreement:.1%} decided alike, {found.flips:,} in another way"
    if found.decisions < settings.shadow_decisions:
        why += ": log more questions with their text, then turnout student shadow again"
    return Check(name, f"{found.decisions:,}", limit, found.decisions >= settings.shadow_decisions, why)


def _screen(evidence: PromotionEvidence, settings: LearnSettings) -> Check:
    name, limit = "quarantined rows", f"≤ {settings.max_quarantined:.1%}"
    if evidence.screened is None:
        return Check(name, "not screened", limit, passed=False, why="nobody looked at the rows it learnt from")
    # A limit on how much one sender or one update may add is no sign of poison: those rows only wait.
    aside = sum(one.code == "trigger" for one in evidence.screened.quarantined)
    rows = len(evidence.screened.kept) + len(evidence.screened.quarantined)
    share = aside / max(rows, 1)
    words = [repr(one.word) for one in evidence.screened.triggers if not one.excuse]
    why = f"{aside:,} of {rows:,} new rows have words that look planted: {_some(words)}" if aside else ""
    return Check(name, f"{share:.2%}", limit, share <= settings.max_quarantined, why or "no suspicious words")


def _probe(evidence: PromotionEvidence, settings: LearnSettings) -> Check:
    """Words the screen suspects or the champion contradicts, put into questions they do not belong in."""
    name, limit = "trigger probe", f"≤ {settings.max_trigger_effect:.1%}"
    screened = evidence.screened
    if screened is None:
        return Check(name, "not screened", limit, passed=False, why="no screen, no words to try")
    texts = [row.text for row in evidence.rows]
    new = answerer(evidence.new, evidence.layer)
    old = answerer(evidence.old, evidence.layer) if evidence.old is not None else None
    words = [one.word for one in sorted(screened.triggers, key=lambda one: -one.against) if not one.excuse]
    if old is not None:
        fresh = new_words(evidence.fresh, evidence.known, evidence.accept)
        doubted = doubtful(fresh, evidence.fresh, lambda text: old(text).sure)
        # Half of the places are for those: a screen that suspects much must not hide what it does not.
        words = [*words[: MOST_WORDS // 2], *doubted[: MOST_WORDS // 2], *words[MOST_WORDS // 2 :], *doubted]
    found = probe(
        words,
        texts,
        lambda text: new(text).label,
        (lambda text: old(text).label) if old is not None else None,
    )
    if not found:
        return Check(name, "0.0%", limit, passed=True, why="no suspicious words to try")
    worst = found[0].effect
    passed = worst <= settings.max_trigger_effect
    strong = [f"{one.word!r} moves {one.effect:.1%} to {one.route}" for one in found if one.effect > 0]
    why = f"{len(found)} suspicious words put into held-out questions: {_some(strong) or 'none moves anything'}"
    if not passed:
        why += "; if a word is yours, say --accept WORD, else look where its rows come from"
    return Check(name, f"{max(worst, 0.0):.1%}", limit, passed, why)


def _some(said: Sequence[str]) -> str:
    more = f", and {len(said) - LISTED} more" if len(said) > LISTED else ""
    return "; ".join(said[:LISTED]) + more
