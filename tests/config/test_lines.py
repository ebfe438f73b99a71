"""The line of every key: a table of forms, then documents written in every style, then damaged ones."""

import datetime
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timing import is_linear
from turnout.config.document import Document, Place
from turnout.config.lines import DEEPEST, Path, locate, syntax_line


class Case(NamedTuple):
    id: str
    source: str
    lines: dict[Path, int]


PROFILE = """\
name = "tiers"  # the "first" = line
routes = ["SIMPLE", "MEDIUM"]

[[layers]]
kind = "signals.v1"
accept = { confidence = 0.70 }

[[layers]]
kind = "keywords.v1"
words = [
  "one", # ]
  "two", "three",

  { text = "four", near = ["five"] },
]
[layers.accept]
confidance = 0.70

[policy.SIMPLE]
model = "simple"
"""

PROFILE_LINES: dict[Path, int] = {
    ("name",): 1,
    ("routes",): 2,
    ("routes", 0): 2,
    ("routes", 1): 2,
    ("layers",): 4,
    ("layers", 0): 4,
    ("layers", 0, "kind"): 5,
    ("layers", 0, "accept"): 6,
    ("layers", 0, "accept", "confidence"): 6,
    ("layers", 1): 8,
    ("layers", 1, "kind"): 9,
    ("layers", 1, "words"): 10,
    ("layers", 1, "words", 0): 11,
    ("layers", 1, "words", 1): 12,
    ("layers", 1, "words", 2): 12,
    ("layers", 1, "words", 3): 14,
    ("layers", 1, "words", 3, "text"): 14,
    ("layers", 1, "words", 3, "near"): 14,
    ("layers", 1, "words", 3, "near", 0): 14,
    ("layers", 1, "accept"): 16,
    ("layers", 1, "accept", "confidance"): 17,
    ("policy",): 19,
    ("policy", "SIMPLE"): 19,
    ("policy", "SIMPLE", "model"): 20,
}

CASES = [
    Case("empty", "", {}),
    Case("only-comments", "# a = 1\n\n   # [b]", {}),
    Case("profile", PROFILE, PROFILE_LINES),
    Case(
        "no-blanks",
        "a=1\n[b]\nc=[{d=2}]",
        {("a",): 1, ("b",): 2, ("b", "c"): 3, ("b", "c", 0): 3, ("b", "c", 0, "d"): 3},
    ),
    Case(
        "many-blanks",
        "\t a \t=\t 1 \n [\t b . c ] # x\n [[ d\t]]\t\n",
        {("a",): 1, ("b",): 2, ("b", "c"): 2, ("d",): 3, ("d", 0): 3},
    ),
    Case(
        "crlf",
        "a = 1\r\n\r\n[b] # x\r\nc = [\r\n1,\r\n]\r\nd = '''\r\n'''\r\ne = \"\"\"\\\r\n\"\"\"\r\nf = 1\r\n",
        {("a",): 1, ("b",): 3, ("b", "c"): 4, ("b", "c", 0): 5, ("b", "d"): 7, ("b", "e"): 9, ("b", "f"): 11},
    ),
    Case("only-newline-ends-a-line", "a = '\u2028\x85' # \u2029\nb = 1", {("a",): 1, ("b",): 2}),
    Case("dotted", "a.b . c = 1\na.d = 2\n", {("a",): 1, ("a", "b"): 1, ("a", "b", "c"): 1, ("a", "d"): 2}),
    Case(
        "number-like", "3.14 = 1\n-1 = 2\n2020-01-01 = 3\n", {("3",): 1, ("3", "14"): 1, ("-1",): 2, ("2020-01-01",): 3}
    ),
    Case(
        "quoted",
        '"a.b" = 1\n\'c"]\' . "d = #" = 2\n[\'\' . ""]\n[[\'e]]\']]\n',
        {("a.b",): 1, ('c"]',): 2, ('c"]', "d = #"): 2, ("",): 3, ("", ""): 3, ("e]]",): 4, ("e]]", 0): 4},
    ),
    Case(
        "escaped",
        '"\\"" = 1\n"\\\\" = 2\n"\\u00e9\\U0001F600\\t\\n" = 3\n\'\\n\' = 4\n"\\"]".a = 5',
        {('"',): 1, ("\\",): 2, ("é😀\t\n",): 3, ("\\n",): 4, ('"]',): 5, ('"]', "a"): 5},
    ),
    Case("text-and-index", "a = [0]\n[b]\n0 = 1", {("a",): 1, ("a", 0): 1, ("b",): 2, ("b", "0"): 3}),
    Case(
        "strings",
        'a = "[{,#\'\\"" # x\nb = \'[{,#"\\\'\nc = ""\nd = \'\'\ne = ["]", \'}\', "#"]',
        {("a",): 1, ("b",): 2, ("c",): 3, ("d",): 4, ("e",): 5, ("e", 0): 5, ("e", 1): 5, ("e", 2): 5},
    ),
    Case(
        "multi-line-strings",
        'a = """\n"" \\""" \\\\"""\nb = """""a"""""\nc = """"""\n'
        "d = '''\n'' \\'''''\n"
        'e = """\\\n  x"""\nf = 1',
        {("a",): 1, ("b",): 3, ("c",): 4, ("d",): 5, ("e",): 7, ("f",): 9},
    ),
    Case(
        "multi-line-strings-inside",
        'a = ["""\n[""", \'\'\'\n]\n\'\'\', 1]\nb = {c = """\n}\n""", d = 2}\n',
        {("a",): 1, ("a", 0): 1, ("a", 1): 2, ("a", 2): 4, ("b",): 5, ("b", "c"): 5, ("b", "d"): 7},
    ),
    Case(
        "scalars",
        "a = 1979-05-27 07:32:00 # x\nb = [1979-05-27 07:32:00.5+01:00,-inf,+1_0,0xfF,6.6e-3,true\n,07:32:00]\n",
        {("a",): 1, ("b",): 2, **{("b", index): 2 for index in range(6)}, ("b", 6): 3},
    ),
    Case(
        "arrays",
        "a = [\n\n[ # ]\n1,2\n], [\n],\n# ,\n[[]]]",
        {("a",): 1, ("a", 0): 3, ("a", 0, 0): 4, ("a", 0, 1): 4, ("a", 1): 5, ("a", 2): 8, ("a", 2, 0): 8},
    ),
    Case(
        "inline-tables",
        "a = {}\nb = { c.d = {e = [\n{f = 1}]}, c.g = 2 }",
        {
            ("a",): 1,
            ("b",): 2,
            ("b", "c"): 2,
            ("b", "c", "d"): 2,
            ("b", "c", "d", "e"): 2,
            ("b", "c", "d", "e", 0): 3,
            ("b", "c", "d", "e", 0, "f"): 3,
            ("b", "c", "g"): 3,
        },
    ),
    Case(
        "implied-has-its-first-mention",
        "[a.b.c]\n[a.b.d]\n[a.e]",
        {("a",): 1, ("a", "b"): 1, ("a", "b", "c"): 1, ("a", "b", "d"): 2, ("a", "e"): 3},
    ),
    Case("own-header-wins", "[a.b]\n\n[a]\nc = 1", {("a",): 3, ("a", "b"): 1, ("a", "c"): 4}),
    Case(
        "dotted-then-header",
        "[a]\nb.c = 1\n[a.b.d]\ne = 2",
        {("a",): 1, ("a", "b"): 2, ("a", "b", "c"): 2, ("a", "b", "d"): 3, ("a", "b", "d", "e"): 4},
    ),
    Case(
        "nested-arrays-of-tables",
        "[[a]]\n[[a.b]]\n[[a.b]]\nc = 1\n[a.b.d]\n[[a]]\n[[a.b]]\n[a.e]\n",
        {
            ("a",): 1,
            ("a", 0): 1,
            ("a", 0, "b"): 2,
            ("a", 0, "b", 0): 2,
            ("a", 0, "b", 1): 3,
            ("a", 0, "b", 1, "c"): 4,
            ("a", 0, "b", 1, "d"): 5,
            ("a", 1): 6,
            ("a", 1, "b"): 7,
            ("a", 1, "b", 0): 7,
            ("a", 1, "e"): 8,
        },
    ),
]


def paths(value: object, path: Path = ()) -> Iterator[Path]:
    items: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    for key, inner in items:
        yield (*path, key)
        yield from paths(inner, (*path, key))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_lines(case: Case) -> None:
    assert locate(case.source) == case.lines
    assert set(case.lines) == set(paths(tomllib.loads(case.source)))


def document(lines: dict[Path, int]) -> Document:
    return Document({}, {path: Place("profile.toml", line) for path, line in lines.items()}, "profile.toml")


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("layers", 1, "accept", "confidance"), 17),
        (("layers", 1, "accept", "confidence"), 16),
        (("layers", 1, "words", 3, "near", 7, "x"), 14),
        (("layers", 2), 4),
        (("fallback",), None),
        ((), None),
        (("policy", *["x"] * 10_000), 19),
    ],
)
def test_line_of_a_path_or_its_nearest_ancestor(path: Path, line: int | None) -> None:
    assert document(PROFILE_LINES).place(path) == Place("profile.toml", line)


class Fault(NamedTuple):
    id: str
    source: str
    line: int
    at_end: bool = False


FAULTS = [
    Fault("value", "a = 1\nb = ?\n", 2),
    Fault("first", "=", 1),
    Fault("crlf", "a = 1\r\n\r\nb = ?\r\n", 3),
    Fault("end", "a = 1\nb =", 2, at_end=True),
    Fault("misleading-key", '["(at line 9, column 9)"]\n' * 2, 2),
    Fault("misleading-key-at-end", '["(at line 9, column 9)".b]\n["(at line 9, column 9)"]\nb.c=1', 3, at_end=True),
]


def refusal(source: str) -> tomllib.TOMLDecodeError:
    with pytest.raises(tomllib.TOMLDecodeError) as caught:
        tomllib.loads(source)
    return caught.value


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.id)
def test_syntax_line(fault: Fault) -> None:
    untold = fault.at_end and sys.version_info < (3, 14)
    assert syntax_line(refusal(fault.source)) == (None if untold else fault.line)


def test_syntax_line_prefers_the_attributes_of_newer_pythons() -> None:
    error = refusal("a =")
    vars(error).update(lineno=7)
    assert syntax_line(error) == 7


class Writer:
    """Writes a document as TOML in styles drawn by `random`, and keeps the line of every path as it goes."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.written: list[str] = []
        self.line = 1
        self.lines: dict[Path, int] = {}

    def put(self, *choices: str) -> None:
        text = self.random.choice(choices)
        self.written.append(text)
        self.line += text.count("\n")

    def mention(self, path: Path) -> None:
        for end in range(1, len(path) + 1):
            self.lines.setdefault(path[:end], self.line)

    def document(self, document: dict[str, Any]) -> str:
        self.statements((), document)
        return "".join(self.written)

    def statements(self, path: Path, table: dict[str, Any]) -> None:
        under_headers = self.pick_headers(table)
        self.body(path, {key: value for key, value in table.items() if key not in under_headers})
        for key in under_headers:
            self.header(path, key, table[key])

    def pick_headers(self, table: dict[str, Any]) -> list[str]:
        def can(value: object) -> bool:
            is_tables = isinstance(value, list) and value and all(isinstance(element, dict) for element in value)
            return isinstance(value, dict) or bool(is_tables)

        return [key for key, value in table.items() if can(value) and self.random.random() < 0.7]

    def header(self, path: Path, key: str, value: Any) -> None:
        inner = (*path, key)
        if isinstance(value, list):
            for index, element in enumerate(value):
                self.put_header("[[", (*inner, index), "]]")
                self.statements((*inner, index), element)
            return
        under_headers = self.pick_headers(value)
        body = {key: value for key, value in value.items() if key not in under_headers}
        own_header = self.random.choice(["first", "last"] if body or not under_headers else ["first", "last", "none"])
        if own_header == "first":
            self.put_header("[", inner, "]")
            self.body(inner, body)
        for child in under_headers:
            self.header(inner, child, value[child])
        if own_header == "last":
            self.put_header("[", inner, "]")
            self.body(inner, body)

    def put_header(self, left: str, path: Path, right: str) -> None:
        self.put("", " ", "\n", "# [x]\n")
        self.mention(path)
        self.lines[path] = self.line
        self.put(left)
        self.key([part for part in path if isinstance(part, str)])
        self.put(right)
        self.put("\n", " # x = [\n", "\t\n\n")

    def body(self, path: Path, table: dict[str, Any]) -> None:
        for names, value in self.entries(table):
            self.put("", "\t", "\n", "# '''\n")
            self.entry(path, names, value)
            self.put("\n", ' # "\n', " \n\n")

    def entries(self, table: dict[str, Any], names: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
        found = []
        for key, value in table.items():
            if isinstance(value, dict) and value and self.random.random() < 0.5:
                found += self.entries(value, (*names, key))
            else:
                found.append(((*names, key), value))
        self.random.shuffle(found)
        return found

    def entry(self, path: Path, names: tuple[str, ...], value: Any) -> None:
        self.mention((*path, *names))
        self.key(list(names))
        self.put("=", " = ", "\t=")
        self.value((*path, *names), value)

    def key(self, names: list[str]) -> None:
        for index, name in enumerate(names):
            if index:
                self.put(".", " . ", ".\t")
            self.put(*key_forms(name))

    def value(self, path: Path, value: Any) -> None:
        match value:
            case dict():
                self.put("{", "{ ")
                for index, (names, inner) in enumerate(self.entries(value)):
                    self.put(*([",", " , "] if index else [""]))
                    self.entry(path, names, inner)
                self.put("}", " }")
            case list():
                self.put("[", "[ ", "[\n")
                for index, inner in enumerate(value):
                    self.put(*([",", ", ", " # ]\n ,\n\n", ",# ]]\n"] if index else [""]))
                    self.mention((*path, index))
                    self.value((*path, index), inner)
                self.put("]", "\n]", *([",]", ", # [\n]"] if value else []))
            case str():
                self.put(*string_forms(value))
            case bool():
                self.put(str(value).lower())
            case datetime.datetime():
                self.put(value.isoformat(), value.isoformat(sep=" "))
            case datetime.date() | datetime.time():
                self.put(value.isoformat())
            case _:
                self.put(repr(value))


def escape(text: str, raw: str = "") -> str:
    def form(char: str) -> str:
        is_plain = char in raw or (char >= " " and char not in '"\\\x7f')
        return char if is_plain else f"\\u{ord(char):04x}"

    return "".join(map(form, text))


def key_forms(text: str) -> list[str]:
    forms = [f'"{escape(text)}"']
    if re.fullmatch(r"[A-Za-z0-9_-]+", text):
        forms += [text, text]
    if not re.search(r"[\x00-\x08\x0a-\x1f\x7f']", text):
        forms.append(f"'{text}'")
    return forms


def string_forms(text: str) -> list[str]:
    is_single = not re.search(r"[\x00-\x08\x0a-\x1f\x7f']", text)
    is_multiple = not re.search(r"[\x00-\x08\x0b-\x1f\x7f]|'''", text)
    # A backslash at the end of a line swallows every blank up to the text, so there the text starts with an escape.
    first = f"\\U{ord(text[0]):08x}" if text else ""
    basic = escape(text, raw='\n\t"').replace('"""', '""\\"')
    return [
        f'"{escape(text)}"',
        f'"""\n{basic}"""',
        f'"""\\\n \n{first}{escape(text[1:])}"""',
        *([f"'{text}'"] if is_single else []),
        *([f"'''\n{text}'''"] if is_multiple else []),
    ]


ODD = st.sampled_from(
    ["", " ", ".", "a.b", '"', "'", "\\", "\n", "#", "]", "[[", "{", "=", ",", "é", "\u2028", "\x7f", "0"]
)
KEY = st.sampled_from(["a", "b", "c-d", "E_1", "2"]) | ODD | st.text(max_size=4)
STRING = st.text(max_size=6) | st.text("\"'\\\n\t[]{},=#x", max_size=8)
NUMBER = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.booleans()
SCALAR = STRING | NUMBER | st.datetimes() | st.dates() | st.times()
VALUE = st.recursive(
    SCALAR,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(KEY, inner, max_size=4)
        | st.lists(st.dictionaries(KEY, inner, max_size=3), min_size=1, max_size=3)
    ),
    max_leaves=12,
)
DOCUMENT = st.dictionaries(KEY, VALUE, max_size=5)


# A busy machine is no reason to fail: time has its own test below.
@settings(deadline=None)
@given(DOCUMENT, st.randoms(use_true_random=False), st.booleans())
def test_every_path_of_every_document_in_every_style(document: dict[str, Any], random: Random, crlf: bool) -> None:
    writer = Writer(random)
    source = writer.document(document)
    if crlf:
        source = source.replace("\n", "\r\n")
    assert tomllib.loads(source) == document
    lines = locate(source)
    assert set(lines) == set(paths(document))
    assert lines == writer.lines
    texts = source.split("\n")
    for path, line in lines.items():
        key = path[-1]
        assert isinstance(key, int) or any(form in texts[line - 1] for form in key_forms(key))


PIECES = [
    *"abc01-_.=,#'\"\\[]{} \t\n\r",
    *[
        '"""',
        "'''",
        "[[",
        "]]",
        "[a]\n",
        "\n[[a]]\n",
        "\n[a.b]\n",
        "b = 1\n",
        "\n'a'.b = 1\n",
        "[1, 2]",
        "{a = 1}",
        "\r\n",
    ],
    *["1979-05-27 07:32:00", '"\\""', "\\u0041", "# ]\n", "\ufeff", "\x00", "\u2028", "é"],
]


def damage(source: str, random: Random) -> str:
    for _ in range(random.randint(1, 4)):
        start = random.randint(0, len(source))
        end = min(len(source), start + random.choice([0, 0, 1, 1, 2, 5, 20]))
        piece = random.choice([random.choice(PIECES), source[start:end] * 2, ""])
        source = source[:start] + piece + source[end:]
    return source


def test_damaged_text_that_tomllib_still_accepts() -> None:
    random = Random(20)
    accepted = 0
    for _ in range(6_000):
        source = damage(random.choice(CASES).source, random)
        try:
            document = tomllib.loads(source)
        except tomllib.TOMLDecodeError as error:
            line = syntax_line(error)
            assert line is None or 1 <= line <= source.count("\n") + 1
            continue
        accepted += 1
        assert set(locate(source)) == set(paths(document)), source
    assert accepted > 1_000


@pytest.mark.parametrize(
    "source", ["a = 1\n?\nb = 2", "[", "[[", "]", "a", 'a = """', '"', "a = [}]", "a = {=", "=", "[[a", "a=[]\n[a]\n]"]
)
def test_text_that_is_not_understood_ends(source: str) -> None:
    locate(source)


def test_nesting_costs_no_recursion() -> None:
    for source in ("a=" + "[" * 300 + "]" * 300, "a=" + "{a=" * 200 + "1" + "}" * 200, ".".join("a" * 500) + "=1"):
        found = set(locate(source))
        assert found == {path for path in paths(tomllib.loads(source)) if len(path) <= DEEPEST}
    for source in ("a=" + "[" * 100_000, "a=" + "{a=" * 100_000, ".".join("a" * 100_000) + "=1"):
        lines = locate(source)
        assert len(lines) == DEEPEST
        assert document(lines).place((*max(lines, key=len), "x")).line == 1


SHAPES: list[tuple[str, Callable[[int], str]]] = [
    ("keys", lambda n: "".join(f"k{i} = 1\n" for i in range(n))),
    ("tables", lambda n: "[[a]]\nb = 1\n" * n),
    ("array", lambda n: "a = [" + "{b = 1},\n" * n + "]"),
    ("dots", lambda n: "[" + ".".join("a" * n) + "]\n"),
    ("brackets", lambda n: "a = " + "[" * n + "]" * n),
    ("comments", lambda n: "# x\n" * n + "a = 1"),
    ("quotes", lambda n: 'a = """' + '""\\"' * n + '"""'),
    ("literal-quotes", lambda n: "a = '''" + "'' " * n + "'''"),
    ("escapes", lambda n: '"' + "\\\\" * n + '" = 1'),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape[0])
def test_time_is_linear(shape: tuple[str, Callable[[int], str]]) -> None:
    short, long = shape[1](2_000), shape[1](32_000)
    # Of 16 times the text a linear reader makes 16 times the work, a quadratic one 256 times.
    assert is_linear(lambda: locate(short), lambda: locate(long), most=64, grain=0.005)
