"""Whatever is written as TOML is TOML, and reads back as the same value; and one module writes all of it."""

import ast
import tomllib
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import turnout
from turnout.config.document import from_source
from turnout.config.resolve import build
from turnout.config.starter import student_profile
from turnout.config.write import Value, toml_comment, toml_key, toml_text, toml_value
from turnout.core.errors import ConfigError
from turnout.models.edit import edited

SOURCE = Path(turnout.__file__).parent
SCALARS = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
LEAVES: st.SearchStrategy[Value] = st.one_of(
    TEXTS,
    st.booleans(),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.floats(allow_nan=False),
)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=20)


def test_every_character_there_is() -> None:
    for start in range(0, len(SCALARS), 0x1000):
        text = "".join(SCALARS[start : start + 0x1000])
        assert tomllib.loads(f"x = {toml_text(text)}\n") == {"x": text}
        assert tomllib.loads(f"{toml_key(text)} = 1\n") == {text: 1}
        assert tomllib.loads(f"{toml_comment(text)}\nx = 1\n") == {"x": 1}
    for character in SCALARS[:0x3000]:
        assert tomllib.loads(f"{toml_key(character)} = {toml_text(character)}\n") == {character: character}


@settings(max_examples=300, deadline=None)
@given(TEXTS, VALUES)
def test_every_value_reads_back(key: str, value: Value) -> None:
    written = f"{toml_key(key)} = {toml_value(value)}"
    assert len(written.splitlines()) == 1
    found = tomllib.loads(f"{written}\n")
    assert found == {key: value}
    assert repr(found[key]) == repr(value), "1 is not 1.0, and -0.0 is not 0.0"
    assert tomllib.loads(f"[a.{toml_key(key)}]\n") == {"a": {key: {}}}


def test_what_is_no_number() -> None:
    assert tomllib.loads(f"x = {toml_value(float('nan'))}")["x"] != 0


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb"])
def test_half_a_character_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="half of a character, which TOML cannot hold"):
        toml_value({"a": [text]})


def test_a_slot_with_any_address() -> None:
    told = {"model": "mock/\x7f", "base_url": 'http://\x7f"\\\x85'}
    for text in ("", "[models]\nbig = 'mock/x'\n", "[models.big]\nmodel = 'mock/x'\n"):
        assert tomllib.loads(edited(text, "big", told, fresh=False))["models"]["big"] == told


@pytest.mark.parametrize("ending", ["\u2028", "\u2029", "\x85"])
def test_an_edit_leaves_other_strings_whole(ending: str) -> None:
    text = f'[app]\nname = "one{ending}two" # {ending}[models.big]\n'
    found = tomllib.loads(edited(text, "big", {"model": "mock/x"}, fresh=False))
    assert found == {"app": {"name": f"one{ending}two"}, "models": {"big": {"model": "mock/x"}}}


LABELS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=2, unique=True)


@settings(max_examples=100, deadline=None)
@given(LABELS, st.none() | st.text(st.characters(exclude_categories=["Cs"]), min_size=1), TEXTS)
def test_a_profile_of_any_labels(labels: list[str], fallback: str | None, source: str) -> None:
    text = student_profile("any", labels, fallback=fallback, source=source)
    try:
        profile = build(from_source(text, "any.toml"))
    except ConfigError as error:
        assume("compared without case" not in str(error))
        raise
    assert {*labels} <= {*profile.routes}
    assert profile.fallback.route == fallback if fallback is not None else profile.fallback.route.casefold() == "other"
    assert len(profile.routes) - len(labels) == (profile.fallback.route not in labels)


def test_nothing_else_writes_toml() -> None:
    """A text that becomes a TOML string goes through this module: whoever writes a `.toml` file imports it."""
    writers = ["models/edit.py", "learn/calibrate.py", "config/starter.py"]
    for name in writers:
        tree = ast.parse((SOURCE / name).read_text(encoding="utf-8"))
        imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert {"turnout.config.write", "write"} & imported, name
        defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert not {one for one in defined if one.strip("_") in ("quote", "quoted", "key", "line")}, name
