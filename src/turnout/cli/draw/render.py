"""The terminal picture of a decision: the question, the track of layers, the policy, and what would change it.

One rendering: it says what `Decision.json()` says, in the same words. Colour repeats what signs and words say already
(green stands, yellow falls short, red failed), so the picture reads the same without it.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from turnout.core.decision import Decision, Step
from turnout.core.policy import Policy
from turnout.core.query import NOT_KEPT
from turnout.core.router import Router

from .evidence import WEIGHED_CHARACTERS, Evidence, gather
from .layer import details, fired, verdict_style
from .outcome import spell, style_of
from .screen import Glyphs, say, visible
from .shape import Rail

# Cells that a layer's sign and the track take before its name.
TRACK = 4

_STYLES = {"accepted": "bold green", "held": "bold yellow", "passed": "dim", "skipped": "dim"}


def summary(decision: Decision, glyphs: Glyphs) -> list[Text]:
    """A decision in two lines: what, how sure, by whom; and why."""
    who, how = spell(decision.outcome)
    first = Text.assemble(
        (" + ".join(decision.routes), "bold"),
        f"  {sureness(decision)}  by {decision.by}  ",
        (f"{decision.outcome} ({who}, {how})", "dim"),
    )
    reasons = [*decision.reasons, *(reason for part in decision.parts for reason in part.reasons)]
    why = f" {glyphs.dot} ".join(visible(reason.text) for reason in reasons)
    return [first, Text(f"  {why}", "dim")]


def sureness(decision: Decision) -> str:
    """Only a fitted probability is called confidence."""
    return f"{'confidence' if decision.calibrated else 'score'} {decision.confidence:.2f}"


def elapsed(ns: int, glyphs: Glyphs) -> str:
    if ns < 1_000_000:
        return f"{ns / 1e3:.1f} {glyphs.micro}" if ns < 10_000 else f"{ns / 1e3:.0f} {glyphs.micro}"
    return f"{ns / 1e6:.1f} ms" if ns < 1_000_000_000 else f"{ns / 1e9:.1f} s"


def picture(decision: Decision, glyphs: Glyphs, width: int) -> RenderableType:
    """The whole explanation, `width` cells wide."""
    profile = decision.profile
    title = Text.assemble((profile.name, "bold"), (f" {glyphs.dot} {profile.hash}", "dim"))
    head = Rule(title, characters=glyphs.line, style="dim", align="left")
    return Group(head, "", Rail(Group(*_story(decision, glyphs, width - 2)), "  "))


def _story(decision: Decision, glyphs: Glyphs, width: int) -> Iterator[RenderableType]:
    evidence = gather(decision, glyphs.dots)
    yield _question(decision, evidence, glyphs)
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
    yield from _cascade(decision, evidence, glyphs, width)
    yield ""
    yield _facts(decision, evidence, glyphs)


def _question(decision: Decision, evidence: Evidence, glyphs: Glyphs) -> Text:
    """The user's own words, what matched underlined."""
    if NOT_KEPT in evidence.reading.notes:
        return Text("(a question whose text was not kept)", "dim")
    if not evidence.excerpt:
        return Text("(a blank question)", "dim")
    words = Text(visible(evidence.excerpt))
    for span in evidence.spans:
        words.stylize("underline cyan", span.start, span.end)
    opening, closing = glyphs.quotes
    text = Text.assemble((opening, "dim"), words, (closing, "dim"))
    if evidence.cut:
        text.append(f"  ({len(evidence.reading.words):,} characters)", "dim")
    earlier = len(decision.query.turns) - 1
    if earlier > 0:
        text.append(f"  (after {earlier} earlier turn{'s' * (earlier > 1)})", "dim")
    return text


def _answer(decision: Decision, glyphs: Glyphs) -> Table:
    who, how = spell(decision.outcome)
    dot = f" {glyphs.dot} "
    grid = Table.grid(padding=(0, 3))
    grid.add_column(overflow="fold")
    grid.add_column()
    facts = [sureness(decision), f"by {decision.by}", elapsed(decision.elapsed_ns, glyphs)]
    letters = decision.outcome
    style = style_of(letters)
    grid.add_row(Text(" + ".join(decision.routes), style), Text(dot.join(facts)))
    spelled = Text.assemble((letters[0], "bold"), f" {who}", (dot, "dim"), (letters[1], "bold"), f" {how}")
    grid.add_row(Text(letters, style), spelled)
    return grid


def _cascade(decision: Decision, evidence: Evidence, glyphs: Glyphs, width: int) -> Iterator[RenderableType]:
    """Each layer a station on a track; the decision leaves it where it was made."""
    layers = decision.profile.layers
    names = max([len(place.id) for place in layers] + [len(decision.by)])
    signs = {"accepted": glyphs.accepted, "held": glyphs.held, "passed": glyphs.passed, "skipped": glyphs.passed}
    done = False
    for number, step in enumerate(decision.steps, 1):
        done = step.ended == "accepted"
        style = _STYLES.get(step.ended, "bold red")
        sign = Text(signs.get(step.ended, glyphs.fault), style)
        rail = Text(" " if done else glyphs.rail, "dim")
        took = elapsed(step.elapsed_ns, glyphs) if step.elapsed_ns else ""
        station = _station(step.place.id, step.ended, style, _found(step), took=took, names=names)
        drawn = list(details(decision.profile, step, evidence, glyphs, width - TRACK))
        if drawn and not (done and number == len(layers)):
            drawn.append("")
        yield Rail(Group(station, *drawn), sign, rail, TRACK)
    for place in layers[len(decision.steps) :]:
        yield Rail(_station(place.id, "not asked", "dim", Text(), names=names), Text(glyphs.unasked, "dim"), "", TRACK)
    if not done:
        said = visible(decision.remarks[0].text) if decision.remarks else ""
        style = style_of(decision.outcome)
        end = Text.assemble((" + ".join(decision.routes), style), (f"  {said}", "dim"))
        how = "held" if decision.chosen is not None else ""
        yield Rail(_station(decision.by, how, style, end, names=names), Text(glyphs.leave, style), "", TRACK)


def _station(name: str, ended: str, style: str, found: Text, *, took: str = "", names: int) -> Table:
    row = Table.grid(padding=(0, 2), expand=True)
    row.add_column(width=names, no_wrap=True)
    row.add_column(width=9, no_wrap=True)
    row.add_column(ratio=1)
    row.add_column(justify="right", no_wrap=True, style="dim")
    row.add_row(Text(name, "dim" if style == "dim" else "bold"), Text(ended, style), found, took)
    return row


def _found(step: Step) -> Text:
    if step.verdict is not None:
        return Text(" + ".join(step.verdict.routes), verdict_style(step))
    return Text(visible(step.fault.detail) if step.fault is not None else "", "dim")


def _facts(decision: Decision, evidence: Evidence, glyphs: Glyphs) -> Table:
    """What was done around the layers, what follows, and what would have changed it."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    # The first remark of a decision no layer made stands at the end of the track.
    made = bool(decision.steps) and decision.steps[-1].ended == "accepted"
    sections = (
        ("also", (Text(visible(remark.text)) for remark in decision.remarks[0 if made else 1 :])),
        ("policy", policy_lines(decision.policy, glyphs)),
        ("what if", _what_if(decision, evidence)),
    )
    for title, lines in sections:
        for number, line in enumerate(lines):
            grid.add_row("" if number else title, line)
    return grid


def policy_lines(policy: Policy, glyphs: Glyphs) -> list[Text]:
    """What the route means: short facts on one line, a sentence on its own."""
    facts = msgspec.to_builtins(policy)
    facts |= facts.pop("extra", {})
    sentence = facts.pop("instruction", None)
    short = [
        Text.assemble((f"{name} ", "dim"), (say(value, glyphs), "" if value is False else "bold"))
        for name, value in facts.items()
    ]
    lines = [Text(f" {glyphs.dot} ").join(short)] if short else []
    if sentence is not None:
        opening, closing = glyphs.quotes
        lines.append(Text(f"{opening}{visible(sentence)}{closing}"))
    return lines or [Text("nothing is prescribed", "dim")]


def _what_if(decision: Decision, evidence: Evidence) -> Iterator[RenderableType]:
    if not decision.steps:
        return
    if all(step.place.call is None for step in decision.steps):
        yield Text("not known: no layer of it can be asked again", "dim")
        return
    if len(evidence.reading.words) > WEIGHED_CHARACTERS:
        yield Text("not asked: the text is too long to decide it again without each signal", "dim")
        return
    others = list(Router(decision.profile).counterfactuals(decision))
    if not others:
        spoke = any(map(fired, decision.steps))
        why = "whichever one signal is left out" if spoke else "no signal could be left out"
        yield Text.assemble((" + ".join(decision.routes), "bold"), (f"  {why}", "dim"))
        return
    texts = {reason.code: reason.text for step in decision.steps for reason in step.reasons}
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column()
    last = ""
    for other in others:
        becomes = f"{other.route} {other.confidence:.2f}"
        without = Text.assemble(("without ", "dim"), visible(texts.get(other.signal, other.signal)))
        grid.add_row(Text("" if becomes == last else becomes, "bold"), without)
        last = becomes
    yield grid
