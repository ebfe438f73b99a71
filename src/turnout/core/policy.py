"""What a route means for the application that acts on the decision.

A field that the profile leaves out is `None`: the application decides. Values of its own go into `extra`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*\Z")]
"""An id that is part of a reason's dotted code."""
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]


class Policy(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    image: bool | None = None
    history: bool | None = None
    history_turns: Count | None = None
    """How many past turns are sent; 0 with `history` on means all."""
    memory: bool | None = None
    notes: bool | None = None
    retrieval: bool | None = None
    sources: tuple[str, ...] | None = None
    model: str | None = None
    """The model slot that answers."""
    chain: tuple[str, ...] | None = None
    """Routes whose slots are tried in order when a provider fails, starting with this one."""
    respond: str | None = None
    """The kind of response, if the profile has several."""
    max_sentences: Positive | None = None
    max_tokens: Positive | None = None
    instruction: str | None = None
    extra: Mapping[str, str | int | float | bool] = {}
