"""One table, two renderings: rich for the terminal, Markdown for a file. The cells are the same strings in both."""

from collections.abc import Sequence
from typing import NamedTuple

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text


class Table(NamedTuple):
    title: str
    columns: Sequence[str]  # the first is a name and stands left, the others are figures
    rows: Sequence[Sequence[str]]
    note: str = ""


def show(console: Console, table: Table) -> None:
    grid = Grid(title=table.title, title_justify="left", title_style="bold")
    for position, column in enumerate(table.columns):
        grid.add_column(column, justify="right" if position else "left")
    for row in table.rows:
        grid.add_row(*(Text(cell, style="red" if cell.startswith("FAIL") else "") for cell in row))
    console.print(grid)
    if table.note:
        console.print(table.note, style="dim", markup=False, highlight=False)
    console.print()


def markdown(table: Table) -> str:
    lines = [
        f"## {table.title}\n",
        line(table.columns),
        line(["---", *("---:" for _ in table.columns[1:])]),
        *(line(row) for row in table.rows),
    ]
    return "\n".join(lines) + "\n" + (f"\n{table.note}\n" if table.note else "")


def line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
