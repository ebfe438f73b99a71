"""Makes readings of queries: extracts the user's own words, folds them and scans them once.

The user's own words are a message without everything that a client puts around them. Invariant: a cut is made whole or
not at all, and never removes the last word. The words are blank only if the message was blank, or if it is packed chat
history without a current message (the history is not the user's words). In doubt, noise is left in: an opening marker
without its close stays, and so does a block inside a code fence, because that is how people show a block. Time is
linear in the text.

The order matters. Packed history is removed first, because its author could forge any other marker; then a repeated
system prompt, while it is still exactly as sent; then the wrappers. The tail is a guess, used only if nothing else
marked the words.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from importlib.resources import files
from typing import Literal, NamedTuple

import re2

from turnout.core.query import Query, Reading, Turn

from .fold import ASCII_FOLDING, CODEC, FoldedText, fold, fold_javascript, utf16_units
from .match import UNSPACED, Matcher, Search, search_set
from .reference import needs_history
from .words import Words

# Of a longer text, only this many characters of its beginning and end are read.
LONGEST = 2**20
# Characters on either side of the seam between them, to find out later whether the seam is still in the text.
SEAM = 64

# The longest follow-up, in characters: a longer message says what it is about.
FOLLOW_UP = 400
# How many turns back a task is looked for, and how much of it is used: as much as a student reads.
MOST_TURNS, LONGEST_TASK = 16, 2000

_WINDOW = ("scan.window",)
INHERITED = "extract.inherited"
CLOSING = Words("closing", "closing")
# As in the word list: for scripts written without spaces, each character is a word.
_closing_words = re.compile(rf"[^\W\d_{UNSPACED}]+(?:'[^\W\d_{UNSPACED}]+)?|[\d{UNSPACED}]").findall
FOLDS: dict[str, Callable[[str], FoldedText]] = {"unicode": fold, "javascript": fold_javascript}


def reader(matcher: Matcher, *, fold_name: str, unwrap: bool, inherit: bool = False) -> Callable[[Query], Reading]:
    """A function that reads queries for one profile. `unwrap` removes what clients wrap around the user's words;
    `inherit` reads a follow-up together with the turn it continues."""
    to_folded = FOLDS[fold_name]
    scan, find = matcher.scan, matcher.find
    fast = to_folded is fold

    def read(query: Query) -> Reading:
        words = query.text
        notes: tuple[str, ...] = ()
        system = seam = ""
        between = 0
        if query.turns and not words:
            words, system = own_words(query)
        if len(words) > LONGEST:
            words, seam, between = _ends(words)
        if query.turns and not query.text and unwrap:
            words, notes = extract(words, system)
            # If the seam was cut away, the user's words are all from one end.
            between = between if seam in words else 0
        if inherit and query.turns and (task := find_task(query, words)):
            words, notes = f"{task}\n{words}", (*notes, INHERITED)
        # Most text is ASCII, which is folded and scanned as bytes.
        if fast and words.isascii():
            encoded = words.encode().translate(*ASCII_FOLDING)
            bare = encoded.strip()
            if seam:
                notes += _WINDOW
            return Reading(query, words, bare.decode(), len(encoded) + between, tuple(sorted(find(bare))), notes)
        folded = to_folded(words)
        if folded.windowed or seam:
            notes += _WINDOW
        return Reading(query, words, folded.text, folded.units + between, scan(folded.text), notes)

    return read


def _ends(text: str) -> tuple[str, str, int]:
    """The beginning and the end of a text on separate lines; the text around their seam; and the UTF-16 length of what
    was left out."""
    half = LONGEST // 2
    ends = f"{text[:half]}\n{text[-half:]}"
    return ends, ends[half - SEAM : half + SEAM], utf16_units(text[half:-half])


def find_task(query: Query, words: str) -> str:
    """What a follow-up continues: the user's last message that is not a follow-up itself, else the last answer. Empty
    if the words stand alone."""
    turns = query.turns if query.text else _before_last(query.turns)
    if not turns or len(words) > FOLLOW_UP:
        return ""
    spoken = [turn for turn in turns if turn.role in ("user", "assistant") and turn.text][-MOST_TURNS:]
    history = [turn.text[-FOLLOW_UP:] for turn in spoken]
    if not spoken or _closes(words) or not needs_history(words, history):
        return ""
    for at in range(len(spoken) - 1, -1, -1):
        text = spoken[at].text
        if spoken[at].role == "user" and not (at and len(text) <= FOLLOW_UP and needs_history(text, history[:at])):
            return text[:LONGEST_TASK]
    return history[-1]


def _before_last(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """The turns before the user's last one."""
    last = max((at for at, turn in enumerate(turns) if turn.role == "user"), default=0)
    return turns[:last]


def _closes(words: str) -> bool:
    """Whether a message is only thanks or a goodbye."""
    found = {word for word in _closing_words(fold(words).text) if word[0].isalnum()}
    return not found or (found <= CLOSING.thanks | CLOSING.words and not found.isdisjoint(CLOSING.thanks))


def own_words(query: Query) -> tuple[str, str]:
    """The last user message, and all system messages joined."""
    user = next((turn.text for turn in reversed(query.turns) if turn.role == "user"), "")
    return user, "\n".join(turn.text for turn in query.turns if turn.role == "system")


# --- the user's own words

# Group chats and subagents of OpenClaw; the published rule ignores case.
_PACKED_OPEN = "[chat messages since"
_PACKED_CURRENT = re.compile(re.escape("[Current message - respond to this]"), re.IGNORECASE | re.ASCII)

# The published rule for a message without a system role: if longer than this, it is assumed to contain a system prompt,
# and the user's words are its last paragraph if that is shorter than this.
_TAIL_CHARS = 500

# Three or more of one character at the start of a line; backticks with another backtick on the line are inline code.
_FENCE = re.compile(r"^ {0,3}(`{3,}+|~{3,}+)([^`\n]*)$", re.MULTILINE)

# Longer texts are not kept in the cache of `_is_marked`: for them, scanning again costs little in comparison.
KEPT_CHARACTERS = 65_536

_CLOSE_TAG = re.compile(r"</[\w-]+>")
# The rest of an opening tag after its name, unless it is self-closing. Possessive, so that a run without ">" is read
# once.
_TAG_REST = re.compile(r"(?:\s[^<>]*+(?<!/))?>")

_Keep = Literal["inside", "outside"]
_Where = Literal["anywhere", "start", "alone"]


class OwnWords(NamedTuple):
    """The words, and the codes of the steps that led to them, in order."""

    words: str
    notes: tuple[str, ...]


class _Wrapper(NamedTuple):
    """One row of `wrappers.toml`, which explains the fields."""

    client: str
    tag: str  # "<name" if the block begins with its own tag: the same tag inside then needs a close of its own
    opens: tuple[str, ...]  # literal opening markers; empty if the bare tag opens the block
    close: str
    keep: _Keep
    where: _Where


class _Block(NamedTuple):
    start: int
    inner_start: int
    inner_end: int
    end: int
    wrapper: _Wrapper


def extract(user_text: str, system_text: str = "") -> OwnWords:
    """The user's words in the last user message, given the text of all system messages."""
    system = system_text.strip()
    current = _unpack(OwnWords(user_text.strip(), ()))
    if packed := bool(current.notes):
        current = _cut_outside(current)
    else:
        cut = _cut_outside(_cut_system(current, system))
        # A client may put its own block before the packed history.
        if cut is not current:
            current = _unpack(cut)
            packed = current is not cut
    inside = _cut_to_inside(current)
    return _cut_to_tail(current) if inside is current and not packed and not system else inside


def is_wrapped(text: str) -> bool:
    """Whether a client wrote the whole text: it consists of blocks, none of which contains words of the user."""
    blocks = _blocks(text, "outside")
    if not blocks or _blocks(text, "inside"):
        return False
    return not any(piece.strip() for piece in _pieces_around(text, blocks))


def _pieces_around(text: str, blocks: list[_Block]) -> list[str]:
    starts, ends = [block.start for block in blocks], [block.end for block in blocks]
    return [text[start:end] for start, end in zip([0, *ends], [*starts, None], strict=True)]


def _unpack(current: OwnWords) -> OwnWords:
    """Keep only what follows the last current-message marker; an earlier one may be quoted in the history."""
    if not current.words[: len(_PACKED_OPEN)].lower().startswith(_PACKED_OPEN):
        return current
    end = max((mark.end() for mark in _PACKED_CURRENT.finditer(current.words)), default=len(current.words))
    rest = current.words[end:].strip()
    return OwnWords(rest, (*current.notes, "extract.packed" if rest else "extract.packed_empty"))


def _cut_system(current: OwnWords, system: str) -> OwnWords:
    if not system or len(current.words) <= len(system):
        return current
    # Not str.rfind, which is quadratic for a long needle that almost occurs.
    at = current.words.find(system)
    if at < 0:
        return current
    return _kept(current, _joined([current.words[:at], current.words[at + len(system) :]]), ["extract.embedded_system"])


def _cut_outside(current: OwnWords) -> OwnWords:
    blocks = _blocks(current.words, "outside")
    return _kept(current, _joined(_pieces_around(current.words, blocks)), _names(blocks)) if blocks else current


def _cut_to_inside(current: OwnWords) -> OwnWords:
    blocks = _blocks(current.words, "inside")
    insides = (current.words[block.inner_start : block.inner_end].strip() for block in blocks)
    return _kept(current, "\n".join(filter(None, insides)), _names(blocks)) if blocks else current


def _cut_to_tail(current: OwnWords) -> OwnWords:
    if len(current.words) <= _TAIL_CHARS:
        return current
    # A tail that is short enough is in this window together with the line breaks before it.
    lines = current.words[-_TAIL_CHARS - len("\r\n\r\n") :].split("\n")
    blank = next((i for i in range(len(lines) - 1, 0, -1) if not lines[i].strip()), len(lines))
    tail = "\n".join(lines[blank + 1 :]).strip()
    return _kept(current, tail, ["extract.tail"]) if len(tail) < _TAIL_CHARS else current


def _kept(current: OwnWords, words: str, notes: list[str]) -> OwnWords:
    """The result of a cut, or `current` itself if it would leave nothing."""
    return OwnWords(words, tuple(dict.fromkeys((*current.notes, *notes)))) if words else current


def _joined(pieces: list[str]) -> str:
    """The pieces joined without running two words together; line breaks are kept, because they mark the tail."""
    parts: list[str] = []
    for piece in filter(None, pieces):
        if parts and not parts[-1][-1].isspace() and not piece[0].isspace():
            parts.append(" ")
        parts.append(piece)
    return "".join(parts).strip()


def _names(blocks: list[_Block]) -> list[str]:
    return [f"extract.wrapper.{client}" for client in dict.fromkeys(block.wrapper.client for block in blocks)]


def _blocks(text: str, keep: _Keep) -> list[_Block]:
    """The outermost closed blocks, in order. An opening marker inside another block belongs to that block."""
    marked = _last_marked(text) if len(text) <= KEPT_CHARACTERS else _is_marked(text)
    if not marked:
        return []
    wrappers = _wrappers(keep)
    present = [wrapper for wrapper in wrappers[""] if wrapper.close in text]
    for close in dict.fromkeys(_CLOSE_TAG.findall(text)):
        present += wrappers.get(close, ())
    found = [block for wrapper in present for block in _closed(text, wrapper)]
    found.sort(key=lambda block: (block.start, -block.end))
    outer: list[_Block] = []
    end, leading = 0, True
    for block in found:
        if block.start < end:
            continue
        leading = leading and not text[end : block.start].strip()
        where = block.wrapper.where
        if (where == "start" and not leading) or (where == "alone" and (block.start, block.end) != (0, len(text))):
            continue
        outer.append(block)
        end = block.end
    return _unfenced(text, outer)


def _closed(text: str, wrapper: _Wrapper) -> list[_Block]:
    """The outermost closed blocks of one wrapper; a close belongs to the nearest open marker before it."""
    marks = [(at, 0, at + len(literal)) for literal in wrapper.opens for at in _finds(text, literal)]
    if wrapper.tag and (marks or not wrapper.opens):
        kind = 1 if wrapper.opens else 0
        rests = ((at, _TAG_REST.match(text, at + len(wrapper.tag))) for at in _finds(text, wrapper.tag))
        marks += [(at, kind, rest.end()) for at, rest in rests if rest]
    if not marks:
        return []
    if not wrapper.close:
        start, _, inner = min(marks)
        return [_Block(start, inner, len(text), len(text), wrapper)]
    marks += [(at, 2, at + len(wrapper.close)) for at in _finds(text, wrapper.close)]
    marks.sort()
    opened: list[tuple[int, int, int]] = []
    closed: list[tuple[int, int, int, int]] = []
    past = 0
    for mark in marks:
        at, kind, end = mark
        if at < past:  # inside the marker before it, as a tag is inside a literal marker
            continue
        past = end
        if kind < 2:
            opened.append(mark)
        elif opened and (first := opened.pop())[1] == 0:
            while closed and closed[-1][0] > first[0]:
                closed.pop()
            closed.append((first[0], first[2], at, end))
    return [_Block(*span, wrapper) for span in closed]


def _finds(text: str, needle: str) -> Iterator[int]:
    at = text.find(needle)
    while at >= 0:
        yield at
        at = text.find(needle, at + len(needle))


def _unfenced(text: str, blocks: list[_Block]) -> list[_Block]:
    """The blocks that are not inside a code fence. Fence lines inside a block are ignored."""
    if not blocks or ("```" not in text and "~~~" not in text):
        return blocks
    starts = [block.start for block in blocks]
    fences: list[tuple[int, int]] = []
    opened: re.Match[str] | None = None
    for line in _FENCE.finditer(text):
        near = bisect_right(starts, line.start()) - 1
        if near >= 0 and line.start() < blocks[near].end:
            continue
        if opened is None:
            opened = line
        elif line[1] == opened[1] and not line[2].strip():
            fences.append((opened.start(), line.end()))
            opened = None
    fence_starts = [start for start, _ in fences]

    def fenced(block: _Block) -> bool:
        near = bisect_right(fence_starts, block.start) - 1
        return near >= 0 and block.end <= fences[near][1]

    return [block for block in blocks if not fenced(block)]


@cache
def _wrappers(keep: _Keep) -> dict[str, list[_Wrapper]]:
    """The wrappers by closing tag, so that most need not be looked for; under "" those without a tag."""
    found: dict[str, list[_Wrapper]] = {"": []}
    for row in tomllib.loads(files("turnout.text").joinpath("wrappers.toml").read_text("utf-8"))["wrapper"]:
        if row["keep"] != keep:
            continue
        opens = (row["open"],) if isinstance(row["open"], str) else tuple(row["open"])
        close: str = row["close"]
        tag = close.replace("</", "<")[:-1] if _CLOSE_TAG.fullmatch(close) else ""
        own = tag if tag and all(one.startswith(tag) for one in opens) else ""
        literals = () if opens == (f"{tag}>",) else opens
        wrapper = _Wrapper(row["client"], own, literals, close, keep, row.get("where", "anywhere"))
        found.setdefault(close if own else "", []).append(wrapper)
    return found


def _is_marked(text: str) -> bool:
    """Whether a text can have a block at all. Most have none, and each is checked twice in a row."""
    return bool(_marks()(text.encode(*CODEC)))


_last_marked = lru_cache(maxsize=1)(_is_marked)


@cache
def _marks() -> Search:
    """Finds what every message with a block contains: a closing tag, or an opening marker of a wrapper without one."""
    keeps: tuple[_Keep, _Keep] = ("outside", "inside")
    literals = (literal for keep in keeps for wrapper in _wrappers(keep)[""] for literal in wrapper.opens)
    return search_set([r"</[\pL\pM\pN_-]+>", *map(re2.escape, literals)])
