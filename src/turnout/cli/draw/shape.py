"""The screen, and the shapes pictures are made of: rails, bars, gauges and rulers. None is wider than its width."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from .screen import PLAIN, Glyphs, visible

# In wider output, prose and bars are harder to follow.
MAX_WIDTH = 100
# Below this nothing can be aligned; the terminal wraps what it must.
MIN_WIDTH = 40
# Often enough for seconds that are counted in tenths.
REDRAWS_A_SECOND = 8


class Screen(Console):
    """The terminal, without Rich's automatic highlighting and markup: only our own code sets styles."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False)
        self.glyphs = PLAIN if self.options.ascii_only else Glyphs()
        """Line drawing if the output's encoding has it, else ASCII."""
        self.room = max(MIN_WIDTH, min(self.width, MAX_WIDTH))
        """The width of pictures and tables."""

    def say(self, *parts: str | tuple[str, str] | Text) -> None:
        """Print a line of text, parts of it with a style. It is not wrapped, so that a command in it can be copied."""
        self.print(Text.assemble(*parts), soft_wrap=True)

    def facts(self, facts: Iterable[tuple[str, str]]) -> None:
        """Print names and values in two columns."""
        grid = columns("dim", "fold")
        for name, value in facts:
            grid.add_row(name, Text(visible(value)))
        self.inset(grid, "")

    def inset(self, body: RenderableType, by: str = "  ") -> None:
        """Print something indented."""
        self.print(Rail(body, by), width=self.room)

    def prose(self, body: RenderableType) -> None:
        """Print text wrapped to a readable width on a terminal; elsewhere, as wide as the output is."""
        self.print(body, width=self.room if self.is_terminal else None)

    @contextlib.contextmanager
    def redrawn(self, body: RenderableType, *, transient: bool = False) -> Iterator[None]:
        """Redraw something on a terminal while the work inside goes on; elsewhere it is not shown."""
        if not self.is_terminal:
            yield
            return
        from rich.live import Live

        with Live(body, console=self, refresh_per_second=REDRAWS_A_SECOND, transient=transient):
            yield


class Rail:
    """Puts a mark before the first line of something and a rail before the others. No line ends in spaces.

    Each mark has one style, and its characters are one cell wide.
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
    while line:
        last = line.pop()
        if text := last.text.rstrip():
            return [*line, Segment(text, last.style)]
    return line


def branched(bodies: Sequence[RenderableType], glyphs: Glyphs) -> Iterator[RenderableType]:
    """The bodies as branches of one rail."""
    for number, body in enumerate(bodies, 1):
        last = number == len(bodies)
        mark = Text(f"{glyphs.corner if last else glyphs.branch} ", "dim")
        yield Text(glyphs.rail, "dim")
        yield Rail(body, mark, Text(" " if last else glyphs.rail, "dim"), 3)


def columns(*described: str) -> Table:
    """A table without titles. A column is described in words: its style; `right` for numbers; `wrap`, or `fold` (within
    words, too), if a cell may take several lines."""
    table = Table.grid(padding=(0, 2))
    for words in described:
        _add_column(table, "", words)
    return table


def headed(described: Mapping[str, str]) -> Table:
    """A table with titles; columns are described as in `columns`."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for title, words in described.items():
        _add_column(table, title, words)
    return table


def _add_column(table: Table, title: str, description: str) -> None:
    words = description.split()
    table.add_column(
        title,
        style=" ".join(word for word in words if word not in ("right", "wrap", "fold")),
        justify="right" if "right" in words else "left",
        overflow="fold" if "fold" in words else "ellipsis",
        no_wrap="wrap" not in words and "fold" not in words,
    )


def style_of(outcome: str) -> str:
    """Green for a clean outcome, red if a layer failed, yellow for anything between."""
    return "bold green" if outcome[1] == "-" else "bold red" if outcome[1] in "teix" else "bold yellow"


def bar(share: float, width: int, glyphs: Glyphs, style: str) -> Text:
    """A bar from the left, in steps of half a cell."""
    full, half = divmod(round(max(0.0, min(share, 1.0)) * width * 2), 2)
    return Text(glyphs.full * full + glyphs.left_half * half, style)


def signed_bar(share: float, left: int, right: int, glyphs: Glyphs, styles: tuple[str, str]) -> Text:
    """A bar from an axis to the left (below zero) or to the right."""
    full, half = divmod(round(min(abs(share), 1.0) * (left if share < 0 else right) * 2) or 1, 2)
    axis = (glyphs.rail, "dim")
    if share < 0:
        below = glyphs.right_half * half + glyphs.full * full
        return Text.assemble((below.rjust(left), styles[0]), axis)
    return Text.assemble(" " * left, axis, (glyphs.full * full + glyphs.left_half * half, styles[1]))


def gauge(value: float, needed: float, width: int, glyphs: Glyphs, style: str) -> Text:
    """A value on a track from 0 to 1, and a mark at the value needed."""
    reached = round(max(0.0, min(value, 1.0)) * width)
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
    """A value among its bands: names above the line, edges below it, the value on it."""
    span = edges[-1] - edges[0]
    # The outer bands have no end: they are as wide as an average inner one, or wider if the value lies further out.
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
    # Rounding must not move the value onto or across an edge it has not reached.
    here = max(starts[band], min(column(value), ends[band] - 1))
    # If something else decided, the value is in a band that did not win, and must not look as if it had.
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
        if start > below.cell_len or not below:  # labels that would overlap are left out
            below.append(" " * (start - below.cell_len))
            below.append(label, "dim")
    return [above, line, below]


def _spread(places: list[int], width: int) -> list[int]:
    """The same cells, moved apart so that every band between and beside them has at least one."""
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
    """The name, cut to a width."""
    return name if cell_len(name) <= width else set_cell_size(name, width - 1) + glyphs.dots[:1]
