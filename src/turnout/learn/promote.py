"""The one way to let a model serve: held against the champion by every check that applies to it.

What the two are compared on stands beside them since they were trained: rows that were held out, what each said of them
before it learnt from them, and what the screen made of the new ones. Nothing here is a bare "at least as good": what a
sample shows is taken for what it proves, a lower bound at the confidence asked for. A challenger that is as good as the
champion on few questions has proven little, and the report says how many it would take. Each check is a row of the
report, also those that passed. The champion is replaced in one step, and only if it is still the one compared.

Who has no student of their own yet has no traffic a student has decided: the first needs no shadow run and no accuracy
that was asked for in advance. It is held against what serves now, the student that came with Turnout or the profile
without one, on the rows held out.
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
from .dataset import JOIN, OUT_OF_SCOPE, Example, in_order, read_seeds, row_key
from .poison.probe import MOST_WORDS, doubtful, new_words, probe
from .poison.screen import ScreenResult
from .registry import ChampionChange, discard, set_champion
from .served import HeldAnswer
from .shadow import Shadow, kept
from .train import read_record

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


# What governs a check: a setting of `[learn]`, or where else it is decided.
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
    """Where the limit of a check is set, and to what: `max_loss = 0.03 in [learn] of turnout.toml`."""
    name = GOVERNED[check]
    if name not in settings.__struct_fields__:
        return name
    return f"{name} = {getattr(settings, name):g} in [learn] of turnout.toml"


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


class Evidence(Struct, frozen=True, dict=True):
    """All that is held against a challenger, or for it."""

    contest: Contest
    rows: Sequence[Example]
    """Held-out questions: neither model has learnt from them, or what it said before it did is known."""
    screened: ScreenResult | None = None
    """What the poisoning screen said of the rows the challenger learnt from and the champion had not seen."""
    known: Sequence[Example] = ()
    """Rows the champion learnt from."""
    accept: Sequence[str] = ()
    """New words the operator stands behind."""
    shadow: Shadow | None = None
    said: tuple[Mapping[str, HeldAnswer], Mapping[str, HeldAnswer]] = ({}, {})
    """What the challenger and the champion said of rows, by their keys, before they learnt from them."""

    @property
    def first(self) -> bool:
        """Whether no student of the user's own serves yet. A model of gains has no labels to be judged by."""
        return self.contest.champion == SHIPPED and self.contest.kind != GAIN

    @cached_property
    def answers(self) -> tuple[list[ModelAnswer], list[ModelAnswer] | None]:
        """What the challenger and the champion say of the rows."""
        new, old = self.answerers()
        gate = place_of(self.contest.new, self.contest.layer).gate

        def said(ask: Answerer, known: Mapping[str, HeldAnswer], row: Example) -> ModelAnswer:
            if (found := known.get(row_key(row))) is None:
                return ask(row.text)
            admits = found.confidence >= gate.confidence and found.margin >= gate.margin
            return ModelAnswer(found.label, found.label is not None and admits)

        before, after = self.said[1], self.said[0]
        return (
            [said(new, after, row) for row in self.rows],
            [said(old, before, row) for row in self.rows] if old is not None else None,
        )

    def decisions(self) -> tuple[list[bool], list[bool]]:
        """Whether the profile decides each row rightly, with the challenger and as it is now."""
        known = self.said[0]
        new = [
            found.is_right(row.label) if (found := known.get(row_key(row))) else _is_right(self.contest.new, row)
            for row in self.rows
        ]
        return new, [_is_right(self.contest.plain, row) for row in self.rows]

    def answerers(self) -> tuple[Answerer, Answerer | None]:
        layer, old = self.contest.layer, self.contest.old
        return answerer(self.contest.new, layer), answerer(old, layer) if old is not None else None


class ModelAnswer(NamedTuple):
    label: str | None
    accepted: bool
    """Whether its gate would let it through."""


Answerer = Callable[[str], ModelAnswer]


def answerer(router: Router, layer: str) -> Answerer:
    """What the model in a layer's place says of a text, whatever the layers before it would say."""
    ask, gate = asker(router, layer), place_of(router, layer).gate

    def answer(text: str) -> ModelAnswer:
        said = ask(text)
        return ModelAnswer(said.routes[0], gate.admits(said)) if said is not None else ModelAnswer(None, False)

    return answer


def _is_right(router: Router, row: Example) -> bool:
    """Whether the whole profile is. The fallback is where a question for no route belongs."""
    decision = router.route_sync(Query(row.text))
    if row.label == OUT_OF_SCOPE:
        return decision.outcome.startswith("F")
    return in_order(JOIN.join(decision.routes)) == in_order(row.label)


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
    """Hold a challenger against the champion and let it serve if it passes or is forced to; with `check`, only tell."""
    settings = settings or learn_settings(config)
    contest = open_contest(profile, layer=layer, digest=digest, embedder=embedder, config=config)
    found = examine(gather_evidence(contest, accept), settings, progress)
    if check or not (found.passed or force):
        return found
    found, _ = let_serve(found, contest, who=who, why=why)
    discard(contest.profile, contest.layer, keep=settings.keep_models)
    return found


def let_serve(
    found: Promotion, contest: Contest, *, who: str = "", why: str = ""
) -> tuple[Promotion, ChampionChange | None]:
    """Let the challenger serve, whatever the checks say, and write that down."""
    forced = ", ".join(check.check for check in found.failed)
    change = set_champion(
        found.profile,
        found.layer,
        SHIPPED if contest.challenger.shipped else found.challenger,
        who=who,
        why=why or (f"forced: {forced}" if forced else "every check passed"),
        metrics={check.check: check.value for check in found.checks},
        instead_of=found.champion,
    )
    return replace(found, promoted=True, forced=bool(forced)), change


def gather_evidence(contest: Contest, accept: tuple[str, ...] = ()) -> Evidence:
    """What is held against the challenger, or for it."""
    profile, layer, digest = contest.profile, contest.layer, contest.challenger.digest
    noted = read_record(profile, layer, digest)
    before = read_record(profile, layer, contest.champion)
    # Held out by the same rule both times; a row that changed sides all the same is no fair judge.
    learnt = set(before.learnt) - before.answers.keys() if before is not None else set()
    seeds = read_seeds(profile, contest.new.profile.routes).rows
    return Evidence(
        contest,
        [row for row in noted.held if row_key(row) not in learnt] if noted is not None else [],
        noted.screened if noted is not None else None,
        # What the champion has seen, as far as its text is there: seeds, and what came with its own training.
        (*seeds, *before.held, *before.screened.kept) if before is not None else seeds,
        accept,
        kept(profile, layer, digest),
        (noted.answers if noted is not None else {}, before.answers if before is not None else {}),
    )


def examine(
    evidence: Evidence, settings: LearnSettings, progress: Callable[[int, int], None] = lambda *_: None
) -> Promotion:
    """Every check there is, none left out because another has failed.

    A model of what more expensive routes gain has no labels, so that none of the checks of labels applies: accuracy,
    recall, and what is planted for a label. In their place it must pay; the others hold as ever.
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
    """More of the quality gap is kept than by sending as many questions to the more expensive route by lot: a lower
    bound."""
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
    # The figure is what was asked for; the bound keeps a few lucky questions from reaching it.
    passed = share >= settings.min_accuracy and floor >= settings.min_accuracy - settings.max_loss
    why = f"{right:,} of {count:,}; at {settings.confidence:.0%} confidence at least {floor:.1%}"
    if not passed and share >= settings.min_accuracy:
        why += f", and {settings.min_accuracy - settings.max_loss:.1%} is needed: more labelled questions would tell"
    return Check(name, f"{share:.1%}", limit, passed, why)


def _held_out(evidence: Evidence, settings: LearnSettings) -> Check:
    """The student's own answers against the champion's; of the first student there is, what the whole profile decides
    against what it decides without."""
    if evidence.contest.old is None:
        new, old = evidence.decisions()
        said = "the profile is right less often with it than without any"
        return _compare(settings, "held-out accuracy", new, old, said)
    asked = [at for at, row in enumerate(evidence.rows) if row.label != OUT_OF_SCOPE]

    def is_right(answer: ModelAnswer, row: Example) -> bool:
        return answer.label == row.label

    return _compare_answers(evidence, settings, "held-out accuracy", asked, is_right, "worse than the champion")


def _errors(evidence: Evidence, settings: LearnSettings) -> Check:
    """A question for no route has no right label, but letting its answer through is an error all the same."""

    def is_harmless(answer: ModelAnswer, row: Example) -> bool:
        return not answer.accepted or answer.label == row.label

    said = "more wrong answers are let through"
    return _compare_answers(evidence, settings, "errors past the gate", range(len(evidence.rows)), is_harmless, said)


def _compare_answers(
    evidence: Evidence,
    settings: LearnSettings,
    name: str,
    asked: Iterable[int],
    is_good: Callable[[ModelAnswer, Example], bool],
    said: str,
) -> Check:
    """The difference to the champion on the same questions."""
    new, old = evidence.answers
    if old is None:
        return Check(name, "no champion", f"≥ {-settings.max_loss:+.1%}", True, "nothing serves yet")
    good = [[is_good(answers[at], evidence.rows[at]) for at in asked] for answers in (new, old)]
    return _compare(settings, name, good[0], good[1], said)


def _compare(settings: LearnSettings, name: str, new: Sequence[bool], old: Sequence[bool], said: str) -> Check:
    limit = f"≥ {-settings.max_loss:+.1%}"
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
    return Check(name, f"{found.floor:+.1%}", limit, passed, why)


def _labels(evidence: Evidence, settings: LearnSettings) -> Check:
    """No label's recall may collapse. A label has few questions: it counts against the challenger when the drop is
    larger than the margin and, by the exact test, no accident."""
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
            found = run_cases(evidence.contest.new, (case,))
            missed += [f"{one.case.id}: {said}" for one in found for said in one.misses[:1]]
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
    """RC-03 with the challenger in place: history must not change what a question is."""
    golden = {case.text: FlipQuestion(Query(case.text), case.route) for case in evidence.contest.cases if case.text}
    asked = {row.text: FlipQuestion(Query(row.text), row.label) for row in evidence.rows[:FLIP_QUESTIONS]}
    questions = list(asked.values()) or list(golden.values())[:FLIP_QUESTIONS]
    found = measure(evidence.contest.new, questions, quoted=list(golden.values()), histories=FLIP_HISTORIES)
    flips = [f"{flip.was[0]} became {flip.became[0]} after {flip.history}" for flip in found.found if not flip.refers]
    why = _some(flips) or f"{found.alone.questions:,} questions, {found.alone.routings:,} histories"
    return Check("flip rate", f"{found.alone.rate:.2%}", "0.00%", not found.alone.flips, why)


def _shadow(evidence: Evidence, settings: LearnSettings) -> Check:
    name, limit = "shadow decisions", f"≥ {settings.shadow_decisions:,}"
    champion, found = evidence.contest.champion, evidence.shadow
    run = f"turnout student shadow -p {shlex.quote(evidence.contest.typed)}"
    if evidence.first:
        return Check(name, "not asked for", "none for the first", True, "the first of your own: held-out rows decide")
    if not settings.shadow_decisions:
        return Check(name, "not asked for", limit, True, "shadow_decisions = 0 in [learn]")
    if found is None:
        return Check(name, "none", limit, False, f"{run} decides logged questions")
    if found.champion != champion:
        why = f"it ran beside {found.champion}, and {champion} serves by now: {run}"
        return Check(name, f"{found.decisions:,}", limit, False, why)
    why = f"{found.agreement:.1%} decided alike, {found.flips:,} in another way"
    if found.decisions < settings.shadow_decisions:
        why += f": log more questions with their text, then {run}"
    return Check(name, f"{found.decisions:,}", limit, found.decisions >= settings.shadow_decisions, why)


def _screen(evidence: Evidence, settings: LearnSettings) -> Check:
    name, limit = "quarantined rows", f"≤ {settings.max_quarantined:.1%}"
    screened = evidence.screened
    if screened is None:
        return Check(name, "not screened", limit, False, "the rows it learnt from were not screened")
    # A limit on how much one sender or one update may add is no sign of poison: those rows only wait.
    aside = sum(one.code == "trigger" for one in screened.quarantined)
    rows = len(screened.kept) + len(screened.quarantined)
    share = aside / max(rows, 1)
    words = [repr(one.word) for one in screened.triggers if not one.excuse]
    why = f"{aside:,} of {rows:,} new rows have words that look planted: {_some(words)}" if aside else ""
    return Check(name, f"{share:.2%}", limit, share <= settings.max_quarantined, why or "no suspicious words")


def _probe(evidence: Evidence, settings: LearnSettings) -> Check:
    """Words the screen suspects or the champion contradicts, put into questions they do not belong in."""
    name, limit = "trigger probe", f"≤ {settings.max_trigger_effect:.1%}"
    screened = evidence.screened
    if screened is None:
        return Check(name, "not screened", limit, False, "no screen, no words to try")
    new, old = evidence.answerers()
    words = [one.word for one in sorted(screened.triggers, key=lambda one: -one.against) if not one.excuse]
    if old is not None:
        fresh = new_words(screened.kept, evidence.known, evidence.accept)
        doubted = doubtful(fresh, screened.kept, lambda text: said.label if (said := old(text)).accepted else None)
        # Half of the places are for those: a screen that suspects much must not hide what it does not.
        words = [*words[: MOST_WORDS // 2], *doubted[: MOST_WORDS // 2], *words[MOST_WORDS // 2 :], *doubted]
    texts = [row.text for row in evidence.rows]
    found = probe(words, texts, lambda text: new(text).label, old and (lambda text: old(text).label))
    if not found:
        return Check(name, "0.0%", limit, True, "no suspicious words to try")
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
