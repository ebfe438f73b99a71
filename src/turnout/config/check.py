"""Finds every mistake in a document, each with file, line, path and, for a misspelt name, a suggestion.

There are two passes. `conform` compares the tree with the types: unknown, missing and misspelt keys, wrong types,
numbers out of range. `Checker` adds what types cannot express: whether routes, policies, gates and contract fit
together.
"""

from __future__ import annotations

import copy
import functools
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
import re2
from msgspec import Struct, inspect

from turnout.core.conceal import CREDENTIAL, conceal
from turnout.core.contract import OBSERVED, Rule, violations
from turnout.core.errors import Problem, suggest
from turnout.core.policy import Policy
from turnout.core.registry import Kind, Supplies, broken, kinds
from turnout.core.verdict import contain
from turnout.text.match import Lexicon, Regex, UnwrappableRegex, to_re2

from .document import Document, Tree, leaves, parse
from .lines import Path
from .model import AdjustHead, LayerHead, ProfileFile

Found = tuple[Path, str]
UNKNOWN_KEY = "unknown key"

# Inspecting a type takes longer than comparing a tree with it.
type_info = functools.cache(inspect.type_info)

_NAMES = {"str": "a string", "int": "a whole number", "float": "a number", "bool": "true or false", "dict": "a table"}
# Profiles are shared, so a secret in one would leak.
_SECRET_KEY = re.compile(r"(?:^|_)(?:api_?key|secret|token|password)$", re.IGNORECASE)


def conform(value: Any, wanted: inspect.Type, path: Path = ()) -> Iterator[Found]:
    """Every place where the value is not of the type."""
    match wanted:
        case inspect.StructType():
            yield from _conform_struct(value, wanted, path)
        case inspect.UnionType(types=types):
            yield from _conform_union(value, types, path)
        case inspect.LiteralType(values=values):
            if value not in values:
                allowed = ", ".join(repr(item) for item in values)
                yield path, f"{_show(value)} is not allowed{suggest(str(value), map(str, values))} (one of {allowed})"
        case inspect.DictType(value_type=item) if isinstance(value, dict):
            for key, entry in value.items():
                yield from conform(entry, item, (*path, key))
        case inspect.VarTupleType(item_type=item, min_length=least) if isinstance(value, list):
            if least is not None and len(value) < least:
                yield path, f"needs at least {least} item{'s' * (least > 1)}"
            for i, entry in enumerate(value):
                yield from conform(entry, item, (*path, i))
        case inspect.TupleType(item_types=items) if isinstance(value, list):
            if len(value) != len(items):
                yield path, f"needs exactly {len(items)} items, found {len(value)}"
            for i, (entry, item) in enumerate(zip(value, items, strict=False)):
                yield from conform(entry, item, (*path, i))
        case inspect.StrType(pattern=pattern) if isinstance(value, str):
            if pattern is not None and not re.search(pattern, value):
                yield (
                    path,
                    f"{_show(value)} is not a name: use letters, digits, '_', '.' and '-', a letter or digit first",
                )
        case inspect.BoolType() if isinstance(value, bool):
            pass
        case inspect.IntType() if isinstance(value, int) and not isinstance(value, bool):
            yield from _in_range(value, wanted, path)
        case inspect.FloatType() if isinstance(value, int | float) and not isinstance(value, bool):
            yield from _in_range(value, wanted, path)
        case inspect.AnyType():
            pass
        case _:
            yield path, f"must be {_name(wanted)}, found {_show(value)}"


def _conform_struct(value: Any, wanted: inspect.StructType, path: Path) -> Iterator[Found]:
    if not isinstance(value, dict):
        yield path, f"must be a table, found {_show(value)}"
        return
    fields = {field.encode_name: field for field in wanted.fields}
    for key, entry in value.items():
        if key in fields:
            yield from conform(entry, fields[key].type, (*path, key))
        elif wanted.forbid_unknown_fields:
            known = suggest(key, fields) or f" (known: {', '.join(sorted(fields))})"
            yield (*path, key), f"{UNKNOWN_KEY}{known}"
    for name, field in fields.items():
        if field.required and name not in value:
            yield path, f"{name!r} is missing"


def _conform_union(value: Any, types: Iterable[inspect.Type], path: Path) -> Iterator[Found]:
    """Nothing if one alternative fits; else the mistakes of the alternative with the fewest."""
    tried = [list(conform(value, kind, path)) for kind in types if not isinstance(kind, inspect.NoneType)]
    if all(tried):
        whole = [found for found in tried if found[0][0] == path]
        if len(whole) == len(tried) > 1:
            names = " or ".join(_name(kind) for kind in types if not isinstance(kind, inspect.NoneType))
            yield path, f"must be {names}, found {_show(value)}"
        else:
            # On a tie, mistakes inside the value: a table with a wrong number in it was not meant as a string.
            yield from min(tried, key=lambda found: (len(found), found[0][0] == path))


def _in_range(value: float, wanted: inspect.IntType | inspect.FloatType, path: Path) -> Iterator[Found]:
    # TOML integers have 64 bits; the larger ones that tomllib accepts do not fit into a float or JSON.
    if (isinstance(value, int) and abs(value) >= 2**63) or not math.isfinite(value):
        yield path, f"must be an ordinary number, found {_show(value)}"
    elif wanted.ge is not None and value < wanted.ge:
        yield path, f"{value} is below {wanted.ge:g}, the least it may be"
    elif wanted.le is not None and value > wanted.le:
        yield path, f"{value} is above {wanted.le:g}, the most it may be"
    elif wanted.gt is not None and value <= wanted.gt:
        yield path, f"{value} must be more than {wanted.gt:g}"


def _name(wanted: inspect.Type) -> str:
    match wanted:
        case inspect.VarTupleType() | inspect.TupleType():
            return "a list"
        case inspect.DictType() | inspect.StructType():
            return "a table"
        case _:
            return _NAMES.get(type(wanted).__name__.removesuffix("Type").lower(), "something else")


def _show(value: object) -> str:
    # Python refuses to print integers of thousands of digits.
    if isinstance(value, int) and value.bit_length() > 256:
        return "a number of that many digits"
    # Concealed before it is cut, because half a credential is not recognised.
    text = conceal(repr(value))
    return text if len(text) <= 40 else f"{text[:37]}…"


class Checker:
    """Finds the problems of one merged profile document."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.tree = document.tree
        self.found: list[Found] = []

    def problems(self) -> list[Problem]:
        self.found += conform(self.tree, type_info(ProfileFile))
        self.found += _secrets(self.tree)
        routes = self.tree.get("routes")
        self.routes = tuple(route for route in routes if isinstance(route, str)) if isinstance(routes, list) else ()
        self._check_routes()
        self._check_layers("layers")
        self._check_layers("adjust")
        self._check_contract()
        # The contract and the routes can only be judged if everything has the right type.
        if not self.found:
            self._check_whole(msgspec.convert(self.tree, ProfileFile))
        # In line order, without repeats.
        places = {found: self.document.place(found[0]) for found in self.found}
        ordered = sorted(places, key=lambda found: (places[found].file, places[found].line or 0))
        return [self.document.problem(path, message) for path, message in ordered]

    def _check_routes(self) -> None:
        for i, route in enumerate(self.routes):
            if route in self.routes[:i]:
                self.found.append((("routes", i), f"{route!r} is listed twice"))
        policy = self.tree.get("policy")
        if isinstance(policy, dict) and self.routes:
            self._refer(("policy",), policy, keys=True)
            for route in self.routes:
                if route not in policy:
                    self.found.append((("policy",), f"route {route!r} has no policy: add [policy.{route}]"))
            for name, entry in policy.items():
                chain = entry.get("chain") if isinstance(entry, dict) else None
                self._refer(("policy", name, "chain"), chain if isinstance(chain, list) else [])
        for key in ("fallback", "off", "blank"):
            entry = self.tree.get(key)
            if isinstance(entry, dict):
                self._refer((key, "route"), [entry.get("route")])
        fallback = self.tree.get("fallback")
        named = fallback.get("held_by") if isinstance(fallback, dict) else None
        layers = [layer_id(entry) for _, entry in self._tables("layers")]
        for i, name in enumerate(named if isinstance(named, list) else ()):
            path = ("fallback", "held_by", i)
            # An extending profile may drop a layer that the inherited list still names.
            if name not in layers and self.document.place(path).file == self.document.file:
                self.found.append((path, f"there is no layer {name!r}{suggest(str(name), layers)}"))
        if self.tree.get("enabled") is False and "off" not in self.tree:
            self.found.append((("enabled",), "is false, so `off` must say which route every query gets"))
        for i, rule in self._tables("contract"):
            when = rule.get("when")
            if isinstance(when, dict) and isinstance(when.get("route"), list):
                self._refer(("contract", i, "when", "route"), when["route"])

    def _tables(self, section: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """The tables of an array, with their index. Other items are reported by `conform`."""
        entries = self.tree.get(section)
        for i, entry in enumerate(entries if isinstance(entries, list) else ()):
            if isinstance(entry, dict):
                yield i, entry

    def _refer(self, path: Path, names: Iterable[object], *, keys: bool = False) -> None:
        """Report each name that is not a route."""
        for name in names:
            if isinstance(name, str) and name not in self.routes:
                hint = suggest(name, self.routes) or f" ({', '.join(dict.fromkeys(self.routes))})"
                self.found.append(((*path, name) if keys else path, f"{name!r} is not a route{hint}"))

    def _check_layers(self, section: str) -> None:
        seen: set[str] = set()
        for i, entry in self._tables(section):
            path: Path = (section, i)
            head = LayerHead if section == "layers" else AdjustHead
            self.found += conform(entry, type_info(head), path)
            name = entry.get("kind")
            if not isinstance(name, str):
                continue
            layer = layer_id(entry)
            if layer in seen:
                self.found.append((path, f"{layer!r} is the id of an earlier entry: give this one an id of its own"))
            seen.add(layer)
            kind = kinds().get(name)
            if kind is not None and kind.stage != section.removesuffix("s"):
                right = "[[adjust]]" if kind.stage == "adjust" else "[[layers]]"
                self.found.append(((*path, "kind"), f"{name!r} belongs under {right}"))
            elif kind is not None:
                self._check_kind(kind, entry, own_keys(entry, head), path)
            elif section == "adjust" or entry.get("optional") is not True:
                known = suggest(name, kinds()) or f" (installed: {', '.join(sorted(kinds()))})"
                hint = "install the package that provides it"
                if section == "layers":
                    hint += ", or set optional = true to load without it"
                if broken():
                    hint += f" (could not be imported: {'; '.join(f'{at}: {why}' for at, why in broken().items())})"
                self.found.append(((*path, "kind"), f"no installed package provides {name!r}{known}; {hint}"))

    def _check_kind(self, kind: Kind, entry: Mapping[str, Any], own: dict[str, Any], path: Path) -> None:
        wanted = type_info(kind.config)
        mistakes = list(conform(own, wanted))
        self.found += [((*path, *where), message) for where, message in mistakes]
        # An unknown key must not hide other mistakes, so the rest is checked without it.
        own = _without(own, [where for where, message in mistakes if message.startswith(UNKNOWN_KEY)])
        if list(conform(own, wanted)):
            return
        config = msgspec.convert(own, kind.config)
        self.found += [((*path, *parse(where)), text) for where, text in kind.faults(config, self.routes)]
        self._check_patterns(kind, config, entry, path)

    def _check_patterns(self, kind: Kind, config: Struct, entry: Mapping[str, Any], path: Path) -> None:
        """Report patterns that RE2 refuses because they cannot run in linear time (look-around, back-references)."""
        lexicon = Lexicon()
        # A layer with a mistake may fail to build; the mistake itself has been reported.
        contain(kind.build, config, Supplies(self.routes, lexicon))
        text = self.tree.get("text")
        wrap = not isinstance(text, dict) or text.get("fold", "unicode") == "unicode"
        options = re2.Options()
        options.log_errors = False
        for pattern in lexicon.patterns:
            if not isinstance(pattern, Regex):
                continue
            try:
                re2.compile(to_re2(pattern, wrap=wrap), options=options)
            except (re2.error, UnwrappableRegex) as error:
                reason = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
                where = next((where for where, value in leaves(entry, path) if value == pattern.source), path)
                self.found.append((where, f"not a pattern RE2 can run in linear time: {reason}"))

    def _check_contract(self) -> None:
        """Check the facts that rules name, whatever else is wrong with the file."""
        known = (*Policy.__struct_fields__, *OBSERVED)
        seen: set[str] = set()
        for i, entry in self._tables("contract"):
            if list(conform(entry, type_info(Rule))):
                continue
            rule = msgspec.convert(entry, Rule)
            if rule.id in seen:
                self.found.append((("contract", i, "id"), f"{rule.id!r} is the id of an earlier rule"))
            seen.add(rule.id)
            for key, names in (("never", rule.forbidden), ("must", rule.must), ("at_most", rule.at_most)):
                for name in names:
                    if name not in known:
                        hint = suggest(name, known) or f" (known: {', '.join(known)})"
                        self.found.append((("contract", i, key), f"{name!r} is not a fact a rule can speak of{hint}"))

    def _check_whole(self, profile: ProfileFile) -> None:
        for route, policy in profile.policy.items():
            facts = {name: value for name, value in msgspec.to_builtins(policy).items() if not isinstance(value, list)}
            for violation in violations(profile.contract, (route,), facts):
                self.found.append((("policy", route, violation.fact), f"breaks {violation.rule}: {violation.text}"))
        reachable = {profile.fallback.route}
        reachable |= {default.route for default in (profile.blank, profile.off) if default is not None}
        for entry in profile.layers:
            kind = kinds().get(entry["kind"])
            if kind is None:
                return
            produced = kind.produces(msgspec.convert(own_keys(entry), kind.config))
            if produced is None and kind.who != "D":
                return  # this kind may choose any route
            reachable |= produced or set()
        for i, route in enumerate(profile.routes):
            if route not in reachable:
                self.found.append((("routes", i), f"no layer can choose {route!r}: it is reached only when declared"))


def _without(tree: dict[str, Any], paths: Iterable[Path]) -> dict[str, Any]:
    """A copy of the tree without these paths."""
    tree = copy.deepcopy(tree)
    for *parents, last in paths:
        place: Any = tree
        for part in parents:
            place = place[part]
        del place[last]
    return tree


def layer_id(entry: Mapping[str, Any]) -> str:
    """A layer's id: the first word of its kind if the profile gives none."""
    return str(entry.get("id") or str(entry.get("kind", "")).split(".")[0])


def own_keys(entry: Mapping[str, Any], head: type[Struct] = LayerHead) -> dict[str, Any]:
    """An entry's own keys, without those that every entry of its section may have."""
    return {key: value for key, value in entry.items() if key not in head.__struct_fields__}


def _secrets(tree: Tree) -> Iterator[Found]:
    for path, value in leaves(tree):
        named = isinstance(path[-1], str) and _SECRET_KEY.search(path[-1])
        if isinstance(value, str) and (named or CREDENTIAL.search(value)):
            yield path, 'looks like a secret: write { env = "NAME" } or { file = "path" } instead'
