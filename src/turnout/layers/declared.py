"""`declared.v1`: the caller names the route.

A declared route is logged and checked against the contract like any other. An unknown name is refused before routing,
unless the profile says to classify instead; it is never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from turnout.core.errors import UnknownRoute
from turnout.core.layer import JudgesBy, Layer
from turnout.core.query import Reading
from turnout.core.registry import Supplies, kind
from turnout.core.verdict import Reason, Verdict


class DeclaredConfig(Struct, frozen=True, forbid_unknown_fields=True):
    prefixes: tuple[str, ...] = ()
    """Prefixes that a route's name may have, such as `turnout/`."""
    aliases: Mapping[str, str] = {}
    unknown: Literal["reject", "classify"] = "reject"
    nothing: tuple[str, ...] = ()
    """Names that declare nothing, such as `auto`."""

    def faults(self, routes: tuple[str, ...]) -> list[tuple[str, str]]:
        problems = [
            (f"aliases.{name}", f"{to!r} is not a route") for name, to in self.aliases.items() if to not in routes
        ]
        seen: dict[str, str] = {}
        for name, to in (*((route, route) for route in routes), *self.aliases.items()):
            other = seen.setdefault(name.casefold(), to)
            if other != to:
                problems.append(("", f"{name!r} would mean both {other!r} and {to!r}: names are compared without case"))
        return problems


class DeclaredLayer(Layer):
    judges_by: JudgesBy | None = "declared"

    def __init__(self, config: DeclaredConfig, routes: tuple[str, ...]) -> None:
        names = {route.casefold(): route for route in routes}
        names |= {alias.casefold(): route for alias, route in config.aliases.items()}
        prefixed = {prefix.casefold() + name: route for prefix in config.prefixes for name, route in names.items()}
        self.names = prefixed | names
        self.routes = routes
        self.undeclared = frozenset(name.casefold() for name in config.nothing)
        self.rejects = config.unknown == "reject"

    def validate(self, declared: str) -> None:
        if self.rejects and declared.strip().casefold() not in self.names:
            raise UnknownRoute("declared route", declared, self.routes)

    def __call__(self, reading: Reading) -> Verdict | None:
        declared = reading.query.declared
        if declared is None:
            return None
        route = self.names.get(declared.strip().casefold())
        if route is None:
            return None
        reason = Reason("declared.route", f"the caller declared {declared.strip()[:80]}")
        return Verdict((route,), 1.0, reasons=(reason,), decisive=True)


@kind("declared.v1", cost="free", who="D")
def declared(config: DeclaredConfig, supplies: Supplies) -> DeclaredLayer:
    return DeclaredLayer(config, supplies.routes)
