"""Rails, bars and rulers: the few shapes a picture is made of. Each is as wide as it is told to be, no wider."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from .screen import PLAIN, Glyphs, visible

# Wider than this, lines of prose and bars are harder to follow, not easier.
MAX_WIDTH = 100
# Below this nothing can be aligned; the terminal wraps what it must.
MIN_WIDTH = 40


class Screen(Console):
    """The terminal. Nothing is highlighted or marked up by guesswork: colour means what a renderer says it means."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False)
        self.glyphs = PLAIN if self.options.ascii_only else Glyphs()
        """Line drawing where the output's encoding has it, ASCII elsewhere."""
        self.room = max(MIN_WIDTH, min(self.width, MAX_WIDTH))
        """The width of pictures and tables."""

    def say(self, *parts: str | tuple[str, str] | Text) -> None:
        """A line of text, parts of it with a style. It is not broken, so that a command in it can be copied."""
        self.print(Text.assemble(*parts), soft_wrap=True)

    def facts(self, known: Iterable[tuple[str, str]]) -> None:
        """What each thing is called, and what it is."""
        grid = columns("dim", "fold")
        for name, said in known:
            grid.add_row(name, Text(visible(said)))
        self.inset(grid, "")

    def inset(self, body: RenderableType, by: str = "  ") -> None:
        """Something drawn, moved to the right."""
        self.print(Rail(body, by), width=self.room)


class Rail:
    """Something with a mark before its first line and a rail before the others. No line ends in spaces.

    Marks are of one style each, and of characters one cell wide.
    """

    def __init__(
        self, body: RenderableType, first: Text | str = "", rest: Text | str | None = None, width: int = 0
    ) -> None:
        self.body = body
        self.first = Text(first) if isinstance(first, str) else first
        rest = self.first if rest is None else rest
        self.rest = Text(rest) if isinstance(rest, str) else rest
        self.width = max(self.first.cell_len, self.rest.cell_len, width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        inner = options.update(width=max(options.max_width - self.width, 10))
        for number, line in enumerate(console.render_lines(self.body, inner, pad=False)):
            mark = self.first if number == 0 else self.rest
            lead = Segment(mark.plain.ljust(self.width), console.get_style(mark.style))
            yield from _trimmed([lead, *line])
            yield Segment.line()


def _trimmed(line: list[Segment]) -> list[Segment]:
    line = list(line)
    while line:
        text = line[-1].text.rstrip()
        if text:
            line[-1] = Segment(text, line[-1].style)
            break
        line.pop()
    return line


def branched(bodies: Sequence[RenderableType], glyphs: Glyphs) -> Iterator[RenderableType]:
    """Each on a branch of its own, on one rail."""
    for number, body in enumerate(bodies, 1):
        last = number == len(bodies)
        mark = Text(f"{glyphs.corner if last else glyphs.branch} ", "dim")
        yield Text(glyphs.rail, "dim")
        yield Rail(body, mark, Text(" " if last else glyphs.rail, "dim"), 3)


def columns(*described: str) -> Table:
    """Columns side by side, each described in words: its style; `right` for numbers; `wrap` or `fold` (within words,
    too) for what may take several lines, which nothing else does."""
    table = Table.grid(padding=(0, 2))
    for words in described:
        _add_column(table, "", words)
    return table


def headed(described: Mapping[str, str]) -> Table:
    """Columns with titles, each described as in `columns`."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for title, words in described.items():
        _add_column(table, title, words)
    return table


def _add_column(table: Table, title: str, words: str) -> None:
    said = words.split()
    table.add_column(
        title,
        style=" ".join(word for word in said if word not in ("right", "wrap", "fold")),
        justify="right" if "right" in said else "left",
        overflow="fold" if "fold" in said else "ellipsis",
        no_wrap="wrap" not in said and "fold" not in said,
    )


def style_of(outcome: str) -> str:
    """Green for clean, red where a layer broke, yellow for anything between."""
    return "bold green" if outcome[1] == "-" else "bold red" if outcome[1] in "teix" else "bold yellow"


def bar(share: float, width: int, glyphs: Glyphs, style: str) -> Text:
    """A bar from the left, to half a cell."""
    halves = round(max(0.0, min(share, 1.0)) * width * 2)
    text = glyphs.full * (halves // 2) + (glyphs.left_half if halves % 2 else "")
    return Text(text, style)


def signed_bar(share: float, left: int, right: int, glyphs: Glyphs, styles: tuple[str, str]) -> Text:
    """A bar that leaves an axis to the left (below zero) or to the right."""
    full, half = divmod(round(min(abs(share), 1.0) * (left if share < 0 else right) * 2) or 1, 2)
    if share < 0:
        below = (glyphs.right_half if half else "") + glyphs.full * full
        return Text.assemble((below.rjust(left), styles[0]), (glyphs.axis, "dim"))
    above = glyphs.full * full + (glyphs.left_half if half else "")
    return Text.assemble(" " * left, (glyphs.axis, "dim"), (above, styles[1]))


def gauge(found: float, needed: float, width: int, glyphs: Glyphs, style: str) -> Text:
    """How far something got on the way from 0 to 1, and where it had to get."""
    reached = round(max(0.0, min(found, 1.0)) * width)
    text = Text()
    mark = min(round(max(0.0, min(needed, 1.0)) * width), width - 1)
    for cell in range(width):
        if cell == mark:
            text.append(glyphs.need, "bold")
        elif cell < reached:
            text.append(glyphs.track, style)
        else:
            text.append(glyphs.rest, "dim")
    return text


def ruler(
    value: float, edges: Sequence[float], names: Sequence[str], chosen: str, *, width: int, glyphs: Glyphs, style: str
) -> list[Text]:
    """A value inside its bands: names above the line, edges below it, the value on it."""
    span = edges[-1] - edges[0]
    # The outer bands have no end; they get the room of an average inner one, more if the value lies further out.
    room = span / (len(edges) - 1) if span else max(abs(edges[0]), 0.25)
    low = min(edges[0] - room, value - room / 8)
    high = max(edges[-1] + room, value + room / 8)

    def column(x: float) -> int:
        return round((x - low) / (high - low) * (width - 1))

    places = _spread([column(edge) for edge in edges], width)
    starts = [0, *(place + 1 for place in places)]
    ends = [*places, width]
    above, line, below = Text(), Text(), Text()
    for name, start, end in zip(names, starts, ends, strict=True):
        label = _fit(name, end - start, glyphs)
        gap = end - start - cell_len(label)
        above.append(" " * (gap // 2))
        above.append(label, style if name == chosen else "dim")
        above.append(" " * (gap - gap // 2 + 1))
    band = sum(value >= edge for edge in edges)
    # Rounding must not move the value across an edge it has not reached, nor onto one.
    here = max(starts[band], min(column(value), ends[band] - 1))
    # Where something else decided, the value stands in a band that did not win, and must not look as if it had.
    here_style = style if names[band] == chosen else "bold"
    for cell in range(width):
        if cell == here:
            line.append(glyphs.here, here_style)
        elif cell in places:
            line.append(glyphs.edge)
        else:
            line.append(glyphs.line, "dim")
    for edge, place in zip(edges, places, strict=True):
        label = f"{edge:.2f}"
        start = min(max(place - len(label) // 2, 0), width - len(label))
        if start > below.cell_len or not below:  # labels that would run into each other are left out
            below.append(" " * (start - below.cell_len))
            below.append(label, "dim")
    return [above, line, below]


def _spread(places: list[int], width: int) -> list[int]:
    """The same cells, moved apart so that every band between and beside them has one of its own."""
    least = 1
    for number, place in enumerate(places):
        places[number] = max(place, least)
        least = places[number] + 2
    most = width - 2
    for number in reversed(range(len(places))):
        places[number] = min(places[number], most)
        most = places[number] - 2
    return places


def _fit(name: str, width: int, glyphs: Glyphs) -> str:
    """The name, or as much of it as there is room for."""
    return name if cell_len(name) <= width else set_cell_size(name, width - 1) + glyphs.dots[:1]
