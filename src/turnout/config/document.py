"""A TOML file as data that remembers where each value was written, through `extends` and settings.

Merging: tables merge key by key; arrays of tables whose items have an `id` merge item by item (`drop = true` removes an
item, or a table; `before = "id"` says where a new item goes); `add_words` and `drop_words` change an inherited list of
phrases; anything else replaces. Every path in the merged tree still leads to a file and a line.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path as File
from typing import Any, NamedTuple, NoReturn, TypeGuard

from turnout.core.errors import ConfigError, Problem, suggest
from turnout.text.file import read_bytes, reason_of

from .lines import DEEPEST, Path, locate, syntax_line

Tree = dict[str, Any]

# The largest shipped profile has 10 KB, and 50,000 phrases take one megabyte; tomllib reads about two a second.
MOST_BYTES = 4 * 1024 * 1024
# Of a path in a message: a name may be as long as its file.
SHOWN_CHARACTERS = 200
# Python refuses to print integers of more than 4,300 digits (14,284 bits).
LONGEST_BITS = 14_000
# tomllib takes time quadratic in the parts of a key: minutes for half a million.
_DEEP_KEY = re.compile(rf"""^[ \t\[]*((?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){{{DEEPEST}}})""", re.MULTILINE)


class Place(NamedTuple):
    file: str
    line: int | None

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


class Document(NamedTuple):
    tree: Tree
    origins: Mapping[Path, Place]
    file: str

    def place(self, path: Path) -> Place:
        """Where a path, or its nearest ancestor with a known place, was written."""
        for end in range(min(len(path), DEEPEST), 0, -1):
            if path[:end] in self.origins:
                return self.origins[path[:end]]
        return Place(self.file, None)

    def problem(self, path: Path, message: str) -> Problem:
        name = spell(path)
        name = name if len(name) <= SHOWN_CHARACTERS else f"{name[:SHOWN_CHARACTERS]}…"
        return Problem(f"{self.place(path)} {name}" if name else str(self.place(path)), message)


def spell(path: Path) -> str:
    """`layers[1].accept.confidence`"""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def parse(spelled: str) -> Path:
    """The inverse of `spell`."""
    return tuple(
        int(index) if index else name for name, index in re.findall(r"([^.\[\]]+)(?![^\[]*\])|\[(\d+)\]", spelled)
    )


def read(path: File) -> Document:
    """The document of one file; raises ConfigError for whatever is wrong with it."""
    return from_source(read_source(path, MOST_BYTES), path.name)


def read_source(path: File, most: int) -> str:
    """The text of a file, with \\n as its line ending."""
    try:
        raw = read_bytes(path, most)
    except OSError as error:
        raise ConfigError([Problem(str(path), f"cannot be read: {reason_of(error)}")]) from None
    try:
        source = raw.decode("utf-8-sig")  # some editors write a byte order mark
    except UnicodeDecodeError as error:
        raise ConfigError([Problem(path.name, f"not UTF-8 text (byte {error.start}): save it as UTF-8")]) from None
    return source.replace("\r\n", "\n").replace("\r", "\n")


def from_source(source: str, name: str) -> Document:
    if long_key := _DEEP_KEY.search(source):
        line = source.count("\n", 0, long_key.start(1)) + 1
        raise ConfigError([Problem(f"{name}:{line}", f"nested too deeply: {DEEPEST} levels or more")])
    try:
        tree = tomllib.loads(source)
    except tomllib.TOMLDecodeError as error:
        message = re.sub(r" \(at [^()]*\)$", "", str(error))
        raise ConfigError([Problem(str(Place(name, syntax_line(error))), f"not valid TOML: {message}")]) from None
    except ValueError:  # Python's own message is for programmers
        raise ConfigError([Problem(name, "not valid TOML: it has a number of thousands of digits")]) from None
    except RecursionError:
        raise ConfigError([Problem(name, "not valid TOML: nested too deeply")]) from None
    document = Document(tree, {path: Place(name, line) for path, line in locate(source).items()}, name)
    # Such a number can be neither hashed nor shown.
    too_long = (path for path, value in leaves(tree) if isinstance(value, int) and value.bit_length() > LONGEST_BITS)
    if path := next(too_long, None):
        problem = document.problem(path, "a number of that many digits: TOML has whole numbers of 64 bits")
        raise ConfigError([problem])
    if deep := next((path for path in document.origins if len(path) >= DEEPEST), None):
        raise ConfigError([Problem(str(document.place(deep)), f"nested too deeply: {DEEPEST} levels or more")])
    return document


def leaves(tree: object, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """Every value of a tree that is neither a table nor a list, with its path."""
    if isinstance(tree, dict | list) and len(path) < DEEPEST:
        for key, entry in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from leaves(entry, (*path, key))
    else:
        yield path, tree


def extend(base: Document, over: Document) -> Document:
    """The base, with the values of the other document taking precedence."""
    origins: dict[Path, Place] = {}
    return Document(_merge(base, (), over, (), (), origins), origins, over.file)


def _merge(base: Document, at: Path, over: Document, by: Path, to: Path, origins: dict[Path, Place]) -> Any:
    """The merged value; writes the origin of each path below `to` into `origins`."""
    old, new = _get(base.tree, at), _get(over.tree, by)
    if isinstance(old, dict) and isinstance(new, dict):
        origins[to] = over.place(by)
        merged: Tree = {}
        for key in dict.fromkeys((*old, *new)):
            if key in (ADD_WORDS, DROP_WORDS):
                continue
            if key not in new:
                merged[key] = _copy(base, (*at, key), (*to, key), origins)
            elif _is_drop(new[key]):
                if key not in old:
                    _refuse(over, (*by, key), f"there is no {key!r} to drop", key, list(old))
                continue
            elif key not in old:
                merged[key] = _copy(over, (*by, key), (*to, key), origins)
            else:
                merged[key] = _merge(base, (*at, key), over, (*by, key), (*to, key), origins)
        _edit_words(merged, to, over, by, origins)
        return merged
    if _has_ids(old) and isinstance(new, list) and new and all(isinstance(item, dict) for item in new):
        _demand_ids(over, by, new)
        return _merge_items(base, at, over, by, to, origins)
    return _copy(over, by, to, origins)


def _merge_items(base: Document, at: Path, over: Document, by: Path, to: Path, origins: dict[Path, Place]) -> list[Any]:
    """Merge arrays of tables by id: an item of both keeps its place, a new one goes last unless `before` says where."""
    old, new = _get(base.tree, at), _get(over.tree, by)
    theirs = {item["id"]: i for i, item in enumerate(old)}
    ours = {item["id"]: j for j, item in enumerate(new)}
    order = list(theirs)
    for name, j in ours.items():
        before = new[j].pop("before", None)
        if _is_drop(new[j]) and name not in theirs:
            _refuse(over, (*by, j), f"there is no {name!r} to drop", name, order)
        if name in theirs and before is None:
            continue
        rest = [other for other in order if other != name]
        if before is not None and before not in rest:
            _refuse(over, (*by, j, "before"), f"there is no {before!r} to go before", str(before), rest)
        rest.insert(rest.index(before) if before is not None else len(rest), name)
        order = rest
    origins[to] = over.place(by)
    result: list[Any] = []
    for name in order:
        here = (*to, len(result))
        if name not in ours:
            result.append(_copy(base, (*at, theirs[name]), here, origins))
        elif name not in theirs:
            result.append(_copy(over, (*by, ours[name]), here, origins))
        elif not _is_drop(new[ours[name]]):
            result.append(_merge(base, (*at, theirs[name]), over, (*by, ours[name]), here, origins))
    return result


ADD_WORDS, DROP_WORDS = "add_words", "drop_words"
WORD_LISTS = ("words", "any")
"""What is changed by a list of phrases: a signal's, or those of a rule's condition."""
WORD_TABLE = "phrases"
"""What is changed by a table of them: a keywords layer's, by route."""


def _edit_words(merged: Tree, to: Path, over: Document, by: Path, origins: dict[Path, Place]) -> None:
    """Remove words from an inherited list and add some; raises ConfigError with every mistake."""
    new = _get(over.tree, by)
    problems: list[Problem] = []
    for key in (DROP_WORDS, ADD_WORDS):
        for place, path, words in _word_edits(key, merged, over, by, problems) if key in new else ():
            if place[0] in new:
                problems.append(over.problem(path, f"`{place[0]}` is said here as well: change it there"))
                continue
            holder = merged if len(place) == 1 else merged[place[0]]
            at, old = (*to, *place), holder.get(place[-1], [])
            if not _is_words(old):
                continue  # a mistake in the profile that is extended; `check` reports it
            entries = [(word, origins.pop((*at, i), over.place(path))) for i, word in enumerate(old)]
            for i, word in enumerate(words):
                same = [entry for entry in entries if _is_phrase(entry[0], word)]
                if key == ADD_WORDS and same:
                    problems.append(over.problem((*path, i), f"{word!r} is in the profile this one extends already"))
                elif key == ADD_WORDS:
                    entries.append((word, over.place((*path, i))))
                elif same:
                    entries = [entry for entry in entries if entry not in same]
                else:
                    known = [form for entry, _ in entries for form in (entry, entry.split("|")[0])]
                    message = f"there is no {word!r} to drop in the profile this one extends"
                    problems.append(over.problem((*path, i), f"{message}{suggest(word, known)}"))
            holder[place[-1]] = [word for word, _ in entries]
            origins.setdefault(at, over.place(path))
            origins |= {(*at, i): where for i, (_, where) in enumerate(entries)}
    if problems:
        raise ConfigError(problems)


def _word_edits(
    key: str, merged: Tree, over: Document, by: Path, problems: list[Problem]
) -> Iterator[tuple[tuple[str, ...], Path, list[str]]]:
    """Each list that is changed, the path of the change, and the words."""
    edit, path = _get(over.tree, (*by, key)), (*by, key)
    table = merged.get(WORD_TABLE)
    found: list[tuple[tuple[str, ...], Path, object]] = []
    if isinstance(edit, dict) and isinstance(table, dict):
        for route, words in edit.items():
            if route in table or key == ADD_WORDS:
                found.append(((WORD_TABLE, route), (*path, route), words))
            else:
                message = f"there are no phrases of {route!r} in the profile this one extends{suggest(route, table)}"
                problems.append(over.problem((*path, route), message))
    elif isinstance(edit, list) and (list_ := next((name for name in WORD_LISTS if _is_words(merged.get(name))), None)):
        found.append(((list_,), path, edit))
    else:
        what = "a table of phrases by route" if isinstance(table, dict) else "a list of phrases"
        where = "it is for a signal's words, a rule's `any` and a keywords layer's phrases that `extends` takes over"
        problems.append(over.problem(path, f"must be {what}; {where}"))
    for place, at, words in found:
        if _is_words(words):
            yield place, at, words
        else:
            problems.append(over.problem(at, "must be a list of phrases"))


def _is_words(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


def _is_phrase(entry: str, word: str) -> bool:
    """Whether a word is this phrase: all of it, or the first of its forms."""
    return word in (entry, entry.partition("|")[0])


def _refuse(over: Document, path: Path, what: str, name: str, known: list[str]) -> NoReturn:
    raise ConfigError([over.problem(path, f"{what} in the profile this one extends{suggest(name, known)}")])


def _demand_ids(over: Document, by: Path, items: list[dict[str, Any]]) -> None:
    """Every item of an extending file needs an id; without ids the array would silently replace the inherited one."""
    problems = []
    seen: set[str] = set()
    for j, item in enumerate(items):
        name = item.get("id")
        if not isinstance(name, str):
            problems.append(over.problem((*by, j), "needs an id: that of the item it changes, or a new one"))
        elif name in seen:
            problems.append(over.problem((*by, j, "id"), f"{name!r} stands twice in this file: merge the two"))
        else:
            seen.add(name)
    if problems:
        raise ConfigError(problems)


def _copy(source: Document, at: Path, to: Path, origins: dict[Path, Place]) -> Any:
    value = _get(source.tree, at)
    origins[to] = source.place(at)
    if isinstance(value, dict):
        return {key: _copy(source, (*at, key), (*to, key), origins) for key in value}
    if isinstance(value, list):
        return [_copy(source, (*at, i), (*to, i), origins) for i in range(len(value))]
    return value


def _is_drop(value: object) -> bool:
    return isinstance(value, dict) and value.get("drop") is True


def _has_ids(value: object) -> bool:
    """Whether this is an array of tables, each with an id of its own."""
    if not isinstance(value, list):
        return False
    ids = {item.get("id") for item in value if isinstance(item, dict) and isinstance(item.get("id"), str)}
    return 0 < len(value) == len(ids)


def _get(tree: Any, path: Path) -> Any:
    for part in path:
        tree = tree[part]
    return tree


def set_value(document: Document, spelled: str, value: object, place: Place) -> Document | None:
    """The document with one value replaced, in a path that names items by id; None if there is no such place."""
    tree: Any = document.tree
    path: list[str | int] = []
    *parents, last = spelled.split(".")
    for part in parents:
        if isinstance(tree, list):
            places = [i for i, item in enumerate(tree) if isinstance(item, dict) and item.get("id") == part]
            if not places:
                return None
            path.append(places[0])
        elif isinstance(tree, dict):
            tree.setdefault(part, {})
            path.append(part)
        else:
            return None
        tree = tree[path[-1]]
    if not isinstance(tree, dict):
        return None
    tree[last] = value
    at = (*path, last)
    kept = {known: where for known, where in document.origins.items() if known[: len(at)] != at}
    return document._replace(origins={**kept, at: place})
