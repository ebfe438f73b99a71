"""The schema and the loader agree: what loads validates, what does not validate does not load.

python tests/config/test_schema.py --write      writes docs/reference/profile.schema.json anew
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec import Struct

import turnout
from turnout import ConfigError
from turnout.config.load import shipped, shipped_file
from turnout.config.model import ProfileFile
from turnout.config.schema import DRAFT, field_notes, profile_schema
from turnout.config.starter import student_profile, words_profile
from turnout.core import registry

PUBLISHED = Path(__file__).parents[2] / "docs" / "reference" / "profile.schema.json"
TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
NOTES = {"$schema", "$defs", "title", "description", "default", "examples"}


def ours() -> dict[str, Any]:
    """What the schema is in a bare installation: tests may have registered kinds of their own."""
    return profile_schema(kind for kind in registry.kinds().values() if kind.config.__module__.startswith("turnout."))


def faults(schema: Any, value: Any, root: dict[str, Any], at: str = "") -> Iterator[str]:
    """Where a value does not fit, for the words of JSON Schema that ours uses; any other word is an error."""
    for word, said in schema.items():
        match word:
            case "$ref":
                yield from faults(root["$defs"][said.removeprefix("#/$defs/")], value, root, at)
            case "type":
                wrong = isinstance(value, bool) and said != "boolean"
                if wrong or not isinstance(value, TYPES[said]):
                    yield f"{at}: not of type {said}"
            case "const":
                if value != said:
                    yield f"{at}: not {said!r}"
            case "enum":
                if value not in said:
                    yield f"{at}: not one of {said}"
            case "not":
                if not list(faults(said, value, root, at)):
                    yield f"{at}: is what it must not be"
            case "anyOf":
                tried = [list(faults(choice, value, root, at)) for choice in said]
                if all(tried):
                    yield f"{at}: none of {tried}"
            case "allOf":
                for part in said:
                    yield from faults(part, value, root, at)
            case "if":
                branch = "else" if list(faults(said, value, root, at)) else "then"
                yield from faults(schema.get(branch, {}), value, root, at)
            case "then" | "else":
                assert "if" in schema
            case "required":
                if isinstance(value, dict):
                    yield from (f"{at}: {name} is missing" for name in said if name not in value)
            case "properties":
                if isinstance(value, dict):
                    for name in said.keys() & value.keys():
                        yield from faults(said[name], value[name], root, f"{at}.{name}")
            case "additionalProperties":
                rest = value.keys() - schema.get("properties", {}).keys() if isinstance(value, dict) else ()
                for name in rest:
                    yield from [f"{at}.{name}: unknown"] if said is False else faults(said, value[name], root, at)
            case "items":
                for number, item in enumerate(value if isinstance(value, list) else ()):
                    if number >= len(schema.get("prefixItems", ())):
                        yield from [f"{at}: too many"] if said is False else faults(said, item, root, f"{at}[{number}]")
            case "prefixItems":
                for number, (part, item) in enumerate(
                    zip(said, value if isinstance(value, list) else (), strict=False)
                ):
                    yield from faults(part, item, root, f"{at}[{number}]")
            case "minItems" | "maxItems":
                if isinstance(value, list) and (len(value) < said if word == "minItems" else len(value) > said):
                    yield f"{at}: {word} {said}"
            case "minimum" | "maximum" | "exclusiveMinimum":
                if isinstance(value, int | float):
                    fits = {"minimum": value >= said, "maximum": value <= said, "exclusiveMinimum": value > said}
                    if not fits[word]:
                        yield f"{at}: {word} {said}"
            case "pattern":
                if isinstance(value, str) and not re.search(said, value):
                    yield f"{at}: does not match {said}"
            case _:
                assert word in NOTES, f"the checker does not know {word!r}"


def check(source: str) -> list[str]:
    schema = ours()
    return list(faults(schema, tomllib.loads(source), schema))


@pytest.mark.parametrize("name", shipped())
def test_shipped_profiles_validate(name: str) -> None:
    assert check(shipped_file(name).read_text(encoding="utf-8")) == []


def test_starter_profiles_validate() -> None:
    assert check(words_profile("demo", "demo.cases.jsonl")) == []
    assert check(student_profile("shop", ("a b", "日本"), source="tickets.csv")) == []


def test_the_published_schema_is_this_one() -> None:
    assert json.loads(PUBLISHED.read_text(encoding="utf-8")) == ours(), f"run python {Path(__file__).name} --write"


MINI = """\
name = "mini"
routes = ["A", "B"]
fallback = { route = "A" }

[[layers]]
id = "rules"
kind = "rules.v1"
accept = { confidence = 0.5 }
[[layers.rules]]
id = "one"
route = "B"
when = { any = ["word"] }

[policy.A]
max_sentences = 2
[policy.B]
"""


class Slip(NamedTuple):
    id: str
    old: str
    new: str
    said: str


SLIPS = [
    Slip("unknown-key", "fallback =", "falback =", ".falback: unknown"),
    Slip("missing-key", 'name = "mini"', "", "name is missing"),
    Slip("no-routes", '["A", "B"]', "[]", ".routes: minItems 1"),
    Slip("wrong-type", '["A", "B"]', '"A"', ".routes: not of type array"),
    Slip("out-of-range", "confidence = 0.5", "confidence = 1.5", ".accept.confidence: maximum 1.0"),
    Slip("unknown-in-gate", "confidence = 0.5", "confidance = 0.5", ".confidance: unknown"),
    Slip("unknown-in-kind", "[[layers.rules]]", "[[layers.rulez]]", "[0].rulez: unknown"),
    Slip("unknown-in-rule", "when = ", "wen = ", ".wen: unknown"),
    Slip("missing-in-rule", 'route = "B"', "", "rules[0]: route is missing"),
    Slip("no-name", 'id = "one"', 'id = "one two"', "does not match"),
    Slip("policy", "max_sentences = 2", "max_sentences = 0", ".max_sentences: minimum 1"),
    Slip("no-kind", 'kind = "rules.v1"', "", "layers[0]: kind is missing"),
    Slip("kind-not-installed", "rules.v1", "rulez.v1", "optional is missing"),
    Slip("drop-in-a-whole-file", "max_sentences = 2", "drop = true", ".drop: unknown"),
]


@pytest.mark.alike(4)
@pytest.mark.parametrize("slip", SLIPS, ids=lambda slip: slip.id)
def test_what_does_not_validate_does_not_load(slip: Slip, tmp_path: Path) -> None:
    assert check(MINI) == []
    assert slip.old in MINI
    source = MINI.replace(slip.old, slip.new)
    assert any(slip.said in fault for fault in check(source)), check(source)
    file = tmp_path / "mini.toml"
    file.write_text(source)
    with pytest.raises(ConfigError):
        turnout.load_profile(file, config="")


EXTENDS = 'extends = "mini.toml"\n'
EXTENDING = {
    "nothing-else": "",
    "a-gate": '[[layers]]\nid = "rules"\naccept = { confidence = 0.9 }\n',
    "a-kind-and-a-part": '[[layers]]\nid = "rules"\nkind = "rules.v1"\n[[layers.rules]]\nid = "one"\ntext = "x"\n',
    "drop": '[[layers]]\nid = "rules"\nkind = "rules.v1"\nbefore = "x"\n[[layers.rules]]\nid = "one"\ndrop = true\n',
    "drop-a-table": "blank = { drop = true }\n",
    "policy": "[policy.A]\nmax_tokens = 5\n",
    "words": '[[layers]]\nid = "x"\nkind = "signals.v1"\n[[layers.signals]]\nid = "s"\nadd_words = ["a"]\n',
    "phrases": '[[layers]]\nid = "x"\nkind = "keywords.v1"\ndrop_words = { A = ["a"] }\n',
    "a-rule": '[[layers]]\nid = "rules"\nkind = "rules.v1"\n[[layers.rules]]\nid = "o"\nwhen = { add_words = ["a"] }\n',
}


@pytest.mark.alike(3)
@pytest.mark.parametrize("more", EXTENDING.values(), ids=EXTENDING)
def test_an_extending_file_says_only_what_differs(more: str) -> None:
    assert check(EXTENDS + more) == []
    assert check(more) != [], "without a base it is not whole"


def test_an_extending_file_is_checked_too() -> None:
    assert check(EXTENDS + "falback = 1\n") == [".falback: unknown"]
    assert "maximum" in check(EXTENDS + '[[layers]]\nid = "x"\naccept = { confidence = 2 }\n')[0]
    assert "unknown" in check(EXTENDS + '[[layers]]\nkind = "rules.v1"\nrulez = []\n')[0]
    assert "unknown" in check(EXTENDS + '[[layers]]\nkind = "student.v1"\nadd_words = []\n')[0]


def test_it_says_what_it_is() -> None:
    schema = ours()
    assert schema["$schema"] == DRAFT
    text = json.dumps(schema)
    assert '"null"' not in text, "TOML has none"
    assert r"\\Z" not in text, "in ECMAScript that is the letter"
    assert (
        schema["properties"]["ordered"]["description"]
        == "The routes are listed from the cheapest to the most expensive."
    )
    refs = set(re.findall(r'"#/\$defs/([^"]+)"', text))
    assert refs == set(schema["$defs"])
    assert set(schema["properties"]) - {"drop", "before"} == set(ProfileFile.__struct_fields__)


class OddConfig(Struct, forbid_unknown_fields=True):
    default: str
    """A name that is also a word of JSON Schema."""
    required: int = 1
    pattern: str = "x"
    then: dict[str, int] = {}


class ForeignConfig(Struct):
    what: type


def test_kinds_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_kinds", dict(registry.kinds()))

    def odd(config: OddConfig) -> None: ...
    def foreign(config: ForeignConfig) -> None: ...

    odd.__annotations__["config"], foreign.__annotations__["config"] = OddConfig, ForeignConfig
    turnout.kind("odd.v1")(odd)
    turnout.kind("foreign.v1")(foreign)
    schema = profile_schema()
    properties = schema["$defs"]["Layer.odd.v1.partial"]["properties"]
    assert {"default", "required", "pattern", "then", "kind", "accept"} <= set(properties)
    assert properties["default"]["description"] == "A name that is also a word of JSON Schema."
    base = MINI.replace("[policy.A]", '[[layers]]\nkind = "odd.v1"\ndefault = "x"\n\n[policy.A]')
    assert list(faults(schema, tomllib.loads(base), schema)) == []
    assert "is missing" in next(faults(schema, tomllib.loads(base.replace('default = "x"', "")), schema))
    # JSON Schema has no word for this one's types: any keys are let through, the loader checks them.
    assert "Layer.foreign.v1" not in schema["$defs"]
    open_one = base.replace('kind = "odd.v1"\ndefault', 'kind = "foreign.v1"\nwhat')
    assert list(faults(schema, tomllib.loads(open_one), schema)) == []
    local = type("Local", (Struct,), {"__annotations__": {"x": int}})
    assert field_notes(local) == {}


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    PUBLISHED.write_text(json.dumps(ours(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
