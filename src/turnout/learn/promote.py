"""The promotion of a model: a challenger is compared with the champion by every check that applies, then may serve.

The evidence was stored when the models were trained: held-out rows, what each model said of them before it learnt from
them, and the result of the poisoning screen. Figures are compared by their lower bounds at the configured confidence,
so a challenger that is only as good on few questions proves little. Every check is a row of the report, whether it
passed or not. The champion is replaced in one step, and only if it is still the one compared.

The first student of a user's own needs no shadow run and no minimum accuracy, since no student has decided their
traffic yet. It is compared on held-out rows with what serves now: the shipped student, or the profile without one.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from turnout.config.cases import run_cases
from turnout.config.champion import SHIPPED
from turnout.config.learning import LearnSettings, learn_settings
from turnout.core.embed import Embeds
from turnout.core.errors import QueryError
from turnout.core.query import Query
from turnout.core.router import Router
from turnout.store.contract import check_decision, decided_rules
from turnout.store.flip import FlipQuestion, measure

from .bound import compare_paired, floor_of, mcnemar
from .contest import GAIN, Contest, asker, open_contest, place_of
from .dataset import OUT_OF_SCOPE, Example, read_seeds, row_key
from .poison.probe import MOST_WORDS, doubtful, new_words, probe
from .poison.screen import ScreenResult
from .registry import ChampionChange, discard, set_champion
from .served import HeldAnswer, decide, matches
from .shadow import Shadow, kept
from .train import read_record

# The flip check takes some seconds for this many questions and histories of each.
FLIP_QUESTIONS, FLIP_HISTORIES = 100, 10
# A label with at least this many rows has collapsed if none is found, whatever a significance test says.
COLLAPSED_ROWS = 5
# Details listed for a failed check; the rest is counted.
LISTED = 5


class Check(Struct, frozen=True):
    """A row of the report."""

    check: str
    value: str
    limit: str
    passed: bool
    why: str = ""
    """What the value means, and what to do if the check failed."""
    setting: str = ""
    """Where the limit is set."""


# Where the limit of a check is set: a setting of `[learn]`, or another place.
GOVERNED = {
    "cross-validated accuracy": "min_accuracy",
    "held-out accuracy": "max_loss",
    "errors past the gate": "max_loss",
    "recall of each label": "max_label_loss",
    "golden cases": "cases in the profile",
    "contract": "contract in the profile",
    "flip rate": "RC-03: history changes no route",
    "shadow decisions": "shadow_decisions",
    "quarantined rows": "max_quarantined",
    "trigger probe": "max_trigger_effect",
    "quality kept": "the aim it was trained for: --keep-quality, --budget or --max-cost",
}


def setting_of(check: str, settings: LearnSettings) -> str:
    """The setting of a check and its value: `max_loss = 0.03 in [learn] of turnout.toml`."""
    name = GOVERNED[check]
    if name not in settings.__struct_fields__:
        return name
    return f"{name} = {getattr(settings, name):g} in [learn] of turnout.toml"


class Promotion(Struct, frozen=True):
    """The report, and whether the challenger was promoted."""

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


class Evidence(Struct, frozen=True, dict=True):
    """Everything that speaks for or against a challenger."""

    contest: Contest
    rows: Sequence[Example]
    """Held-out questions. A model has not learnt from them, or its earlier answers are in `said`."""
    screened: ScreenResult | None = None
    """The poisoning screen of the rows that the challenger learnt from and the champion had not seen."""
    known: Sequence[Example] = ()
    """Rows the champion learnt from."""
    accept: Sequence[str] = ()
    """New words the operator vouches for."""
    shadow: Shadow | None = None
    said: tuple[Mapping[str, HeldAnswer], Mapping[str, HeldAnswer]] = ({}, {})
    """By row key, what the challenger and the champion said of rows before they learnt from them."""

    @property
    def first(self) -> bool:
        """Whether no student of the user's own serves yet. A model of gains has no labels to be judged by."""
        return self.contest.champion == SHIPPED and self.contest.kind != GAIN

    @cached_property
    def answers(self) -> tuple[list[ModelAnswer], list[ModelAnswer] | None]:
        """The answers of the challenger and the champion to the rows."""
        gate = place_of(self.contest.new, self.contest.layer).gate

        def answer(ask: Answerer, earlier: Mapping[str, HeldAnswer], row: Example) -> ModelAnswer:
            if (held := earlier.get(row_key(row))) is None:
                return ask(row.text)
            admits = held.confidence >= gate.confidence and held.margin >= gate.margin
            return ModelAnswer(held.label, held.label is not None and admits)

        (new, old), (said_new, said_old) = self.answerers(), self.said
        return (
            [answer(new, said_new, row) for row in self.rows],
            [answer(old, said_old, row) for row in self.rows] if old is not None else None,
        )

    def decisions(self) -> tuple[list[bool], list[bool]]:
        """Whether the profile decides each row correctly, with the challenger and as it is now."""
        earlier = self.said[0]
        new = [
            held.is_right(row.label) if (held := earlier.get(row_key(row))) else _is_right(self.contest.new, row)
            for row in self.rows
        ]
        return new, [_is_right(self.contest.plain, row) for row in self.rows]

    def answerers(self) -> tuple[Answerer, Answerer | None]:
        layer, old = self.contest.layer, self.contest.old
        return answerer(self.contest.new, layer), answerer(old, layer) if old is not None else None


class ModelAnswer(NamedTuple):
    label: str | None
    accepted: bool
    """Whether it passes the gate."""


Answerer = Callable[[str], ModelAnswer]


def answerer(router: Router, layer: str) -> Answerer:
    """A function that asks the model of this layer alone about a text."""
    ask, gate = asker(router, layer), place_of(router, layer).gate

    def answer(text: str) -> ModelAnswer:
        verdict = ask(text)
        return ModelAnswer(None, False) if verdict is None else ModelAnswer(verdict.routes[0], gate.admits(verdict))

    return answer


def _is_right(router: Router, row: Example) -> bool:
    """Whether the whole profile is right on a row."""
    return matches(row.label, *decide(router, row.text))


def promote(
    profile: str | os.PathLike[str],
    *,
    settings: LearnSettings | None = None,
    layer: str | None = None,
    digest: str | None = None,
    accept: tuple[str, ...] = (),
    embedder: Embeds | None = None,
    config: str | os.PathLike[str] | None = None,
    check: bool = False,
    force: bool = False,
    who: str = "",
    why: str = "",
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Promotion:
    """Compare a challenger with the champion, and let it serve if it passes or is forced; with `check`, only report."""
    settings = settings or learn_settings(config)
    contest = open_contest(profile, layer=layer, digest=digest, embedder=embedder, config=config)
    promotion = examine(gather_evidence(contest, accept), settings, progress)
    if check or not (promotion.passed or force):
        return promotion
    promotion, _ = let_serve(promotion, contest, who=who, why=why)
    discard(contest.profile, contest.layer, keep=settings.keep_models)
    return promotion


def let_serve(
    promotion: Promotion, contest: Contest, *, who: str = "", why: str = ""
) -> tuple[Promotion, ChampionChange | None]:
    """Let the challenger serve, whatever the checks say, and record it in the history."""
    forced = ", ".join(check.check for check in promotion.failed)
    change = set_champion(
        promotion.profile,
        promotion.layer,
        SHIPPED if contest.challenger.shipped else promotion.challenger,
        who=who,
        why=why or (f"forced: {forced}" if forced else "every check passed"),
        metrics={check.check: check.value for check in promotion.checks},
        instead_of=promotion.champion,
    )
    return replace(promotion, promoted=True, forced=bool(forced)), change


def gather_evidence(contest: Contest, accept: tuple[str, ...] = ()) -> Evidence:
    """Read what was stored about the challenger and the champion."""
    profile, layer, digest = contest.profile, contest.layer, contest.challenger.digest
    new, old = read_record(profile, layer, digest), read_record(profile, layer, contest.champion)
    # Both models hold rows out by the same rule, but a row can still change sides; the champion may have learnt it.
    learnt = set(old.learnt) - old.answers.keys() if old is not None else set()
    seeds = read_seeds(profile, contest.new.profile.routes).rows
    return Evidence(
        contest,
        [row for row in new.held if row_key(row) not in learnt] if new is not None else [],
        new.screened if new is not None else None,
        # The rows that the champion has seen and whose texts are stored: seeds, and those of its own training.
        (*seeds, *old.held, *old.screened.kept) if old is not None else seeds,
        accept,
        kept(profile, layer, digest),
        (new.answers if new is not None else {}, old.answers if old is not None else {}),
    )


def examine(
    evidence: Evidence, settings: LearnSettings, progress: Callable[[int, int], None] = lambda *_: None
) -> Promotion:
    """Run every check, even if an earlier one has failed.

    A model of gains has no labels, so the checks of accuracy, recall and poisoning do not apply to it. It must pay
    instead; the other checks are the same.
    """
    contest = evidence.contest
    steps = [_cases, _contract, _flips, _shadow]
    if contest.kind == GAIN:
        steps = [_pays, *steps]
    else:
        steps = [_accuracy, _held_out, _errors, _labels, *steps, _screen, _probe]
    checks: list[Check] = []
    for number, step in enumerate(steps, 1):
        check = step(evidence, settings)
        checks.append(replace(check, setting=setting_of(check.check, settings)))
        progress(number, len(steps))
    return Promotion(contest.profile, contest.layer, contest.challenger.digest, contest.champion, tuple(checks))


# --- checks


def _pays(evidence: Evidence, _: LearnSettings) -> Check:
    """By its lower bound, the model keeps more of the quality gap than random choice does for the same cost."""
    metrics = evidence.contest.challenger.summary.metrics
    low, share = metrics.get("kept_low"), metrics.get("cost_share")
    if not isinstance(low, float | int) or not isinstance(share, float | int):
        return Check("quality kept", "unknown", "> the share of the cost", False, "its manifest does not say")
    why = f"at least {low:.1%} of what the most expensive route gains, for {share:.1%} of its extra cost"
    return Check("quality kept", f"{low:.1%}", f"> {share:.1%}", low > share, why)


def _accuracy(evidence: Evidence, settings: LearnSettings) -> Check:
    name, limit = "cross-validated accuracy", f"≥ {settings.min_accuracy:.1%}"
    metrics = evidence.contest.challenger.summary.metrics
    share, count = metrics.get("accuracy"), metrics.get("rows")
    if not isinstance(share, float | int) or not isinstance(count, float | int) or not count:
        return Check(name, "unknown", limit, False, "its manifest does not say: train it again")
    right, count = round(share * count), int(count)
    if evidence.first:
        return Check(
            name, f"{share:.1%}", "none for the first", True, f"{right:,} of {count:,}; what is held out decides"
        )
    floor = floor_of(right, count, 1 - settings.confidence)
    # The figure must reach the limit; the bound keeps a few lucky questions from reaching it.
    passed = share >= settings.min_accuracy and floor >= settings.min_accuracy - settings.max_loss
    why = f"{right:,} of {count:,}; at {settings.confidence:.0%} confidence at least {floor:.1%}"
    if not passed and share >= settings.min_accuracy:
        why += f", and {settings.min_accuracy - settings.max_loss:.1%} is needed: more labelled questions would tell"
    return Check(name, f"{share:.1%}", limit, passed, why)


def _held_out(evidence: Evidence, settings: LearnSettings) -> Check:
    """Compare the answers with the champion's; without a champion, the decisions of the profile with and without the
    student."""
    if evidence.contest.old is None:
        new, old = evidence.decisions()
        worse = "the profile is right less often with it than without any"
        return _compare(settings, "held-out accuracy", new, old, worse)
    asked = [at for at, row in enumerate(evidence.rows) if row.label != OUT_OF_SCOPE]

    def is_right(answer: ModelAnswer, row: Example) -> bool:
        return answer.label == row.label

    return _compare_answers(evidence, settings, "held-out accuracy", asked, is_right, "worse than the champion")


def _errors(evidence: Evidence, settings: LearnSettings) -> Check:
    """Compare the wrong answers that pass the gate. For an out-of-scope question every answer is wrong."""

    def is_harmless(answer: ModelAnswer, row: Example) -> bool:
        return not answer.accepted or answer.label == row.label

    worse = "more wrong answers are let through"
    return _compare_answers(evidence, settings, "errors past the gate", range(len(evidence.rows)), is_harmless, worse)


def _compare_answers(
    evidence: Evidence,
    settings: LearnSettings,
    name: str,
    asked: Iterable[int],
    is_good: Callable[[ModelAnswer, Example], bool],
    worse: str,
) -> Check:
    """The difference to the champion on the same questions; `worse` is the reason if it is shown to be worse."""
    new, old = evidence.answers
    if old is None:
        return Check(name, "no champion", f"≥ {-settings.max_loss:+.1%}", True, "nothing serves yet")
    good = [[is_good(answers[at], evidence.rows[at]) for at in asked] for answers in (new, old)]
    return _compare(settings, name, good[0], good[1], worse)


def _compare(settings: LearnSettings, name: str, new: Sequence[bool], old: Sequence[bool], worse: str) -> Check:
    limit = f"≥ {-settings.max_loss:+.1%}"
    paired = compare_paired(new, old, 1 - settings.confidence)
    passed = paired.floor >= -settings.max_loss
    why = (
        f"{paired.difference:+.1%} on {paired.count:,} questions ({paired.wins} better, {paired.losses} worse); at "
        f"{settings.confidence:.0%} confidence at least {paired.floor:+.1%}"
    )
    if not passed and paired.difference >= 0:
        why += ": not shown to be worse, but so few questions prove no more: label more of them"
    elif not passed:
        why += f": {worse}"
    return Check(name, f"{paired.floor:+.1%}", limit, passed, why)


def _labels(evidence: Evidence, settings: LearnSettings) -> Check:
    """No label's recall may collapse. A label has few questions, so a drop counts only if it is larger than the margin
    and significant by the exact test."""
    name, limit = "recall of each label", f"≥ {-settings.max_label_loss:+.1%}"
    rows, (new, old) = evidence.rows, evidence.answers
    failed: list[str] = []
    worst, worst_drop = "", 0.0
    for label in sorted({row.label for row in rows} - {OUT_OF_SCOPE}):
        at = [index for index, row in enumerate(rows) if row.label == label]
        if len(at) >= COLLAPSED_ROWS and all(new[i].label != label for i in at):
            failed.append(f"{label} is never found, in {len(at)} questions")
        if old is None:
            continue
        wins = sum(new[i].label == label != old[i].label for i in at)
        losses = sum(old[i].label == label != new[i].label for i in at)
        drop = (losses - wins) / len(at)
        if not worst or drop > worst_drop:
            worst, worst_drop = label, drop
        if drop > settings.max_label_loss and mcnemar(losses, wins) <= 1 - settings.confidence:
            failed.append(f"{label} {-drop:+.1%} ({losses} of {len(at)} lost, {wins} won)")
    if old is None:
        why = "; ".join(failed) or "nothing serves yet; no label is lost"
        return Check(name, "no champion", limit, not failed, why)
    value = f"{worst} {0.0 - worst_drop:+.1%}" if worst else "no questions"
    why = "; ".join(failed) or "no label is found less often beyond chance and the margin"
    return Check(name, value, limit, not failed and bool(worst), why)


def _cases(evidence: Evidence, _: LearnSettings) -> Check:
    """The golden cases that must hold, with the challenger in place."""
    must = [case for case in evidence.contest.cases if case.must]
    missed = []
    for case in must:
        try:
            results = run_cases(evidence.contest.new, (case,))
            missed += [f"{one.case.id}: {miss}" for one in results for miss in one.misses[:1]]
        except QueryError as error:
            missed.append(f"{case.id}: refused, {error}")
    why = _some(missed) or f"{len(must):,} golden cases hold"
    return Check("golden cases", f"{len(missed)} missed", "0 missed", not missed, why)


def _contract(evidence: Evidence, _: LearnSettings) -> Check:
    """The rules of the contract, on every held-out question and golden case."""
    router = evidence.contest.new
    rules = decided_rules(router.profile.contract)
    golden = [case.text for case in evidence.contest.cases if case.text]
    texts = dict.fromkeys([row.text for row in evidence.rows] + golden)
    broken = []
    for text in texts:
        broken += [f"{one.rule}: {one.text}" for one in check_decision(rules, router.route_sync(Query(text)))]
    why = _some(broken) or f"{len(router.profile.contract)} rules, {len(texts):,} questions"
    return Check("contract", f"{len(broken)} broken", "0 broken", not broken, why)


def _flips(evidence: Evidence, _: LearnSettings) -> Check:
    """RC-03 with the challenger in place: history must not change the route of a question."""
    golden = {case.text: FlipQuestion(Query(case.text), case.route) for case in evidence.contest.cases if case.text}
    asked = {row.text: FlipQuestion(Query(row.text), row.label) for row in evidence.rows[:FLIP_QUESTIONS]}
    questions = list(asked.values()) or list(golden.values())[:FLIP_QUESTIONS]
    flipped = measure(evidence.contest.new, questions, quoted=list(golden.values()), histories=FLIP_HISTORIES)
    flips = [f"{flip.was[0]} became {flip.became[0]} after {flip.history}" for flip in flipped.found if not flip.refers]
    why = _some(flips) or f"{flipped.alone.questions:,} questions, {flipped.alone.routings:,} histories"
    return Check("flip rate", f"{flipped.alone.rate:.2%}", "0.00%", not flipped.alone.flips, why)


def _shadow(evidence: Evidence, settings: LearnSettings) -> Check:
    name, limit = "shadow decisions", f"≥ {settings.shadow_decisions:,}"
    champion, shadow = evidence.contest.champion, evidence.shadow
    run = f"turnout student shadow -p {shlex.quote(evidence.contest.typed)}"
    if evidence.first:
        return Check(name, "not asked for", "none for the first", True, "the first of your own: held-out rows decide")
    if not settings.shadow_decisions:
        return Check(name, "not asked for", limit, True, "shadow_decisions = 0 in [learn]")
    if shadow is None:
        return Check(name, "none", limit, False, f"{run} decides logged questions")
    if shadow.champion != champion:
        why = f"it ran beside {shadow.champion}, and {champion} serves by now: {run}"
        return Check(name, f"{shadow.decisions:,}", limit, False, why)
    why = f"{shadow.agreement:.1%} decided alike, {shadow.flips:,} in another way"
    if shadow.decisions < settings.shadow_decisions:
        why += f": log more questions with their text, then {run}"
    return Check(name, f"{shadow.decisions:,}", limit, shadow.decisions >= settings.shadow_decisions, why)


def _screen(evidence: Evidence, settings: LearnSettings) -> Check:
    name, limit = "quarantined rows", f"≤ {settings.max_quarantined:.1%}"
    screened = evidence.screened
    if screened is None:
        return Check(name, "not screened", limit, False, "the rows it learnt from were not screened")
    # Rows beyond the limit of one sender or one update are no sign of poison; they only wait.
    aside = sum(one.code == "trigger" for one in screened.quarantined)
    rows = len(screened.kept) + len(screened.quarantined)
    share = aside / max(rows, 1)
    words = [repr(one.word) for one in screened.triggers if not one.excuse]
    why = f"{aside:,} of {rows:,} new rows have words that look planted: {_some(words)}" if aside else ""
    return Check(name, f"{share:.2%}", limit, share <= settings.max_quarantined, why or "no suspicious words")


def _probe(evidence: Evidence, settings: LearnSettings) -> Check:
    """Put words that the screen suspects or the champion contradicts into questions they do not belong in."""
    name, limit = "trigger probe", f"≤ {settings.max_trigger_effect:.1%}"
    screened = evidence.screened
    if screened is None:
        return Check(name, "not screened", limit, False, "no screen, no words to try")
    new, old = evidence.answerers()
    words = [one.word for one in sorted(screened.triggers, key=lambda one: -one.against) if not one.excuse]
    if old is not None:
        fresh = new_words(screened.kept, evidence.known, evidence.accept)
        doubted = doubtful(fresh, screened.kept, lambda text: reply.label if (reply := old(text)).accepted else None)
        # Half of the places are for these, so that many suspects of the screen do not crowd them out.
        words = [*words[: MOST_WORDS // 2], *doubted[: MOST_WORDS // 2], *words[MOST_WORDS // 2 :], *doubted]
    texts = [row.text for row in evidence.rows]
    effects = probe(words, texts, lambda text: new(text).label, old and (lambda text: old(text).label))
    if not effects:
        return Check(name, "0.0%", limit, True, "no suspicious words to try")
    worst = effects[0].effect
    passed = worst <= settings.max_trigger_effect
    strong = [f"{one.word!r} moves {one.effect:.1%} to {one.route}" for one in effects if one.effect > 0]
    why = f"{len(effects)} suspicious words put into held-out questions: {_some(strong) or 'none moves anything'}"
    if not passed:
        why += "; if a word is yours, say --accept WORD, else look where its rows come from"
    return Check(name, f"{max(worst, 0.0):.1%}", limit, passed, why)


def _some(details: Sequence[str]) -> str:
    more = f", and {len(details) - LISTED} more" if len(details) > LISTED else ""
    return "; ".join(details[:LISTED]) + more
