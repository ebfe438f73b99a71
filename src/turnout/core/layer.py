"""What a layer is, and all that it may provide: one protocol with defaults.

A plain callable that takes a reading is a layer, too. It is adapted once, where it is made, so that the holder of a
layer may use all of the protocol without asking what there is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Literal, Protocol, get_args

from .model import Demand
from .query import Query, Reading
from .verdict import Reason, Verdict

Cost = Literal["free", "cpu", "network"]
"""`free` runs inline, `cpu` inline or in a thread (long inputs), `network` is awaited under a deadline."""

JudgesBy = Literal["declared", "notes"]
"""What a layer may depend on: a declared route, notes of the reading."""


class Layer(Protocol):
    """Judges a reading; `None` means: not mine. A class that inherits from it gets the defaults."""

    cost: Cost | None = None
    """How this one is run, where its kind says otherwise: it may have to wait for a server here and not there."""
    judges_by: JudgesBy | None = None
    """The layer is not asked about a reading that has none of it; it passes."""
    absent: str = ""
    """Why there is nothing to ask: the profile passes the layer by, and says so."""
    lacks: str = ""
    """The embedder it would answer better with, where it answers without."""
    artefact: str | None = None
    """The digest of the trained model that it serves, which the profile's hash must cover."""
    undeclared: frozenset[str] = frozenset()
    """Names that declare no route, such as `auto`, case-folded; for a layer that judges by declared routes."""

    def __call__(self, reading: Reading, /) -> Any:
        """A verdict, a fault or `None`; or something to await that gives one."""
        ...

    @property
    def awaits(self) -> bool:
        """Whether calling it only begins the work, which is then awaited."""
        return asyncio.iscoroutinefunction(type(self).__call__)

    def explain(self, verdict: Verdict, /) -> tuple[Reason, ...]:
        """A verdict's evidence as reasons, for the log and for readers."""
        return ()

    def elaborate(self, verdict: Verdict, /) -> tuple[Reason, ...]:
        """Reasons that take longer to find: a reader of a decision waits for them, the log does not."""
        return ()

    def demand(self, query: Query, /) -> Demand | None:
        """The most that it may ask a model about a query, so that a key's budget can pay for it; None: nothing."""
        return None

    def validate(self, declared: str, /) -> None:
        """Refuse a declared route by raising a QueryError; for a layer that judges by them."""
        return


Judge = Callable[[Reading], Verdict | Awaitable[Verdict | None] | None]
"""The least that a layer can be."""

Explain = Callable[[Verdict], tuple[Reason, ...]]


def adapt(layer: Any) -> Layer:
    """The layer itself, or a plain callable as a layer."""
    return layer if Layer in type(layer).__mro__ else PlainLayer(layer)


class PlainLayer(Layer):
    """A callable that does not inherit from `Layer`, with as much of the protocol as it has."""

    def __init__(self, judge: Any) -> None:
        self.judge = judge
        for name in ("absent", "lacks", "artefact", "undeclared", "explain", "elaborate", "demand", "validate"):
            given = getattr(judge, name, None)
            if given is not None:
                setattr(self, name, given)
        cost, judges_by = getattr(judge, "cost", None), getattr(judge, "judges_by", None)
        self.cost = cost if cost in get_args(Cost) else None
        self.judges_by = judges_by if judges_by in get_args(JudgesBy) else None

    def __call__(self, reading: Reading, /) -> Any:
        return self.judge(reading)

    @property
    def awaits(self) -> bool:
        return any(map(asyncio.iscoroutinefunction, (self.judge, type(self.judge).__call__)))


class Absent(Layer):
    """Stands where something would judge and is not there."""

    def __init__(self, why: str) -> None:
        self.absent = why

    def __call__(self, reading: Reading, /) -> None:
        return None
