"""The terminal picture of a decision: the question, the track of layers, the policy, and what would change it.

It shows what `Decision.json()` has, in the same words. Colour only repeats what signs and words say (green accepted,
yellow below the gate, red failed), so that the picture reads the same without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from turnout.core.decision import Decision
from turnout.core.policy import Policy
from turnout.core.verdict import Reason, Verdict
from turnout.explain.explanation import Explanation, LayerExplanation, Question, spell
from turnout.text.count import counted

from .screen import Glyphs, format_value, quoted, visible
from .shape import Rail, bar, columns, gauge, ruler, signed_bar, style_of

# Cells for a layer's sign and the track before its name.
TRACK = 4

# Cells on each side of a signed bar's axis, and of a score's bar.
SIDE, SCORE = 9, 24
# In fewer cells than these, bars are shorter, to leave room for words.
ROOMY = 60
# In fewer than these, there is no room for a gauge beside its numbers.
TIGHT = 40
# Characters of a matched passage that are quoted.
QUOTED = 32
# Scores that are listed; a profile may have many routes.
SHOWN_SCORES = 8

# The sign and the style for how a layer ended. Anything else is a fault.
_ENDINGS = {
    "accepted": ("accepted", "bold green"),
    "held": ("held", "bold yellow"),
    "passed": ("passed", "dim"),
    "skipped": ("passed", "dim"),
    "not asked": ("dot", "dim"),
}


def summary(decision: Decision, glyphs: Glyphs) -> list[Text]:
    """A decision in two lines: route, confidence and layer; then the reasons."""
    who, how = spell(decision.outcome)
    first = Text.assemble(
        (" + ".join(decision.routes), "bold"),
        f"  {sureness(decision)}  by {decision.by}  ",
        (f"{decision.outcome} ({who}, {how})", "dim"),
    )
    reasons = [*decision.reasons, *(reason for part in decision.parts for reason in part.reasons)]
    why = f" {glyphs.dot} ".join(visible(reason.text) for reason in reasons)
    return [first, Text(f"  {why}", "dim")]


def sureness(decision: Decision | Explanation) -> str:
    """The confidence of a decision; only a calibrated one is called confidence."""
    return f"{'confidence' if decision.calibrated else 'score'} {decision.confidence:.2f}"


def elapsed(us: float, glyphs: Glyphs) -> str:
    if us < 1_000:
        return f"{us:.1f} {glyphs.micro}" if us < 10 else f"{us:.0f} {glyphs.micro}"
    return f"{us / 1e3:.1f} ms" if us < 1_000_000 else f"{us / 1e6:.1f} s"


def heading(decision: Explanation, glyphs: Glyphs) -> Rule:
    title = Text.assemble((decision.profile, "bold"), (f" {glyphs.dot} {decision.profile_hash}", "dim"))
    return Rule(title, characters=glyphs.line, style="dim", align="left")


def picture(decision: Explanation, glyphs: Glyphs, width: int) -> RenderableType:
    """The whole explanation, `width` cells wide."""
    return Group(heading(decision, glyphs), "", Rail(Group(*_story(decision, glyphs, width - 2)), "  "))


def _story(decision: Explanation, glyphs: Glyphs, width: int) -> Iterator[RenderableType]:
    yield _question(decision.question, glyphs)
    if decision.then:
        yield Text.assemble(("then ", "dim"), quoted(decision.then, glyphs))
    yield ""
    yield _answer(decision, glyphs)
    yield ""
    if decision.parts:
        for remark in decision.remarks:
            yield Text(visible(remark.text), "dim")
        for number, part in enumerate(decision.parts, 1):
            yield Text(f"{part.role or 'part'} {number}", "bold")
            yield Rail(Group(*_story(part, glyphs, width - 3)), Text(f"{glyphs.rail}  ", "dim"))
            yield ""
        return
    yield from _cascade(decision, glyphs, width)
    yield ""
    yield _facts(decision, glyphs)


def _question(question: Question, glyphs: Glyphs) -> Text:
    """The user's own words, with matches underlined."""
    if not question.kept:
        return Text("(a question whose text was not kept)", "dim")
    if not question.excerpt:
        return Text("(a blank question)", "dim")
    words = Text(visible(question.excerpt))
    for span in question.spans:
        words.stylize("underline cyan", span.start, span.end)
    if question.cut:
        words = words[: question.cut] + Text(glyphs.dots) + words[question.cut + 1 :]
    opening, closing = glyphs.quotes
    text = Text.assemble((opening, "dim"), words, (closing, "dim"))
    if question.cut:
        text.append(f"  ({question.length:,} characters)", "dim")
    if question.earlier_turns:
        text.append(f"  (after {counted(question.earlier_turns, 'earlier turn')})", "dim")
    return text


def _answer(decision: Explanation, glyphs: Glyphs) -> Table:
    who, how = spell(decision.outcome)
    dot = f" {glyphs.dot} "
    grid = Table.grid(padding=(0, 3))
    grid.add_column(overflow="fold")
    grid.add_column()
    facts = [sureness(decision), f"by {decision.by}", elapsed(decision.elapsed_us, glyphs)]
    letters = decision.outcome
    style = style_of(letters)
    grid.add_row(Text(" + ".join(decision.routes), style), Text(dot.join(facts)))
    spelled = Text.assemble((letters[0], "bold"), f" {who}", (dot, "dim"), (letters[1], "bold"), f" {how}")
    grid.add_row(Text(letters, style), spelled)
    return grid


def _cascade(decision: Explanation, glyphs: Glyphs, width: int) -> Iterator[RenderableType]:
    """The layers on a track, which ends where the decision was made."""
    names = max(len(name) for name in (*(step.layer for step in decision.trace), decision.by))
    for number, step in enumerate(decision.trace, 1):
        sign, style = _ENDINGS.get(step.ended, ("fault", "bold red"))
        rail = Text(" " if step.ended == "accepted" else glyphs.rail, "dim")
        took = elapsed(step.elapsed_us, glyphs) if step.elapsed_us else ""
        station = _station(step.layer, step.ended, style, _result(step), took=took, names=names)
        details = list(_details(step, decision.question, glyphs, width - TRACK))
        if details and not (step.ended == "accepted" and number == len(decision.trace)):
            details.append("")
        yield Rail(Group(station, *details), Text(getattr(glyphs, sign), style), rail, TRACK)
    if not decision.was_accepted:
        remark = visible(decision.remarks[0].text) if decision.remarks else ""
        style = style_of(decision.outcome)
        end = Text.assemble((" + ".join(decision.routes), style), (f"  {remark}", "dim"))
        how = "held" if decision.decider is not None else ""
        yield Rail(_station(decision.by, how, style, end, names=names), Text(glyphs.leave, style), "", TRACK)


def _station(name: str, ended: str, style: str, result: Text, *, took: str = "", names: int) -> Table:
    """The line of a layer; `names` is the width of the names."""
    row = Table.grid(padding=(0, 2), expand=True)
    row.add_column(width=names, no_wrap=True)
    row.add_column(width=9, no_wrap=True)
    row.add_column(ratio=1)
    row.add_column(justify="right", no_wrap=True, style="dim")
    row.add_row(Text(name, "dim" if style == "dim" else "bold"), Text(ended, style), result, took)
    return row


def _result(step: LayerExplanation) -> Text:
    if step.verdict is not None:
        return Text(" + ".join(step.verdict.routes), verdict_style(step))
    return Text(visible(step.fault), "dim")


# --- one layer: what fired and what each signal adds, its scores, and its gate


def verdict_style(step: LayerExplanation) -> str:
    return "bold green" if step.ended == "accepted" else "bold yellow"


def _details(step: LayerExplanation, question: Question, glyphs: Glyphs, width: int) -> Iterator[RenderableType]:
    verdict = step.verdict
    if verdict is None:
        return
    yield _signals(step, verdict, question, glyphs, side=SIDE if width >= ROOMY else SIDE // 3)
    bands, style = step.bands, verdict_style(step)
    if bands is not None and len(verdict.scores) == 1:
        yield ""
        chosen = verdict.routes[0]
        yield from ruler(step.score, bands.edges, bands.routes, chosen, width=width, glyphs=glyphs, style=style)
    elif verdict.scores:
        yield ""
        yield _scores(step, verdict, glyphs, length=SCORE if width >= ROOMY else SCORE // 3)
    yield ""
    yield _gate(step, verdict, glyphs, length=SCORE if width >= ROOMY else SCORE // 3 if width >= TIGHT else 0)


def _signals(step: LayerExplanation, verdict: Verdict, question: Question, glyphs: Glyphs, *, side: int) -> Table:
    weights = {reason.code: verdict.adds[reason.code] for reason in step.fired if reason.code in verdict.adds}
    grid = columns("fold", "right", "")
    largest = max(map(abs, weights.values()), default=1.0)
    left = side if min(weights.values(), default=0.0) < 0 else 0
    if weights:
        title = "adds" if len(verdict.scores) == 1 or side < SIDE else "adds to the winner"
        grid.add_row(Text("fired", "dim"), "", Text(title, "dim"))
    for reason in step.fired:
        cells: list[RenderableType] = [_reason(reason, question, glyphs)]
        if (added := weights.get(reason.code)) is not None:
            cells += [_number(added, glyphs), signed_bar(added / largest, left, side, glyphs, ("magenta", "cyan"))]
        grid.add_row(*cells)
    if weights and len(verdict.scores) == 1:
        grid.add_row(Text("sum", "dim", justify="right"), Text(_number(step.score, glyphs), "bold"), "")
    return grid


def _reason(reason: Reason, question: Question, glyphs: Glyphs) -> Text:
    """The reason, with the words that matched unless its text has them."""
    text = Text(visible(reason.text))
    if not reason.text.endswith(")") and (words := question.matched(reason.code)):
        text.append(f" {quoted(words, glyphs, QUOTED)}", "dim")
    return text


def _scores(step: LayerExplanation, verdict: Verdict, glyphs: Glyphs, *, length: int) -> Table:
    """The scores of all routes, best first."""
    grid = columns("fold", "right", "")
    ranked = sorted(verdict.scores.items(), key=lambda item: -item[1])
    scale = max(1.0, ranked[0][1])
    for route, score in ranked[:SHOWN_SCORES]:
        won = route in verdict.routes
        style = verdict_style(step) if won else "dim"
        grid.add_row(Text(visible(route), style), f"{score:.3f}", bar(score / scale, length, glyphs, style))
    if len(ranked) > SHOWN_SCORES:
        grid.add_row(Text(f"and {len(ranked) - SHOWN_SCORES} more", "dim"))
    return grid


def _gate(step: LayerExplanation, verdict: Verdict, glyphs: Glyphs, *, length: int) -> RenderableType:
    """The values that were compared with the gate, and what it needs."""
    gate = step.gate
    name = "confidence" if verdict.calibrated else "score"
    if verdict.decisive:
        return Text.assemble(f"{name} {verdict.confidence:.2f}  ", ("decisive: no gate applies", "dim"))
    grid = Table.grid(padding=(0, 2 if length else 1))
    rows = [(name, verdict.confidence, gate.confidence)]
    if gate.margin > 0.0:
        rows.append(("margin", verdict.margin, gate.margin))
    # If there is little room, the gauge is left out, then the last column wraps; the values are never cut.
    grid.add_column(no_wrap=True, min_width=max(len(label) for label, _, _ in rows))
    grid.add_column(no_wrap=True, min_width=len("0.00"))
    if length:
        grid.add_column(no_wrap=True)
    grid.add_column()
    for label, value, needed in rows:
        sign, style = (glyphs.yes, "green") if value >= needed else (glyphs.no, "yellow")
        shape = [gauge(value, needed, length, glyphs, style)] if length else []
        grid.add_row(label, f"{value:.2f}", *shape, Text.assemble(f"needs {needed:.2f} ", (sign, f"bold {style}")))
    return Group(grid, Text(visible(step.held_text), "dim")) if step.held_text else grid


def _number(value: float, glyphs: Glyphs) -> str:
    return f"{'+' if value >= 0 else glyphs.minus}{abs(value):.3f}"


# --- around the layers


def fact_table(*sections: tuple[str, Iterable[RenderableType]]) -> Table:
    """Titles on the left, the lines of each section on the right; a section without lines is left out."""
    grid = columns("dim", "wrap")
    for title, lines in sections:
        for number, line in enumerate(lines):
            grid.add_row("" if number else title, line)
    return grid


def _facts(decision: Explanation, glyphs: Glyphs) -> Table:
    """What else was done, the policy that follows, and what would have changed the decision."""
    # If no layer decided, the first remark is shown at the end of the track.
    also = decision.remarks[0 if decision.was_accepted else 1 :]
    return fact_table(
        ("also", [Text(visible(remark.text)) for remark in also]),
        ("policy", policy_lines(decision.policy, glyphs)),
        ("what if", _what_if(decision)),
    )


def policy_lines(policy: Policy, glyphs: Glyphs) -> list[Text]:
    """The policy: short facts on one line, the instruction on another."""
    facts = msgspec.to_builtins(policy)
    facts |= facts.pop("extra", {})
    instruction = facts.pop("instruction", None)
    short = [
        Text.assemble((f"{name} ", "dim"), (format_value(value, glyphs), "" if value is False else "bold"))
        for name, value in facts.items()
    ]
    lines = [Text(f" {glyphs.dot} ").join(short)] if short else []
    if instruction is not None:
        lines.append(Text(quoted(instruction, glyphs)))
    return lines or [Text("nothing is prescribed", "dim")]


def _what_if(decision: Explanation) -> Iterator[RenderableType]:
    if all(step.ended == "not asked" for step in decision.trace):
        return
    if decision.counterfactuals is None:
        yield Text("not in the log: finding out takes deciding again", "dim")
        return
    if not decision.counterfactuals:
        fired = any(step.fired for step in decision.trace)
        why = "whichever one signal is left out" if fired else "no signal could be left out"
        yield Text.assemble((" + ".join(decision.routes), "bold"), (f"  {why}", "dim"))
        return
    texts = {reason.code: reason.text for step in decision.trace for reason in step.reasons}
    grid = columns("", "wrap")
    last = ""
    for other in decision.counterfactuals:
        becomes = f"{other.route} {other.confidence:.2f}"
        without = Text.assemble(("without ", "dim"), visible(texts.get(other.signal, other.signal)))
        grid.add_row(Text("" if becomes == last else becomes, "bold"), without)
        last = becomes
    yield grid
