"""What several commands about labelled questions take: a model's folder, and shares such as `2%`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from turnout.core.errors import QueryError

ModelOption = Annotated[
    str | None,
    Parameter(name="--model", metavar="FOLDER", help="The trained model in that folder, not the one that serves."),
]


def read_number(text: str, option: str) -> float:
    """`2%`, `2 %` or `0.02`; amounts, too."""
    said = text.strip()
    try:
        return float(said.removesuffix("%")) / (100 if said.endswith("%") else 1)
    except ValueError:
        raise QueryError(f"{option} {text[:40]!r} is no number: write 95%, 0.95 or an amount") from None


def read_share(text: str, option: str) -> float:
    share = read_number(text, option)
    if not 0.0 < share < 1.0:
        raise QueryError(f"{option} {text!r}: a share between 0 and 1, such as 2% or 0.02")
    return share


def told(share: float) -> str:
    """`2%`, `99.5%`"""
    return f"{100 * share:.6g}%"
