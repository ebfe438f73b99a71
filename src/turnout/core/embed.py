"""What a layer may ask of an embedder, whichever model is behind it: texts in, unit vectors out.

Vectors of different embedders cannot be compared, so every embedder has a unique name, which is stored with vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class Embeds(Protocol):
    """Turns texts into vectors. A text's vector does not depend on the other texts in the call."""

    @property
    def name(self) -> str:
        """Its unique name, such as `minilm-l6-v2-int8-1a2b3c4d`."""
        ...

    @property
    def width(self) -> int:
        """The dimension of its vectors."""
        ...

    def embed(self, texts: Sequence[str], /) -> Any:
        """A NumPy array of float32 with one unit vector per text; a blank text has a row of zeros."""
        ...
