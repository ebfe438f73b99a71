"""A profile: the layers, gates, policies, contract and fallback of one router, compiled from one TOML file.

It is immutable, and identified by a hash of everything that can change a decision, so that a decision can name the
exact profile it came from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

from msgspec import Raw, Struct

from .contract import Rule
from .errors import QueryError, UnknownRoute
from .layer import Cost, JudgesBy, Layer
from .policy import Policy, Share
from .query import Query, Reading
from .verdict import Gate, Reason, Who


class Adjust(Protocol):
    """Changes the chosen routes after the cascade and gives a reason; `None` leaves them as they are."""

    def __call__(self, reading: Reading, routes: tuple[str, ...], /) -> tuple[tuple[str, ...], Reason] | None: ...


class Part(Struct, frozen=True):
    """One piece of a compound question."""

    role: str
    """`part`, `condition` or `remainder`."""
    query: Query
    then: str = ""
    """The consequence of a condition: the reply is framed around it."""


class PatternSource(Struct, frozen=True, array_like=True):
    """A pattern the profile looks for; its position is the id of its hits."""

    code: str
    """The code of the signal or rule it belongs to."""
    kind: str
    source: str
    """The RE2 source."""


Needs = Literal[JudgesBy, "install"]
"""What a layer judges by. `install`: its kind is not installed, or the model it would serve is missing."""


class PlacedLayer(Struct, frozen=True):
    """A layer in its place in a profile. `call` is None if it cannot be asked here."""

    id: str
    kind: str
    cost: Cost
    who: Who
    gate: Gate
    deadline_ms: float
    call: Layer | None
    held_text: str = ""
    """What people read when its gate held a verdict back; `{confidence}` stands for the number."""
    absent: str = ""
    """Why `call` is None, unless the kind is not installed."""
    max_shift: int | None = None
    """How many routes away from the best held verdict this layer may move the decision, if routes are ordered."""
    needs: Needs | None = None
    """A layer passes without being asked if the reading lacks what it judges by."""


class Fallback(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What happens when no verdict passes its gate."""

    route: str
    confidence: Share = 0.5
    held: Share | None = None
    """Use the best held verdict instead, if its confidence is at least this."""
    held_by: tuple[str, ...] = ()
    """The layers whose held verdicts may be used; empty: all layers."""


class Default(Struct, frozen=True, forbid_unknown_fields=True):
    """What happens without asking any layer: the router is off, or the query is blank."""

    route: str
    confidence: Share = 1.0


class Profile(Struct, frozen=True, eq=False):
    """Everything a router decides by."""

    name: str
    hash: str
    description: str
    routes: tuple[str, ...]
    layers: tuple[PlacedLayer, ...]
    policies: Mapping[str, Policy]
    fallback: Fallback
    read: Callable[[Query], Reading]
    """Makes the reading of a query: extract, fold, scan."""
    mute: Callable[[Reading, frozenset[str]], Reading]
    """The same reading without some signals, for counterfactuals."""
    off: Default | None = None
    """What every query gets while the router is switched off."""
    blank: Default | None = None
    """What a blank query gets; None: it goes through the layers like any other."""
    ordered: bool = False
    """Whether routes are listed from the cheapest to the most expensive, so that a ceiling makes sense."""
    deadline_ms: float = 400.0
    contract: tuple[Rule, ...] = ()
    adjust: tuple[Adjust, ...] = ()
    split: Callable[[Reading], tuple[Part, ...]] | None = None
    declared: tuple[Callable[[str], None], ...] = ()
    """Checks of a declared route, one for each layer that judges by it; they raise QueryError."""
    undeclared: frozenset[str] = frozenset()
    """Names that declare no route, such as `auto`, case-folded."""
    remarks: tuple[str, ...] = ()
    """What the loader noticed that is not a mistake: kinds not installed, settings applied."""
    notices: tuple[str, ...] = ()
    """What the user should change: old names of profiles."""
    resolved: Mapping[str, Any] = {}
    """The whole profile as plain data, after `extends` and settings."""
    patterns: tuple[PatternSource, ...] = ()
    """All patterns, in the order of a reading's hits."""
    encoded_policies: Mapping[str, Raw] = {}
    """Each policy as JSON, encoded once."""

    def routes_up_to(self, ceiling: str) -> tuple[str, ...]:
        """The routes that a caller with this ceiling may have, cheapest first.

        Raises QueryError if the ceiling is not a route or the routes have no order.
        """
        if ceiling not in self.routes:
            raise UnknownRoute("ceiling", ceiling, self.routes)
        if not self.ordered:
            raise QueryError(
                f"ceiling {ceiling!r}: the routes of profile {self.name!r} have no order; "
                "leave the ceiling out, or say ordered = true in the profile"
            )
        return self.routes[: self.routes.index(ceiling) + 1]

    def lower_ceiling(self, asked: str | None, granted: str | None) -> str | None:
        """The lower of the ceiling a request asks for and its key's, which is ignored if it is not a route here."""
        if granted is None or granted not in self.routes or not self.ordered:
            return asked
        above = asked in self.routes and asked not in self.routes_up_to(granted)
        return granted if asked is None or above else asked

    def __repr__(self) -> str:
        return f"Profile({self.name!r}, hash={self.hash!r}, routes={list(self.routes)})"
