"""A TOML file as data that remembers where each value was written, through `extends` and settings.

Merging: tables merge key by key; arrays of tables whose items have an `id` merge item by item (`drop = true` removes an
item, or a table; `before = "id"` says where a new item goes); `add_words` and `drop_words` change a list of phrases
that is taken over; anything else replaces. Whatever the merged tree looks like, every path in it still leads to a file
and a line.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path as File
from typing import Any, NamedTuple, NoReturn

from turnout.core.errors import ConfigError, Problem, suggest
from turnout.text.file import read_bytes, reason_of

from .lines import DEEPEST, Path, locate, syntax_line

Tree = dict[str, Any]

# The largest profile that ships has 10 KB; 50,000 phrases have one megabyte, and tomllib reads some two in a second.
MOST_BYTES = 4 * 1024 * 1024
# Of a path in a message: names in a file may be as long as the file.
SHOWN_CHARACTERS = 200
# Python writes out whole numbers of 4,300 digits, 14,284 bits, and no longer ones.
LONGEST_BITS = 14_000
# tomllib takes time quadratic in the parts of a key: minutes for half a million of them.
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
        """Where a path was written, or its nearest ancestor that was."""
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
    """The opposite of `spell`."""
    return tuple(
        int(index) if index else name for name, index in re.findall(r"([^.\[\]]+)(?![^\[]*\])|\[(\d+)\]", spelled)
    )


def read(path: File) -> Document:
    """One file. Whatever it is and whatever it holds: a document, or a ConfigError that says what is wrong."""
    return from_source(read_source(path, MOST_BYTES), path.name)


def read_source(path: File, most: int) -> str:
    """The text of a file, its lines ended by \\n."""
    try:
        raw = read_bytes(path, most)
    except OSError as error:
        raise ConfigError([Problem(str(path), f"cannot be read: {reason_of(error)}")]) from None
    try:
        source = raw.decode("utf-8-sig")  # some editors put a mark in front
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
    except ValueError:  # what Python says of it is for programmers
        raise ConfigError([Problem(name, "not valid TOML: it has a number of thousands of digits")]) from None
    except RecursionError:
        raise ConfigError([Problem(name, "not valid TOML: nested too deeply")]) from None
    document = Document(tree, {path: Place(name, line) for path, line in locate(source).items()}, name)
    # Python refuses to write out such a number, so that it cannot be hashed or shown.
    is_huge = (path for path, value in leaves(tree) if isinstance(value, int) and value.bit_length() > LONGEST_BITS)
    if huge := next(is_huge, None):
        problem = document.problem(huge, "a number of that many digits: TOML has whole numbers of 64 bits")
        raise ConfigError([problem])
    if deep := next((path for path in document.origins if len(path) >= DEEPEST), None):
        raise ConfigError([Problem(str(document.place(deep)), f"nested too deeply: {DEEPEST} levels or more")])
    return document


def leaves(tree: object, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """Every value of a tree that is no table and no list, and where it stands."""
    if isinstance(tree, dict | list) and len(path) < DEEPEST:
        for key, entry in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from leaves(entry, (*path, key))
    else:
        yield path, tree


def extend(base: Document, over: Document) -> Document:
    """The base with everything the other says laid over it."""
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
    """Arrays of tables, item by item: an id that both have is merged and stays, a new one comes last, unless `before`
    says otherwise."""
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
    """Take words out of a list that was taken over, and add some to it; raises ConfigError with all that is wrong."""
    new = _get(over.tree, by)
    problems: list[Problem] = []
    for key in (DROP_WORDS, ADD_WORDS):
        for place, path, words in _word_edits(key, merged, over, by, problems) if key in new else ():
            if place[0] in new:
                problems.append(over.problem(path, f"`{place[0]}` is said here as well: change it there"))
                continue
            holder = merged if len(place) == 1 else merged[place[0]]
            at, old = (*to, *place), holder.get(place[-1], [])
            if not isinstance(old, list) or not all(isinstance(word, str) for word in old):
                continue  # the profile that is extended has a mistake there, and is told so
            entries = [(word, origins.pop((*at, i), over.place(path))) for i, word in enumerate(old)]
            for i, word in enumerate(words):
                said = [entry for entry in entries if _is_phrase(entry[0], word)]
                if key == ADD_WORDS and said:
                    problems.append(over.problem((*path, i), f"{word!r} is in the profile this one extends already"))
                elif key == ADD_WORDS:
                    entries.append((word, over.place((*path, i))))
                elif said:
                    entries = [entry for entry in entries if entry not in said]
                else:
                    known = [form for entry, _ in entries for form in (entry, entry.split("|")[0])]
                    said_so = f"there is no {word!r} to drop in the profile this one extends"
                    problems.append(over.problem((*path, i), f"{said_so}{suggest(word, known)}"))
            holder[place[-1]] = [word for word, _ in entries]
            origins.setdefault(at, over.place(path))
            origins |= {(*at, i): where for i, (_, where) in enumerate(entries)}
    if problems:
        raise ConfigError(problems)


def _word_edits(
    key: str, merged: Tree, over: Document, by: Path, problems: list[Problem]
) -> Iterator[tuple[tuple[str, ...], Path, list[str]]]:
    """Which list is changed, where that is said, and by what."""
    said, path = _get(over.tree, (*by, key)), (*by, key)
    table = merged.get(WORD_TABLE)
    found: list[tuple[tuple[str, ...], Path, object]] = []
    if isinstance(said, dict) and isinstance(table, dict):
        for route, words in said.items():
            if route in table or key == ADD_WORDS:
                found.append(((WORD_TABLE, route), (*path, route), words))
            else:
                message = f"there are no phrases of {route!r} in the profile this one extends{suggest(route, table)}"
                problems.append(over.problem((*path, route), message))
    elif isinstance(said, list) and (list_ := next((name for name in WORD_LISTS if _is_list(merged, name)), None)):
        found.append(((list_,), path, said))
    else:
        what = "a table of phrases by route" if isinstance(table, dict) else "a list of phrases"
        where = "it is for a signal's words, a rule's `any` and a keywords layer's phrases that `extends` takes over"
        problems.append(over.problem(path, f"must be {what}; {where}"))
    for place, at, words in found:
        if isinstance(words, list) and all(isinstance(word, str) for word in words):
            yield place, at, words
        else:
            problems.append(over.problem(at, "must be a list of phrases"))


def _is_list(tree: Tree, name: str) -> bool:
    return isinstance(tree.get(name), list) and all(isinstance(word, str) for word in tree[name])


def _is_phrase(entry: object, word: str) -> bool:
    """Whether a word is this phrase: as it is written, or by the first of its forms."""
    return isinstance(entry, str) and word in (entry, entry.split("|")[0])


def _refuse(over: Document, path: Path, what: str, name: str, known: list[str]) -> NoReturn:
    raise ConfigError([over.problem(path, f"{what} in the profile this one extends{suggest(name, known)}")])


def _demand_ids(over: Document, by: Path, items: list[dict[str, Any]]) -> None:
    """An extending file names the items it changes; without a name it would silently replace all of them."""
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
    """Whether these are tables told apart by their ids; two of one id would hide one another."""
    ids = [item.get("id") for item in value if isinstance(item, dict)] if isinstance(value, list) else []
    named = [name for name in ids if isinstance(name, str)]
    return isinstance(value, list) and 0 < len(value) == len(named) == len(set(named))


def _get(tree: Any, path: Path) -> Any:
    for part in path:
        tree = tree[part]
    return tree


def set_value(document: Document, spelled: str, value: object, place: Place) -> Document | None:
    """The document with one value replaced, items of arrays named by their id; None where there is no such place."""
    tree: Any = document.tree
    path: list[str | int] = []
    *parents, last = spelled.split(".")
    for part in parents:
        if isinstance(tree, list):
            found = [i for i, item in enumerate(tree) if isinstance(item, dict) and item.get("id") == part]
            if not found:
                return None
            path.append(found[0])
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
