"""The picture of `turnout stats`: shares over time, routes, outcomes, latency and money."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from turnout.config.champion import SHIPPED
from turnout.explain.explanation import WHO, spell
from turnout.learn.registry import ChampionChange
from turnout.runtime.traffic import STRETCHES, Backlog, Stretch
from turnout.store import Bucket, Spent, Stats
from turnout.store.keys import KeyUse
from turnout.text.count import counted

from .picture import elapsed, fact_table
from .screen import Glyphs, dollars, visible
from .shape import Rail, bar, columns, headed, style_of

# Rows of the picture; older ones are only in the sums.
SHOWN = 31
# Routes, outcomes and models that are listed; the others are added up.
LISTED = 8
# Cells of a share's bar beside a number.
SHARE = 20
# The order of layers in a bar, by who decides: those that ask a model are at the right end.
ORDER = "NDCRKSEFLA"
# A sign and a colour for each layer, in the bar's order; with more layers they repeat.
_SIGNS = "█▓▒░▚▞"
_PLAIN_SIGNS = "#=+-:."
_COLOURS = ("green", "cyan", "blue", "yellow", "magenta", "white")


def report(
    found: Stats, stretch: Stretch, waiting: Backlog, glyphs: Glyphs, width: int, changes: Sequence[ChampionChange] = ()
) -> RenderableType:
    """The picture. `changes` are the promotions and rollbacks of students, drawn between the rows."""
    profiles = ", ".join(map(visible, found.profiles))
    title = Text.assemble((profiles, "bold"), (f" {glyphs.dot} {counted(found.decisions, 'decision')}", "dim"))
    title.truncate(width - 4, overflow="ellipsis")
    head = Rule(title, characters=glyphs.line, style="dim", align="left")
    return Group(head, "", Rail(Group(*_sections(found, stretch, waiting, glyphs, width - 2, changes)), "  "))


def _sections(
    found: Stats, stretch: Stretch, waiting: Backlog, glyphs: Glyphs, width: int, changes: Sequence[ChampionChange]
) -> Iterator[RenderableType]:
    marks = Marks(found, glyphs)
    yield _over_time(found, stretch, marks, glyphs, width, changes)
    yield ""
    yield marks.legend(found)
    busy = [bucket for bucket in found.buckets if bucket.decisions]
    if len(busy) > 1 and found.model_share:
        first, last = (percent(bucket.model_share, 1) for bucket in (busy[0], busy[-1]))
        yield Text(f"a model decided {first} of the first {stretch} and {last} of the last", "dim")
    yield ""
    yield fact_table(
        ("routes", [_shares(found.routes, found.decisions, glyphs), ""]),
        ("outcomes", [_outcomes(found, glyphs), ""]),
        ("asked", _asked(found, glyphs)),
        ("latency", [_latency(found, glyphs)]),
        ("money", _money(found, glyphs)),
        ("waiting", _waiting(waiting)),
    )


class Marks:
    """The sign and colour of each layer."""

    def __init__(self, found: Stats, glyphs: Glyphs) -> None:
        signs = _SIGNS if glyphs.full == "█" else _PLAIN_SIGNS
        self.layers = sorted(found.layers, key=lambda layer: (ORDER.find(found.letters.get(layer, "")), layer))
        self.sign = {layer: signs[number % len(signs)] for number, layer in enumerate(self.layers)}
        self.style = {layer: _COLOURS[number % len(_COLOURS)] for number, layer in enumerate(self.layers)}

    def stacked(self, shares: Mapping[str, int], width: int) -> Text:
        """One bar of all the layers' shares, exactly `width` cells wide."""
        text = Text()
        total, count, drawn = sum(shares.values()), 0, 0
        for layer in self.layers:
            count += shares.get(layer, 0)
            # The end of each share is rounded, so that the cells always add up.
            end = round(count / total * width)
            text.append(self.sign[layer] * (end - drawn), self.style[layer])
            drawn = end
        return text

    def legend(self, found: Stats) -> Text:
        entries = [
            Text.assemble(
                (f"{self.sign[layer]} ", self.style[layer]),
                (visible(layer), "bold"),
                f" {percent(found.layers[layer], found.decisions)}",
            )
            for layer in self.layers
        ]
        return Text("   ").join(entries)


def _over_time(
    found: Stats, stretch: Stretch, marks: Marks, glyphs: Glyphs, width: int, changes: Sequence[ChampionChange]
) -> Table:
    rows = _every(found.buckets, stretch)
    shown = rows[-SHOWN:]
    most = max(bucket.decisions for bucket in shown)
    names = [_name(bucket.start_ms, stretch) for bucket in shown]
    first, second, last = max(map(len, names)), max(len(f"{most:,}"), len("decisions")), len("model")
    room = max(width - first - second - last - 6, 10)
    grid = columns("dim", "right", "", "right")
    grid.columns[2].width = room
    dim = "dim"
    grid.add_row(stretch, Text("decisions", dim), Text("decided by", dim), Text("model", dim))
    starts = [*(bucket.start_ms for bucket in shown[1:]), math.inf]
    for name, bucket, until in zip(names, shown, starts, strict=True):
        # A change is drawn above the row of its time, the first in which it can show.
        for change in changes:
            if bucket.start_ms <= _changed_ms(change) < until:
                grid.add_row("", Text(glyphs.arrow, dim), Text(_changed(change), dim), "")
        if not bucket.decisions:
            grid.add_row(name, Text(glyphs.dot, dim), "", "")
            continue
        share = Text(percent(bucket.model_share, 1), "bold" if bucket.model_share else dim)
        grid.add_row(name, f"{bucket.decisions:,}", marks.stacked(bucket.layers, room), share)
    if len(rows) > len(shown):
        grid.add_row(Text(glyphs.dots), "", Text(f"and {len(rows) - len(shown)} before that", dim), "")
    total = Text(percent(found.model_share, 1), "bold" if found.model_share else dim)
    if len(shown) > 1:
        grid.add_row("all", Text(f"{found.decisions:,}", "bold"), marks.stacked(found.layers, room), total)
    return grid


def _changed_ms(change: ChampionChange) -> float:
    try:
        return datetime.fromisoformat(change.at).replace(tzinfo=UTC).timestamp() * 1000
    except ValueError:
        return -1.0


def _changed(change: ChampionChange) -> str:
    model = "the shipped model" if change.to == SHIPPED else f"model {change.to[:8]}"
    return f"{model} serves{' again' * (change.kind == 'rollback')}"


def _every(buckets: tuple[Bucket, ...], stretch: Stretch) -> list[Bucket]:
    """The buckets, with empty ones where there were no decisions."""
    rows: list[Bucket] = []
    for bucket in buckets:
        # A long time without decisions is not drawn hour by hour.
        while rows and len(rows) < 10 * SHOWN and rows[-1].start_ms + STRETCHES[stretch] < bucket.start_ms:
            rows.append(Bucket(rows[-1].start_ms + STRETCHES[stretch], 0, {}, 0.0))
        rows.append(bucket)
    return rows


def _name(start_ms: int, stretch: Stretch) -> str:
    # Rounded: a change to summer time in between must not make it the day before.
    start = datetime.fromtimestamp(start_ms / 1000) + timedelta(hours=0 if stretch == "hour" else 2)
    return start.strftime({"hour": "%m-%d %H:00", "day": "%Y-%m-%d", "week": "%Y-%m-%d"}[stretch])


def percent(part: float, whole: float) -> str:
    """A share in per cent; a share between 0 and 1 is never shown as 0% or 100%."""
    share = 100 * part / whole
    if 0 < share < 1:
        return "<1%"
    return ">99%" if 99 < share < 100 else f"{share:.0f}%"


def _shares(counts: Mapping[str, int], total: int, glyphs: Glyphs) -> Table:
    grid = columns("fold", "right", "right", "")
    for name, count in _listed(counts):
        drawn = bar(count / total, SHARE, glyphs, "cyan")
        grid.add_row(Text(visible(name), "bold"), f"{count:,}", percent(count, total), drawn)
    return grid


def _listed(counts: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    ranked = list(counts.items())
    shown = len(ranked) if len(ranked) <= LISTED else LISTED - 1
    yield from ranked[:shown]
    if rest := ranked[shown:]:
        yield f"{len(rest)} others", sum(count for _, count in rest)


def _asked(found: Stats, glyphs: Glyphs) -> Iterator[RenderableType]:
    """How often each model was asked for a decision, whatever came of it."""
    if found.asked:
        named = {name or "unknown model": count for name, count in found.asked.items()}
        yield _shares(named, found.decisions, glyphs)
        yield ""


def _outcomes(found: Stats, glyphs: Glyphs) -> Table:
    grid = columns("", "right", "right", "wrap")
    for letters, count in _listed(found.outcomes):
        known = len(letters) == 2 and letters[0] in WHO
        meaning = ", ".join(spell(letters)) if known else ""
        style = style_of(letters) if known else ""
        grid.add_row(Text(letters, style), f"{count:,}", percent(count, found.decisions), Text(meaning, "dim"))
    return grid


def _latency(found: Stats, glyphs: Glyphs) -> Text:
    times = (Text.assemble((f"{name} ", "dim"), (elapsed(us, glyphs), "bold")) for name, us in found.latency_us.items())
    return Text(f" {glyphs.dot} ").join(times)


def _money(found: Stats, glyphs: Glyphs) -> Iterator[RenderableType]:
    answers = sum(spent.answers for spent in found.spent)
    if not answers:
        yield Text("unknown: nothing was written down about the answers", "dim")
        return
    yield _by_model(found.spent, glyphs)
    yield ""
    priced = sum(one.priced for one in found.spent)
    compared = sum(one.compared for one in found.spent)
    costs, deciding = _total(one.cost_usd for one in found.spent), _total(one.classifier_usd for one in found.spent)
    yield _amount("spent", costs, f"known for {priced:,} of {counted(answers, 'answer')}")
    if deciding is None:
        yield Text("deciding: no model with a known price was asked", "dim")
    else:
        yield _amount("deciding", deciding, "")
    yield _amount("saved", found.saved_usd, f"against the most expensive slot, known for {compared:,} of {answers:,}")


def _total(amounts: Iterable[float | None]) -> float | None:
    """The sum of the known amounts; None if none is known."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known else None


def _amount(name: str, amount: float | None, note: str) -> Text:
    text = Text.assemble((f"{name} ", "dim"), (dollars(amount), "bold"))
    return text.append(f"  {note}", "dim") if amount is not None and note else text


def _by_model(spent: tuple[Spent, ...], glyphs: Glyphs) -> Table:
    grid = columns("fold", "right", "right", "right")
    dim = "dim"
    grid.add_row(Text("model", dim), Text("answers", dim), Text("tokens in, out", dim), Text("cost", dim))
    ranked = sorted(spent, key=lambda one: -one.answers)
    for one in ranked[:LISTED]:
        name = Text(visible(one.model or one.slot or "unknown"), "bold")
        if one.slot and one.model:
            name.append(f" {visible(one.slot)}", dim)
        if one.ended != "answered":
            name.append(f" {one.ended}", "yellow")
        counts = [f"{count:,}" if count is not None else "unknown" for count in (one.input_tokens, one.output_tokens)]
        tokens = counts[0] if counts == ["unknown"] * 2 else ", ".join(counts)
        grid.add_row(name, f"{one.answers:,}", tokens, dollars(one.cost_usd))
    if len(ranked) > LISTED:
        rest = ranked[LISTED:]
        grid.add_row(Text(f"and {len(rest)} more", dim), f"{sum(one.answers for one in rest):,}", "", "")
    return grid


def by_key(used: Sequence[KeyUse]) -> RenderableType:
    """A row for each key: its decisions, its spending, and when it was last used."""
    titles = {"key": "", "name": "fold", "tenant": "fold", "decisions": "right", "spent": "right", "last": "right"}
    table = headed(titles)
    for use in used:
        tenant = "(its own)" if use.id and use.id == use.tenant else visible(use.tenant)
        when = datetime.fromtimestamp(use.last_ms / 1000).strftime("%Y-%m-%d %H:%M")
        numbers = (f"{use.decisions:,}", dollars(use.spent_usd), when)
        table.add_row(use.id or "(none)", visible(use.name), tenant, *numbers)
    return Rail(table, "")


def _waiting(waiting: Backlog) -> Iterator[Text]:
    if waiting.spool_bytes:
        yield Text(f"{waiting.spool_bytes:,} bytes of decisions are not in the database yet", "yellow")
    if waiting.rejected:
        yield Text(f"{counted(waiting.rejected, 'row')} no database takes: see {visible(waiting.folder)}", "bold red")
