"""What a layer may ask of an embedder: texts in, unit vectors out. Which model makes them is not its affair.

Vectors of two embedders do not compare, so an embedder has a name that says exactly which one it is, and what keeps
vectors keeps that name beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class Embeds(Protocol):
    """Turns texts into vectors. The same text gives the same vector, whatever other texts it comes with."""

    @property
    def name(self) -> str:
        """Its identity, as `minilm-l6-v2-int8-1a2b3c4d`."""
        ...

    @property
    def width(self) -> int:
        """How many numbers a vector has."""
        ...

    def embed(self, texts: Sequence[str], /) -> Any:
        """A NumPy array of float32, one row of length 1 for each text; a blank text has a row of zeros."""
        ...
