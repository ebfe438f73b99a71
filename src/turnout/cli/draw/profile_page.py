"""A profile on one page: layers and gates, fallbacks, settings, contract, and the policy of each route."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from turnout.core.profile import Default, Fallback, Profile
from turnout.core.verdict import Gate

from .screen import Glyphs, format_value, visible
from .shape import Rail, columns, headed


def page(profile: Profile, glyphs: Glyphs) -> RenderableType:
    title = Text.assemble((profile.name, "bold"), (f" {glyphs.dot} {profile.hash}", "dim"))
    head = Rule(title, characters=glyphs.line, style="dim", align="left")
    body: list[RenderableType] = [visible(profile.description), ""] if profile.description else []
    order = f" {glyphs.arrow if profile.ordered else glyphs.dot} "
    facts = columns("dim", "fold")
    facts.add_row("routes", Text(order.join(profile.routes), "bold"))
    for label, text in _defaults(profile):
        facts.add_row(label, text)
    facts.add_row("deadline", f"{profile.deadline_ms:g} ms")
    for number, remark in enumerate(profile.remarks):
        facts.add_row("" if number else "remarks", Text(visible(remark), "yellow"))
    body += [facts, "", _layers(profile, glyphs)]
    if settings := profile.resolved.get("settings"):
        body += ["", _settings(profile, settings)]
    if profile.contract:
        body += ["", _contract(profile)]
    body += ["", _policies(profile, glyphs)]
    return Group(head, "", Rail(Group(*body), "  "))


def _defaults(profile: Profile) -> Iterator[tuple[str, str]]:
    """What happens if no layer decides."""

    def describe(default: Default | Fallback) -> str:
        return f"{default.route}, score {default.confidence:.2f}"

    held = profile.fallback.held
    layers = f" of {' or '.join(profile.fallback.held_by)}" if profile.fallback.held_by else ""
    instead = f"; a held verdict{layers} of at least {held:.2f} is used instead" if held is not None else ""
    yield "fallback", describe(profile.fallback) + instead
    if profile.blank is not None:
        yield "blank", describe(profile.blank)
    if profile.off is not None:
        yield "off", f"{describe(profile.off)}: the router is switched off, every question gets this"


def _table(first: str, *others: str) -> Table:
    return headed({first: "bold", **dict.fromkeys(others, "fold")})


def _layers(profile: Profile, glyphs: Glyphs) -> Table:
    table = _table("layer", "kind", "cost", "gate")
    for place in profile.layers:
        if place.call is None:
            table.add_row(place.id, place.kind, Text("not installed", "yellow"), Text("passes", "dim"))
            continue
        cost = f"network, {place.deadline_ms:g} ms" if place.cost == "network" else place.cost
        table.add_row(place.id, place.kind, cost, Text(_gate(place.gate)))
    return table


def _gate(gate: Gate) -> str:
    needs = (("score", gate.confidence), ("margin", gate.margin))
    return " and ".join(f"{name} >= {value:.2f}" for name, value in needs if value > 0) or "none: any verdict stands"


def _settings(profile: Profile, settings: dict[str, str]) -> Table:
    table = _table("setting", "now", "stands for")
    for name, where in settings.items():
        value = _value_at(profile, where)
        shown = Text("default", "dim") if value is None else Text(visible(str(value)))
        table.add_row(name, shown, Text("\n".join(_lines(where, ".", 17)), "dim"))
    return table


def _lines(name: str, joint: str, width: int) -> list[str]:
    """A long name broken into lines of about this width, after its joints."""
    lines = [""]
    for part in name.split(joint):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part + joint
    lines[-1] = lines[-1].removesuffix(joint)
    return lines


def _value_at(profile: Profile, where: str) -> object:
    """The value at a path such as `layers.signals.accept.confidence` in the resolved profile."""
    value: object = profile.resolved
    for part in where.split("."):
        if isinstance(value, list):
            value = next((item for item in value if isinstance(item, dict) and item.get("id") == part), None)
        else:
            value = value.get(part) if isinstance(value, dict) else None
    return value


def _contract(profile: Profile) -> Table:
    table = _table("contract", "for", "says")
    for rule in profile.contract:
        never = (rule.never,) if isinstance(rule.never, str) else rule.never
        says = [f"never {name}" for name in never]
        says += [f"{name} = {value!r}" for name, value in rule.must.items()]
        says += [f"{name} <= {limit:g}" for name, limit in rule.at_most.items()]
        table.add_row(rule.id, ", ".join(rule.when.route) or "every route", rule.text or "; ".join(says))
    return table


def _policies(profile: Profile, glyphs: Glyphs) -> Table:
    """A column for each route, a row for each field that the profile sets."""
    policies = {route: msgspec.to_builtins(profile.policies[route]) for route in profile.routes}
    for policy in policies.values():
        policy.update(policy.pop("extra", {}))
    table = _table("policy", *("\n".join(_lines(route, "_", 16)) for route in policies))
    for field in dict.fromkeys(name for policy in policies.values() for name in policy):
        table.add_row(field, *(_cell(policy.get(field), glyphs) for policy in policies.values()))
    return table


def _cell(value: object, glyphs: Glyphs) -> Text:
    if value is None:
        return Text(glyphs.dot, "dim")
    return Text(format_value(value, glyphs), "" if value is False else "bold")
