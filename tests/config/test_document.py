"""Files that extend one another: what merges, what replaces, what is dropped, and where every value came from."""

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from toml_router import unlearnt
from turnout import ConfigError, load
from turnout.config.document import Document, Place, extend, from_source, parse, read, set_value, spell


def doc(source: str, name: str = "x.toml") -> Document:
    return from_source(source, name)


class Merge(NamedTuple):
    id: str
    base: str
    over: str
    result: dict[str, Any]


MERGES = [
    Merge("nothing", "a = 1", "", {"a": 1}),
    Merge("onto nothing", "", "a = 1", {"a": 1}),
    Merge("a value replaces", "a = 1", "a = 2", {"a": 2}),
    Merge("a type may change", "a = 1", "a = [1]", {"a": [1]}),
    Merge("tables merge", "[t]\na = 1\nb = 1", "[t]\nb = 2\nc = 2", {"t": {"a": 1, "b": 2, "c": 2}}),
    Merge("tables merge deeply", "[t.u]\na = 1", "[t.u]\nb = 2", {"t": {"u": {"a": 1, "b": 2}}}),
    Merge("inline tables merge too", "t = { a = 1 }", "t = { b = 2 }", {"t": {"a": 1, "b": 2}}),
    Merge("a table replaces a value", "t = 1", "[t]\na = 1", {"t": {"a": 1}}),
    Merge("arrays replace", "a = [1, 2, 3]", "a = [4]", {"a": [4]}),
    Merge("an empty array replaces", "a = [1]", "a = []", {"a": []}),
    Merge(
        "items merge by id",
        "a = [{ id = 'x', n = 1 }, { id = 'y', n = 1 }]",
        "a = [{ id = 'y', m = 2 }]",
        {"a": [{"id": "x", "n": 1}, {"id": "y", "n": 1, "m": 2}]},
    ),
    Merge(
        "new items come last",
        "a = [{ id = 'x' }, { id = 'y' }]",
        "a = [{ id = 'z' }, { id = 'x', n = 2 }]",
        {"a": [{"id": "x", "n": 2}, {"id": "y"}, {"id": "z"}]},
    ),
    Merge(
        "an item is dropped",
        "a = [{ id = 'x' }, { id = 'y' }, { id = 'z' }]",
        "a = [{ id = 'y', drop = true }]",
        {"a": [{"id": "x"}, {"id": "z"}]},
    ),
    Merge("a table is dropped", "t = { a = 1 }\nb = 2", "t = { drop = true }", {"b": 2}),
    Merge("a value is dropped", "t = 1\nb = 2", "t = { drop = true }", {"b": 2}),
    Merge("drop must be true", "t = { a = 1 }", "t = { drop = false }", {"t": {"a": 1, "drop": False}}),
    Merge("a new item comes last", "a = [{ id = 'x' }]", "a = [{ id = 'y' }]", {"a": [{"id": "x"}, {"id": "y"}]}),
    Merge("or where it says", "a = [{ id = 'x' }]", "a = [{ id = 'y', before = 'x' }]",
          {"a": [{"id": "y"}, {"id": "x"}]}),
    Merge("an item that is there goes where it says", "a = [{ id = 'x', n = 1 }, { id = 'y', n = 1 }]",
          "a = [{ id = 'y', n = 2, before = 'x' }]", {"a": [{"id": "y", "n": 2}, {"id": "x", "n": 1}]}),
    Merge("items inside items", "a = [{ id = 'x', b = [{ id = 'p', n = 1 }, { id = 'q' }] }]",
          "a = [{ id = 'x', b = [{ id = 'p', n = 2 }, { id = 'q', drop = true }] }]",
          {"a": [{"id": "x", "b": [{"id": "p", "n": 2}]}]}),
]  # fmt: skip


@pytest.mark.parametrize("case", MERGES, ids=lambda case: case.id)
def test_merging(case: Merge) -> None:
    assert extend(doc(case.base), doc(case.over)).tree == case.result


SIGNAL = "a = [{ id = 'x', words = ['tea', 'cup|cups', 'pot'] }]"
WORDS = [
    Merge("added", SIGNAL, "a = [{ id = 'x', add_words = ['mug|mugs', 'jug'] }]",
          {"a": [{"id": "x", "words": ["tea", "cup|cups", "pot", "mug|mugs", "jug"]}]}),
    Merge("dropped, by the first of its forms as well", SIGNAL, "a = [{ id = 'x', drop_words = ['cup', 'tea'] }]",
          {"a": [{"id": "x", "words": ["pot"]}]}),
    Merge("both: first out, then in", SIGNAL, "a = [{ id = 'x', add_words = ['cup'], drop_words = ['cup|cups'] }]",
          {"a": [{"id": "x", "words": ["tea", "pot", "cup"]}]}),
    Merge("a rule's", "r = { when = { any = ['a'], none = ['b'] } }", "r = { when = { add_words = ['c'] } }",
          {"r": {"when": {"any": ["a", "c"], "none": ["b"]}}}),
    Merge("a table by route", "phrases = { p = ['a', 'b'], q = ['c'] }",
          "add_words = { q = ['d'], r = ['e'] }\ndrop_words = { p = ['a'] }",
          {"phrases": {"p": ["b"], "q": ["c", "d"], "r": ["e"]}}),
]  # fmt: skip


@pytest.mark.parametrize("case", WORDS, ids=lambda case: case.id)
def test_words_are_added_and_dropped(case: Merge) -> None:
    base = doc(case.base, "base.toml")
    merged = extend(base, doc(case.over, "over.toml"))
    assert merged.tree == case.result
    assert base.tree == doc(case.base).tree, "the base is as it was"


def test_words_lead_to_where_they_were_written_through_two_extensions() -> None:
    over = doc("\n[[a]]\nid = 'x'\ndrop_words = ['tea']\nadd_words = [\n  'mug',\n  'jug']", "over.toml")
    top = doc("[[a]]\nid = 'x'\nadd_words = ['bowl']\ndrop_words = ['mug']", "top.toml")
    merged = extend(extend(doc(SIGNAL, "base.toml"), over), top)
    assert merged.tree["a"][0]["words"] == ["cup|cups", "pot", "jug", "bowl"]
    found = [str(merged.place(("a", 0, "words", i))) for i in range(4)]
    assert found == ["base.toml:1", "base.toml:1", "over.toml:7", "top.toml:3"]


HERE = "in the profile this one extends"
NO_WORDS = {
    "not there": ("a = [{ id = 'x', drop_words = ['pott'] }]", f"no 'pott' to drop {HERE}, did you mean 'pot'?"),
    "there already": ("a = [{ id = 'x', add_words = ['jug', 'cup'] }]", f"add_words[1]: 'cup' is {HERE} already"),
    "said as well": ("a = [{ id = 'x', words = [], add_words = ['jug'] }]", "`words` is said here as well"),
    "no list": ("a = [{ id = 'x', add_words = 'jug' }]", "add_words: must be a list of phrases; it is for"),
    "no phrases": ("a = [{ id = 'x', add_words = ['jug', 1] }]", "add_words: must be a list of phrases"),
    "nothing to add to": ("t = { n = 2, add_words = ['a'] }", "t.add_words: must be a list of phrases; it is for"),
    "a list for a table": ("k = { add_words = ['a'] }", "k.add_words: must be a table of phrases by route"),
    "no such route": ("k = { drop_words = { nws = ['a'] } }", f"no phrases of 'nws' {HERE}, did you mean 'news'?"),
    "no list in a table": ("k = { add_words = { news = 'a' } }", "k.add_words.news: must be a list of phrases"),
}


@pytest.mark.parametrize(("over", "message"), NO_WORDS.values(), ids=NO_WORDS.keys())
def test_words_that_cannot_be_changed(over: str, message: str) -> None:
    base = f"{SIGNAL}\nt = {{ n = 1 }}\nk = {{ phrases = {{ news = ['b'] }} }}"
    with pytest.raises(ConfigError, match=re.escape(message)) as caught:
        extend(doc(base, "base.toml"), doc(over, "over.toml"))
    assert str(caught.value).startswith("over.toml:1 ")


def test_every_wrong_word_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        extend(doc(SIGNAL), doc("a = [{ id = 'x', drop_words = ['one', 'two'], add_words = ['tea'] }]"))
    assert len(caught.value.problems) == 3


def test_a_list_of_a_shipped_profile_is_changed_without_repeating_it(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'extends = "sources"\nname = "mine"\n[[layers]]\nid = "keywords"\n'
        '[layers.add_words]\nuptime = ["plex"]\n[layers.drop_words]\nforecast = ["tomorrow"]\n'
        '[[layers]]\nid = "student"\ndrop = true\n'
    )
    was, now = unlearnt("sources"), load(file, config="")
    assert now.route_sync("plex?").routes == ("uptime",) != was.route_sync("plex?").routes
    assert was.route_sync("see you tomorrow").routes == ("forecast",) != now.route_sync("see you tomorrow").routes
    file.write_text(file.read_text().replace('["plex"]', '[" "]'))
    with pytest.raises(ConfigError, match=r"mine\.toml:6 layers\[2\]\.phrases\.uptime\[\d+\]: an empty phrase"):
        load(file, config="")


UNNAMED = {
    "dropping what is not there": ("t = { drop = true }", "t: there is no 't' to drop"),
    "dropping an item that is not there": ("a = [{ id = 'y', drop = true }]", "a[0]: there is no 'y' to drop"),
    "going before nothing": ("a = [{ id = 'y', before = 'z' }]", "a[0].before: there is no 'z' to go before"),
    "going before itself": ("a = [{ id = 'x', before = 'x' }]", "a[0].before: there is no 'x' to go before"),
    "no id": ("a = [{ n = 1 }]", "a[0]: needs an id"),
    "an id of another type": ("a = [{ id = [] }]", "a[0]: needs an id"),
    "an id twice": ("a = [{ id = 'x', m = 1 }, { id = 'x', k = 2 }]", "a[1].id: 'x' stands twice"),
}


@pytest.mark.parametrize(("over", "message"), UNNAMED.values(), ids=UNNAMED.keys())
def test_an_item_that_does_not_say_which_it_is(over: str, message: str) -> None:
    """It would replace all of the base's items, or hide one of its own."""
    with pytest.raises(ConfigError, match=re.escape(message)):
        extend(doc("a = [{ id = 'x', n = 1 }]"), doc(over))


def test_merging_changes_neither_document() -> None:
    base, over = doc("[t]\na = [1]"), doc("[t]\nb = [2]")
    merged = extend(base, over)
    merged.tree["t"]["a"].append(9)
    merged.tree["t"]["b"].append(9)
    assert (base.tree, over.tree) == ({"t": {"a": [1]}}, {"t": {"b": [2]}})


BASE = """\
name = "base"

[[layers]]
id = "one"
kind = "a.v1"

[[layers]]
id = "two"
kind = "b.v1"
accept = { confidence = 0.5, margin = 0.1 }
words = ["x",
  "y"]

[policy.p]
model = "m"
"""
OVER = """\
name = "over"
[[layers]]
id = "one"
drop = true

[[layers]]
id = "two"
accept = { confidence = 0.9 }

[[layers]]
id = "three"
kind = "c.v1"
[policy.q]
model = "n"
"""
TOP = """\


[[layers]]
id = "three"
words = ["z"]
"""


class Origin(NamedTuple):
    path: str
    file: str
    line: int


ORIGINS = [
    Origin("name", "over.toml", 1),
    Origin("layers", "top.toml", 3),
    Origin("layers[0]", "over.toml", 6),
    Origin("layers[0].kind", "base.toml", 9),
    Origin("layers[0].accept.confidence", "over.toml", 8),
    Origin("layers[0].accept.margin", "base.toml", 10),
    Origin("layers[0].words[1]", "base.toml", 12),
    Origin("layers[0].words[7]", "base.toml", 11),
    Origin("layers[1].kind", "over.toml", 12),
    Origin("layers[1].words[0]", "top.toml", 5),
    Origin("layers[1].nothing", "top.toml", 3),
    Origin("policy.p.model", "base.toml", 15),
    Origin("policy.q.model", "over.toml", 14),
    Origin("policy.r", "over.toml", 13),
]


@pytest.mark.parametrize("case", ORIGINS, ids=lambda case: case.path)
def test_lines_are_right_through_two_extensions(case: Origin) -> None:
    merged = extend(extend(doc(BASE, "base.toml"), doc(OVER, "over.toml")), doc(TOP, "top.toml"))
    assert merged.place(parse(case.path)) == Place(case.file, case.line)
    assert merged.problem(parse(case.path), "no").where == f"{case.file}:{case.line} {case.path}"


def test_a_path_nobody_wrote_is_the_files() -> None:
    assert str(doc("a = 1").problem((), "no")) == "x.toml: no"
    assert str(doc("a = 1").problem(("b",), "no")) == "x.toml b: no"


@pytest.mark.parametrize("spelled", ["", "a", "a.b", "a[0]", "a[10].b.c[2]", "a-b.c_d", "layers[1].accept.confidence"])
def test_spelling_and_parsing_are_opposites(spelled: str) -> None:
    assert spell(parse(spelled)) == spelled


class Set(NamedTuple):
    id: str
    where: str
    result: dict[str, Any] | None


SETS = [
    Set("a value", "a", {"a": "new"}),
    Set("in a table", "t.u.v", {"t": {"u": {"v": "new"}}}),
    Set("in an item", "l.y.n", {"l": [{"id": "x", "n": 1}, {"id": "y", "n": "new"}]}),
    Set("in a new table", "b.c", {"b": {"c": "new"}}),
    Set("no such item", "l.z.n", None),
    Set("below a value", "a.b.c", None),
    Set("the list itself has no names", "l.x", None),
]


@pytest.mark.parametrize("case", SETS, ids=lambda case: case.id)
def test_setting_one_value(case: Set) -> None:
    document = doc("a = 1\nt = { u = { v = 1 } }\nl = [{ id = 'x', n = 1 }, { id = 'y' }]")
    changed = set_value(document, case.where, "new", Place("s.toml", 7))
    if case.result is None:
        assert changed is None
    else:
        assert changed is not None
        assert changed.tree == {"a": 1, "t": {"u": {"v": 1}}, "l": [{"id": "x", "n": 1}, {"id": "y"}], **case.result}


def test_a_value_that_was_set_remembers_where_and_so_does_what_is_inside() -> None:
    changed = set_value(doc("t = { a = [1, 2] }\nb = 1"), "t.a", ["x"], Place("s.toml", 7))
    assert changed is not None
    assert changed.place(("t", "a")) == Place("s.toml", 7)
    assert changed.place(("t", "a", 0)) == Place("s.toml", 7)
    assert changed.place(("b",)) == Place("x.toml", 2)


class Unreadable(NamedTuple):
    id: str
    content: bytes
    message: str


UNREADABLE = [
    Unreadable("not UTF-8", b'name = "caf\xe9"', "p.toml: not UTF-8 text (byte 11): save it as UTF-8"),
    Unreadable("UTF-16", 'name = "x"'.encode("utf-16"), "p.toml: not UTF-8 text (byte 0)"),
    Unreadable("binary", bytes(range(256)), "p.toml: not UTF-8 text"),
    Unreadable("not TOML", b'a = 1\nb = "\nc = 2\n', "p.toml:2: not valid TOML"),
    Unreadable("a key twice", b"a = 1\na = 2\n", "p.toml:2: not valid TOML: Cannot overwrite a value"),
    Unreadable("a table twice", b"[a]\n[b]\n[a]\n", "p.toml:3: not valid TOML"),
    Unreadable("JSON", b'{"a": 1}', "p.toml:1: not valid TOML"),
    Unreadable("cut off", b"a = [1, 2", "p.toml: not valid TOML"),
    Unreadable("arrays nested deeply", b"a = " + b"[" * 50_000, "p.toml: not valid TOML: nested too deeply"),
    Unreadable("arrays nested 100 deep", b"a = 1\nb = " + b"[" * 100 + b"]" * 100, "p.toml:2: nested too deeply"),
    Unreadable("tables nested deeply", b"[" + b".".join([b"a"] * 3000) + b"]", "p.toml:1: nested too deeply"),
    Unreadable("keys nested deeply", b"x = 1\n" + b".".join([b"a"] * 3000) + b" = 1", "p.toml:2: nested too deeply"),
    Unreadable("a number without end", b"a = " + b"9" * 5000, "p.toml: not valid TOML"),
    Unreadable("NUL", b"a = '\0'", "p.toml:1: not valid TOML"),
]


@pytest.mark.parametrize("case", UNREADABLE, ids=lambda case: case.id)
def test_a_file_that_cannot_be_read_says_where(case: Unreadable, tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_bytes(case.content)
    with pytest.raises(ConfigError) as caught:
        read(path)
    (problem,) = caught.value.problems
    assert str(problem).startswith(case.message)


def test_a_missing_file_and_a_directory(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.toml: cannot be read: No such file"):
        read(tmp_path / "gone.toml")
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        read(tmp_path)
    with pytest.raises(ConfigError, match="cannot be read: embedded null"):
        read(tmp_path / "a\0b.toml")
    with pytest.raises(ConfigError, match="cannot be read: File name too long"):
        read(tmp_path / ("x" * 5000 + ".toml"))


def test_an_empty_file_is_an_empty_document(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text("")
    assert read(path).tree == {}


def test_a_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    """Some editors write one in front of UTF-8; tomllib would say no more than "Invalid statement"."""
    path = tmp_path / "p.toml"
    path.write_bytes(b"\xef\xbb\xbfa = 1")
    assert read(path).tree == {"a": 1}
