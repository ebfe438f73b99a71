"""The JSON Schema (draft 2020-12) of profile files, for completion and checks in editors.

It is generated from the types that the loader checks with. What types cannot express (that a route exists, that weights
add up) only the loader finds. Every struct has two definitions: a whole one, and a *partial* one for a file that
extends another, where nothing is required and items may be dropped.
"""

from __future__ import annotations

import ast
import copy
import inspect as source_of
import textwrap
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any

import msgspec
from msgspec import Struct, inspect

from turnout import layers as _builtin_layers  # noqa: F401 - importing it registers the kinds that ship with Turnout
from turnout.core.registry import Kind, kinds

from .document import ADD_WORDS, DROP_WORDS, WORD_LISTS, WORD_TABLE
from .model import AdjustHead, LayerHead, ProfileFile

Schema = dict[str, Any]

DRAFT = "https://json-schema.org/draft/2020-12/schema"
PARTIAL = ".partial"
_REF = "#/$defs/"
_DROP = {"const": True, "description": "Take this out of the profile that is extended."}
_ADD = "Phrases to add to those of the profile that is extended."
_OUT = "Phrases to take out of those of the profile that is extended."
_BEFORE = {"type": "string", "description": "The id of the item this new one goes before."}


def profile_schema(known: Iterable[Kind] | None = None) -> Schema:
    """The schema of profile files with these kinds of layer, by default all that are installed."""
    by_name = {kind.name: kind for kind in (kinds().values() if known is None else known)}
    usable = {name: structs for name, kind in sorted(by_name.items()) if (structs := _structs(kind.config)) is not None}
    own: dict[type[Struct], None] = {}
    for structs in (_structs(ProfileFile), _structs(LayerHead), _structs(AdjustHead), *usable.values()):
        own |= dict.fromkeys(structs or ())
    names, defs = _definitions(list(own))
    for section, head, label in (("layers", LayerHead, "Layer"), ("adjust", AdjustHead, "Adjustment")):
        stage = section.removesuffix("s")
        configs = {name: names[kind.config] for name, kind in by_name.items() if kind.stage == stage and name in usable}
        open_ones = [name for name, kind in by_name.items() if kind.stage == stage and name not in usable]
        defs |= _entries(label, defs[names[head]], configs, defs, open_ones)
        items = defs[names[ProfileFile]]["properties"][section]
        items["items"] = {"$ref": f"{_REF}{label}"}
    defs |= {name + PARTIAL: _partial(definition) for name, definition in defs.items()}
    root = names[ProfileFile]
    schema: Schema = {
        "$schema": DRAFT,
        "title": "Turnout profile",
        "type": "object",
        # Repeated here for editors that do not follow conditions.
        "properties": defs[root + PARTIAL]["properties"],
        "if": {"required": ["extends"]},
        "then": {"$ref": f"{_REF}{root}{PARTIAL}"},
        "else": {"$ref": f"{_REF}{root}"},
    }
    # Through JSON and back, because defaults are tuples and structs.
    whole: Schema = msgspec.json.decode(msgspec.json.encode({**schema, "$defs": _reachable(schema, defs)}))
    return whole


def _structs(root: type[Struct]) -> list[type[Struct]] | None:
    """A struct and every struct inside it; None if JSON Schema cannot express one of its types."""
    try:
        msgspec.json.schema(root)
    except TypeError:
        return None
    found: dict[type[Struct], None] = {}
    pending: list[inspect.Type] = [inspect.type_info(root)]
    while pending:
        match pending.pop():
            case inspect.StructType(cls=cls, fields=fields) if cls not in found:
                found[cls] = None
                pending += [field.type for field in fields]
            case inspect.UnionType(types=types) | inspect.TupleType(item_types=types):
                pending += types
            case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
                pending.append(item)
            case inspect.DictType(value_type=item):
                pending.append(item)
    return list(found)


def _definitions(structs: list[type[Struct]]) -> tuple[dict[type[Struct], str], dict[str, Schema]]:
    """The name and the definition of each struct; field docstrings become descriptions."""
    refs, defs = msgspec.json.schema_components(structs, ref_template=f"{_REF}{{name}}")
    names = {struct: ref["$ref"].removeprefix(_REF) for struct, ref in zip(structs, refs, strict=True)}
    for struct, name in names.items():
        for field, note in field_notes(struct).items():
            if field in defs[name]["properties"]:
                defs[name]["properties"][field]["description"] = note
    return names, {name: _portable(definition) for name, definition in defs.items()}


def field_notes(struct: type[Struct]) -> dict[str, str]:
    """The docstring of each field of a struct; none if its source is not available."""
    try:
        tree = ast.parse(textwrap.dedent(source_of.getsource(struct)))
    except (OSError, TypeError, SyntaxError):
        return {}
    body = tree.body[0].body if tree.body and isinstance(tree.body[0], ast.ClassDef) else []
    notes = {}
    for field, below in pairwise(body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                notes[name] = " ".join(text.split())
    return notes


def _within(schema: Schema, change: Callable[[Schema], Schema]) -> Schema:
    """A copy of a schema with `change` applied to every schema directly inside it."""
    changed: Schema = {}
    for key, entry in schema.items():
        if key in ("default", "enum", "const", "examples"):
            changed[key] = entry
        elif key == "properties":
            changed[key] = {name: change(inner) for name, inner in entry.items()}
        elif isinstance(entry, dict):
            changed[key] = change(entry)
        elif isinstance(entry, list):
            changed[key] = [change(inner) if isinstance(inner, dict) else inner for inner in entry]
        else:
            changed[key] = entry
    return changed


def _portable(schema: Schema) -> Schema:
    """The schema for TOML, which has no null, and with ECMAScript patterns, in which `\\Z` would be a letter."""
    portable = _within(schema, _portable)
    if "default" in portable and portable["default"] is None:
        del portable["default"]
    if "pattern" in portable:
        portable["pattern"] = portable["pattern"].replace(r"\Z", "$")
    if "anyOf" in portable:
        portable["anyOf"] = [choice for choice in portable["anyOf"] if choice != {"type": "null"}]
        if len(portable["anyOf"]) == 1:
            portable |= portable.pop("anyOf")[0]
    return portable


def _entries(
    label: str, head: Schema, configs: Mapping[str, str], defs: Mapping[str, Schema], open_ones: Iterable[str]
) -> dict[str, Schema]:
    """The definitions for an entry of `layers` or `adjust`: the common keys, and for each kind a table with its own."""
    known = sorted((*configs, *open_ones))
    found: dict[str, Schema] = {}
    cases: list[Schema] = []
    for kind, config in sorted(configs.items()):
        own = defs[config]
        table = copy.deepcopy(own)
        table["title"] = kind
        table["properties"] = {**head["properties"], **own["properties"], "kind": {"const": kind}}
        table["required"] = ["kind", *own.get("required", ())]
        found[f"{label}.{kind}"] = table
        is_kind = {"required": ["kind"], "properties": {"kind": {"const": kind}}}
        cases.append({"if": is_kind, "then": {"$ref": f"{_REF}{label}.{kind}"}})
    properties = copy.deepcopy(head["properties"])
    # Any string is valid, for kinds that are not installed here; editors offer the examples.
    properties["kind"] = {**properties["kind"], "examples": known}
    unknown = {"required": ["kind"], "properties": {"kind": {"not": {"enum": known}}}}
    if "optional" in properties:
        needed = {"properties": {"optional": {"const": True}}, "required": ["optional"]}
        cases.append({"if": unknown, "then": needed})
    found[label] = {"title": label, "type": "object", "properties": properties, "required": ["kind"], "allOf": cases}
    return found


def _partial(schema: Schema) -> Schema:
    """The schema with nothing required, and with the keys that only an extending file has."""
    if "if" in schema:  # the condition itself must stay as it is
        follows = schema["then"] if "$ref" in schema["then"] else {}
        return {**schema, "then": _partial(follows)}
    partial = _within(schema, _partial)
    partial.pop("required", None)
    if "$ref" in partial:
        partial["$ref"] += PARTIAL
    if partial.get("type") == "object" and "properties" in partial:
        own = partial["properties"]
        lists = [own[name] for name in (WORD_TABLE, *WORD_LISTS) if name in own and _holds_phrases(own[name])]
        changes = {ADD_WORDS: _ADD, DROP_WORDS: _OUT} if lists else {}
        words = {name: {**_plain(lists[0]), "description": note} for name, note in changes.items()}
        partial["properties"] = {**own, **words, "drop": _DROP, "before": _BEFORE}
    return partial


def _holds_phrases(schema: Schema) -> bool:
    """Whether this is a list of strings or a table of such lists."""
    inner = schema.get("additionalProperties", schema)
    return isinstance(inner, dict) and inner.get("items", {}).get("type") == "string"


def _plain(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if key not in ("default", "description")}


def _reachable(schema: Schema, defs: Mapping[str, Schema]) -> dict[str, Schema]:
    """The definitions that are used, sorted by name."""
    found: set[str] = set()
    pending: list[Any] = [schema]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            ref = value.get("$ref")
            if isinstance(ref, str) and ref.removeprefix(_REF) not in found:
                found.add(ref.removeprefix(_REF))
                pending.append(defs[ref.removeprefix(_REF)])
            pending += value.values()
        elif isinstance(value, list):
            pending += value
    return {name: defs[name] for name in sorted(found)}
