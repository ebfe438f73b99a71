"""What several commands about labelled questions take: a model's folder, and shares such as `2%`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from turnout.core.errors import QueryError

ModelOption = Annotated[
    str | None,
    Parameter(name="--model", metavar="FOLDER", help="The trained model in that folder, not the one that serves."),
]


def read_share(text: str, option: str) -> float:
    """`2%`, `2 %` or `0.02`."""
    said = text.strip()
    try:
        share = float(said.removesuffix("%")) / 100 if said.endswith("%") else float(said)
    except ValueError:
        share = float("nan")
    if not 0.0 < share < 1.0:
        raise QueryError(f"{option} {text!r}: a share between 0 and 1, such as 2% or 0.02")
    return share


def told(share: float) -> str:
    """`2%`, `99.5%`"""
    return f"{100 * share:.6g}%"
