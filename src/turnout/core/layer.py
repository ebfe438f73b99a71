"""What a layer is: one protocol with defaults.

A plain callable that takes a reading is a layer too. It is adapted once, when it is built, so that everything else can
rely on the whole protocol.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Literal, Protocol, get_args

from .model import Demand
from .query import Query, Reading
from .verdict import Reason, Verdict

Cost = Literal["free", "cpu", "network"]
"""`free` runs inline, `cpu` inline or (long inputs) in a thread, `network` is awaited under a deadline."""

JudgesBy = Literal["declared", "notes"]
"""What a layer may depend on: a declared route, or the reading's notes."""


class Layer(Protocol):
    """Judges a reading; returns `None` to pass. A class that inherits from it gets the defaults."""

    cost: Cost | None = None
    """How this layer is run, if not like its kind: it may use a server in one configuration and not in another."""
    judges_by: JudgesBy | None = None
    """The layer passes without being asked if the reading lacks this."""
    absent: str = ""
    """Why it cannot be asked at all: the profile then skips it, and reports this."""
    lacks: str = ""
    """The embedder it would answer better with, if it can do without."""
    artefact: str | None = None
    """The digest of the trained model that it serves; part of the profile's hash."""
    undeclared: frozenset[str] = frozenset()
    """Names that declare no route, such as `auto`, case-folded; for a layer that judges by declared routes."""

    def __call__(self, reading: Reading, /) -> Any:
        """A verdict, a fault or `None`, or an awaitable of one."""
        ...

    @property
    def awaits(self) -> bool:
        """Whether a call returns an awaitable."""
        return asyncio.iscoroutinefunction(type(self).__call__)

    def explain(self, verdict: Verdict, /) -> tuple[Reason, ...]:
        """A verdict's evidence as reasons, for the log and for readers."""
        return ()

    def elaborate(self, verdict: Verdict, /) -> tuple[Reason, ...]:
        """Reasons that take longer to compute: for readers, not for the log."""
        return ()

    def demand(self, query: Query, /) -> Demand | None:
        """The most it may ask a model about a query, to reserve a key's budget; None: nothing."""
        return None

    def validate(self, declared: str, /) -> None:
        """Raise a QueryError to refuse a declared route; for a layer that judges by them."""
        return


Judge = Callable[[Reading], Verdict | Awaitable[Verdict | None] | None]
"""A plain callable as a layer."""

Explain = Callable[[Verdict], tuple[Reason, ...]]


def adapt(layer: Any) -> Layer:
    """The layer itself, or a plain callable as a layer."""
    return layer if Layer in type(layer).__mro__ else PlainLayer(layer)


class PlainLayer(Layer):
    """A callable that does not inherit from `Layer`, with whatever parts of the protocol it has."""

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


class MissingLayer(Layer):
    """Takes the place of a layer that cannot be built here."""

    def __init__(self, why: str) -> None:
        self.absent = why

    def __call__(self, reading: Reading, /) -> None:
        return None
