"""A profile: the layers, gates, policies, contract and fallback of one router, compiled from one TOML file.

Immutable once built and identified by a hash of everything that can change a decision, so that a decision can name the
exact profile it came from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Protocol

from msgspec import Meta, Raw, Struct

from .contract import Rule
from .errors import QueryError, UnknownRoute
from .layer import Cost, JudgesBy, Layer
from .policy import Policy
from .query import Query, Reading
from .verdict import Gate, Reason, Who

Share = Annotated[float, Meta(ge=0.0, le=1.0)]


class Adjust(Protocol):
    """Changes the chosen routes after the cascade, and says so; `None` leaves them as they are."""

    def __call__(self, reading: Reading, routes: tuple[str, ...], /) -> tuple[tuple[str, ...], Reason] | None: ...


class Part(Struct, frozen=True):
    """One piece of a compound question, and what it is to the whole: `part`, `condition`, `remainder`."""

    role: str
    query: Query
    then: str = ""
    """What a condition leads to: the reply is framed around it."""


class PatternSource(Struct, frozen=True, array_like=True):
    """Something a profile looks for; a hit's id is its place among them."""

    code: str
    """Of the signal or rule it belongs to."""
    kind: str
    source: str
    """As RE2 reads it."""


Needs = Literal[JudgesBy, "install"]
"""What a layer judges by. `install`: no installed package provides its kind, or what it would serve is not there."""


class Placed(Struct, frozen=True):
    """A layer in its place in a profile. `call` is None where no installed package provides the kind."""

    id: str
    kind: str
    cost: Cost
    who: Who
    gate: Gate
    deadline_ms: float
    call: Layer | None
    held_text: str = ""
    """How people read a verdict of this layer that its gate held back; `{confidence}` stands for the number."""
    absent: str = ""
    """Why `call` is None, where it is not for want of a package."""
    max_shift: int | None = None
    """How many routes away from the best held verdict this layer may move the decision, where routes are ordered."""
    needs: Needs | None = None
    """A layer is not asked about a reading that lacks what it judges by; it passes."""


class Fallback(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What happens when no verdict passes its gate."""

    route: str
    confidence: Share = 0.5
    held: Share | None = None
    """Use the best held verdict instead, if its confidence is at least this."""
    held_by: tuple[str, ...] = ()
    """Only what these layers held is used; all of them where none is named."""


class Default(Struct, frozen=True, forbid_unknown_fields=True):
    """What happens without asking any layer: the router is off, or there is nothing to read."""

    route: str
    confidence: Share = 1.0


class Profile(Struct, frozen=True, eq=False):
    name: str
    hash: str
    description: str
    routes: tuple[str, ...]
    layers: tuple[Placed, ...]
    policies: Mapping[str, Policy]
    fallback: Fallback
    read: Callable[[Query], Reading]
    """Extract, fold, scan: from what was asked to what the layers read."""
    mute: Callable[[Reading, frozenset[str]], Reading]
    """The same reading with some signals left out, for counterfactuals."""
    off: Default | None = None
    """Set when the router is switched off: every query gets this."""
    blank: Default | None = None
    """What a query with nothing to read gets; None sends it through the layers like any other."""
    ordered: bool = False
    """Routes are listed from the cheapest to the most expensive, so a ceiling makes sense."""
    deadline_ms: float = 400.0
    contract: tuple[Rule, ...] = ()
    adjust: tuple[Adjust, ...] = ()
    split: Callable[[Reading], tuple[Part, ...]] | None = None
    declared: tuple[Callable[[str], None], ...] = ()
    """Checks of a declared route, one for each layer that takes one; a check refuses by raising a QueryError."""
    undeclared: frozenset[str] = frozenset()
    """Names that declare nothing, such as `auto`, case-folded."""
    remarks: tuple[str, ...] = ()
    """What the loader noticed that is no mistake: kinds not installed, settings applied."""
    notices: tuple[str, ...] = ()
    """What the user who named the profile, or its author, should change: names it no longer has."""
    resolved: Mapping[str, Any] = {}
    """The whole profile as plain data, after `extends` and settings."""
    patterns: tuple[PatternSource, ...] = ()
    """Everything it looks for, in the order of a reading's hits."""
    encoded_policies: Mapping[str, Raw] = {}
    """Each policy as JSON, written once: a policy never changes while its profile lives."""

    def routes_up_to(self, ceiling: str) -> tuple[str, ...]:
        """The routes a caller with this ceiling may have, cheapest first.

        Raises QueryError for a ceiling that is no route, and for any where routes have no order.
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
        """The lower of the ceiling a request asks for and the one its key has, which binds only where it is a route."""
        if granted is None or granted not in self.routes or not self.ordered:
            return asked
        above = asked in self.routes and asked not in self.routes_up_to(granted)
        return granted if asked is None or above else asked

    def __repr__(self) -> str:
        return f"Profile({self.name!r}, hash={self.hash!r}, routes={list(self.routes)})"
