"""`turnout show`: a logged decision, drawn as by `turnout explain`, and what happened afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec
from rich.table import Table
from rich.text import Text

from turnout.core.errors import TurnoutError
from turnout.explain.explanation import Explanation, explain_logged
from turnout.runtime.log import reading_log, records_with, row_form
from turnout.store import BreachRow, Feedback, Logged, Outcome, Records
from turnout.text.count import counted

from ..draw.picture import fact_table, picture
from ..draw.screen import Glyphs, clock, console, dollars, missing_text, quoted, visible, write_json
from ..option import AllTenantsOption, DecisionArgument, JsonOption, TenantOptions


class Story(NamedTuple):
    """A decision and everything the log has on it."""

    row: Logged
    decision: Explanation
    outcome: Outcome | None
    feedback: list[Feedback]
    breaches: list[BreachRow]

    def form(self) -> dict[str, object]:
        row = row_form(self.row)
        return {
            "decision": row.pop("decision"),
            "logged": row,
            "outcome": None if self.outcome is None else msgspec.structs.asdict(self.outcome),
            "feedback": self.feedback,
            "breaches": [msgspec.structs.asdict(breach) for breach in self.breaches],
        }


def show(
    ident: DecisionArgument = "last",
    /,
    *,
    json: JsonOption = False,
    all_tenants: AllTenantsOption = False,
    where: TenantOptions = TenantOptions(),
) -> int:
    with reading_log(where) as store:
        if all_tenants and where.tenant:
            raise TurnoutError("--all-tenants cannot be combined with others: leave out --tenant")
        tenant = store.all_records().get(ident).tenant if all_tenants else where.tenant
        story = tell(records_with(store, ident, tenant), ident)
    if json:
        write_json(story.form())
        return 0
    screen = console()
    glyphs, width = screen.glyphs, screen.room
    screen.print(picture(story.decision, glyphs, width), width=width)
    if not story.decision.parts:  # the picture of parts ends with an empty line
        screen.print()
    screen.inset(aftermath(story, glyphs))
    return 0


def tell(records: Records, ident: str) -> Story:
    row = records.get(ident)
    decision = explain_logged(row, records.profile(row.profile_hash), records.patterns(row.profile_hash))
    ids = (row.id, *(part.id for part in decision.parts))
    breaches = [breach for ident in ids for breach in records.breaches(decision=ident)]
    return Story(row, decision, records.outcome(row.id), records.feedback(row.id), breaches)


def aftermath(story: Story, glyphs: Glyphs) -> Table:
    """The log's facts about a decision, its outcome, the feedback on it, and the rules it broke."""
    return fact_table(
        ("logged", _logged(story.row, glyphs)),
        ("happened", _happened(story.outcome, glyphs)),
        ("feedback", [_feedback(one, glyphs) for one in story.feedback]),
        ("breach", [_breach(one, glyphs) for one in story.breaches]),
    )


def _logged(row: Logged, glyphs: Glyphs) -> Iterator[Text]:
    facts = [clock(row.created_ms), row.id]
    facts += [f"tenant {visible(row.tenant)}"] if row.tenant else []
    facts += [f"key {visible(row.key_id)}"] if row.key_id else []
    facts += [f"session {visible(row.session)}"] if row.session else []
    facts += [missing_text(row, glyphs.dots)] if row.question is None else []
    yield Text(f" {glyphs.dot} ").join(map(Text, facts))
    if row.parent_id is not None:
        yield Text(f"a part of {row.parent_id}")


def _happened(outcome: Outcome | None, glyphs: Glyphs) -> Iterator[Text]:
    if outcome is None:
        yield Text("not recorded", "dim")
        return
    known: list[tuple[str, str]] = [("", outcome.ended)]
    known += [(name, visible(value)) for name, value in (("model", outcome.model), ("slot", outcome.slot)) if value]
    if outcome.attempts is not None:
        known.append(("", counted(outcome.attempts, "attempt")))
    if outcome.elapsed_ms is not None:
        known.append(("", f"{outcome.elapsed_ms:,.0f} ms"))
    yield _facts(known, glyphs)
    tokens = (("in", outcome.input_tokens), ("out", outcome.output_tokens))
    known = [(f"tokens {name}", f"{count:,}") for name, count in tokens if count is not None]
    amounts = (
        ("cost", outcome.cost_usd),
        ("deciding", outcome.classifier_usd),
        ("with the most expensive slot", outcome.baseline_usd),
    )
    known += [(name, dollars(amount)) for name, amount in amounts if amount is not None]
    if known:
        yield _facts(known, glyphs)
    known = [] if outcome.retrieval is None else [("retrieval", "yes" if outcome.retrieval else "no")]
    known += [("sources", visible(", ".join(outcome.sources) or "none"))] if outcome.sources is not None else []
    known += [("fallback", visible(outcome.fallback))] if outcome.fallback is not None else []
    known += [("cap reached", visible(outcome.cap_reached))] if outcome.cap_reached is not None else []
    if known:
        yield _facts(known, glyphs)
    for name, value in outcome.extra.items():
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        yield _facts([(visible(name), visible(text))], glyphs)


def _facts(known: list[tuple[str, str]], glyphs: Glyphs) -> Text:
    facts = (Text.assemble((f"{name} " if name else "", "dim"), (value, "bold")) for name, value in known)
    return Text(f" {glyphs.dot} ", "dim").join(facts)


def _feedback(given: Feedback, glyphs: Glyphs) -> Text:
    verdict = f"should be {visible(given.should_be)}" if given.should_be is not None else given.verdict
    text = Text.assemble((verdict, "bold green" if given.verdict == "right" else "bold yellow"))
    if given.note:
        text.append(f"  {quoted(given.note, glyphs)}")
    return text.append(f"  by {visible(given.by)}, {clock(given.created_ms)}", "dim")


def _breach(breach: BreachRow, glyphs: Glyphs) -> Text:
    return Text.assemble(
        (visible(breach.rule), "bold red"),
        f"  {visible(breach.explanation)}",
        (f"  {glyphs.dot} found {visible(breach.found)}, noticed at the {breach.phase}", "dim"),
    )
