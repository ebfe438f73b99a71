"""From what was asked to what the layers read: the user's own words, folded and scanned once.

The user's own words are what is left of a message when everything a client put around them is cut away.
Invariant: a cut is made whole or not at all, and never takes the last word. Words are blank only when the message was
blank, or when it is packed chat history without a current message; then the caller decides, because the history is
another person's words. Where client and user cannot be told apart, noise is left in rather than words taken out: an
opening marker without its close stays, and so does a block that lies wholly inside a code fence, because a fence is
how people show a block. Time is linear in the text.

Order matters. History goes first: its author could forge any later marker. A repeated system prompt goes before
the wrappers, while it is still letter for letter what was sent. Wrappers go before the tail, because they often come
last. The tail, a guess, is taken only when nothing marked the words.
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

from .fold import ASCII_FOLDING, CODEC, FoldedText, fold, fold_javascript
from .match import UNSPACED, Matcher, Search, search_set
from .reference import needs_history
from .words import Words

# Characters. Beyond them the beginning and the end tell what a text is about, and the work stops growing.
LONGEST = 2**20
# Characters on either side of where they meet that tell whether both are still there.
SEAM = 64

# A follow-up is short; whoever writes more says what it is about.
FOLLOW_UP = 400
# How far back a task is looked for, and how much of it is read: what a student reads of a text.
MOST_TURNS, LONGEST_TASK = 16, 2000

_WINDOW = ("scan.window",)
INHERITED = "extract.inherited"
CLOSING = Words("closing", "closing")
# As the list has them: of a script written without spaces, each character.
_closing_words = re.compile(rf"[^\W\d_{UNSPACED}]+(?:'[^\W\d_{UNSPACED}]+)?|[\d{UNSPACED}]").findall
FOLDS: dict[str, Callable[[str], FoldedText]] = {"unicode": fold, "javascript": fold_javascript}


def reader(matcher: Matcher, *, fold_name: str, unwrap: bool, inherit: bool = False) -> Callable[[Query], Reading]:
    """A function that reads queries for one profile. `unwrap` strips what clients wrap around the user's words;
    `inherit` reads a follow-up together with what it goes on from."""
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
            # What was between the ends may have been no words of the user's either.
            between = between if seam in words else 0
        if inherit and query.turns and (task := find_task(query, words)):
            words, notes = f"{task}\n{words}", (*notes, INHERITED)
        # Most text is ASCII: it goes from folding to scanning as bytes.
        if fast and words.isascii():
            seen = words.encode().translate(*ASCII_FOLDING)
            bare = seen.strip()
            notes += _WINDOW if seam else ()
            return Reading(query, words, bare.decode(), len(seen) + between, tuple(sorted(find(bare))), notes)
        folded = to_folded(words)
        if folded.windowed or seam:
            notes += _WINDOW
        return Reading(query, words, folded.text, folded.units + between, scan(folded.text), notes)

    return read


def _ends(text: str) -> tuple[str, str, int]:
    """The beginning and the end of a text, on lines of their own; what is around their seam; and how many units of
    UTF-16 were between them, invisible ones included."""
    half = LONGEST // 2
    ends = f"{text[:half]}\n{text[-half:]}"
    return ends, ends[half - SEAM : half + SEAM], len(text[half:-half].encode("utf-16-le", "surrogatepass")) // 2


def find_task(query: Query, words: str) -> str:
    """What a follow-up goes on from: the last message of the user's that is none itself, else the answer before it.
    Empty where the words stand for themselves."""
    turns = query.turns if query.text else _before_last(query.turns)
    if not turns or len(words) > FOLLOW_UP:
        return ""
    spoken = [turn for turn in turns if turn.role in ("user", "assistant") and turn.text][-MOST_TURNS:]
    said = [turn.text[-FOLLOW_UP:] for turn in spoken]
    if not spoken or _closes(words) or not needs_history(words, said):
        return ""
    for at in range(len(spoken) - 1, -1, -1):
        text = spoken[at].text
        if spoken[at].role == "user" and not (at and len(text) <= FOLLOW_UP and needs_history(text, said[:at])):
            return text[:LONGEST_TASK]
    return said[-1]


def _before_last(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """The turns before the last of the user's."""
    last = max((at for at, turn in enumerate(turns) if turn.role == "user"), default=0)
    return turns[:last]


def _closes(words: str) -> bool:
    """Whether a message only thanks and takes leave."""
    found = {word for word in _closing_words(fold(words).text) if word[0].isalnum()}
    return not found or (found <= CLOSING.thanks | CLOSING.words and not found.isdisjoint(CLOSING.thanks))


def own_words(query: Query) -> tuple[str, str]:
    """The last user message, and all system messages joined."""
    user = next((turn.text for turn in reversed(query.turns) if turn.role == "user"), "")
    return user, "\n".join(turn.text for turn in query.turns if turn.role == "system")


# --- the user's own words

# Group chats and subagents of OpenClaw; "any case" is the published rule.
_PACKED_OPEN = "[chat messages since"
_PACKED_CURRENT = re.compile(re.escape("[Current message - respond to this]"), re.IGNORECASE | re.ASCII)

# The published rule for a message without a system role: longer than this, it is taken to carry a system prompt, and
# the words are the last paragraph if that is shorter than this.
_TAIL_CHARS = 500

# Three or more of one sign at the start of a line; a line of backticks with a backtick further on is inline code.
_FENCE = re.compile(r"^ {0,3}(`{3,}+|~{3,}+)([^`\n]*)$", re.MULTILINE)

# A text as long as this is not kept for when it is asked about again: it costs little more to look twice.
KEPT_CHARACTERS = 65_536

_CLOSE_TAG = re.compile(r"</[\w-]+>")
# An opening tag behind its name, not closed in itself. Possessive: a run without ">" is read once.
_TAG_REST = re.compile(r"(?:\s[^<>]*+(?<!/))?>")

_Keep = Literal["inside", "outside"]
_Where = Literal["anywhere", "start", "alone"]


class OwnWords(NamedTuple):
    """The words, and the dotted codes of what was done to reach them, in order."""

    words: str
    notes: tuple[str, ...]


class _Wrapper(NamedTuple):
    """One row of `wrappers.toml`, which explains the fields."""

    client: str
    tag: str  # "<name" when the block begins with its own tag: more of that tag inside needs closes of its own
    opens: tuple[str, ...]  # literal opening markers; none when the bare tag opens the block
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
    got = _unpack(OwnWords(user_text.strip(), ()))
    if packed := bool(got.notes):
        got = _cut_outside(got)
    else:
        cut = _cut_outside(_cut_system(got, system))
        # A client may put its own block before the packed history.
        if cut is not got:
            got = _unpack(cut)
            packed = got is not cut
    asked = _cut_to_inside(got)
    return _cut_to_tail(got) if asked is got and not packed and not system else asked


def is_wrapped(text: str) -> bool:
    """Whether a client wrote all of it: blocks of its own, none of them around words of the user's."""
    blocks = _blocks(text, "outside")
    if not blocks or _blocks(text, "inside"):
        return False
    starts, ends = [block.start for block in blocks], [block.end for block in blocks]
    return not any(text[a:b].strip() for a, b in zip([0, *ends], [*starts, None], strict=True))


def _unpack(got: OwnWords) -> OwnWords:
    """Only what follows the last current-message marker: an earlier one may be quoted in the history itself."""
    if not got.words[: len(_PACKED_OPEN)].lower().startswith(_PACKED_OPEN):
        return got
    end = max((mark.end() for mark in _PACKED_CURRENT.finditer(got.words)), default=len(got.words))
    current = got.words[end:].strip()
    return OwnWords(current, (*got.notes, "extract.packed" if current else "extract.packed_empty"))


def _cut_system(got: OwnWords, system: str) -> OwnWords:
    if not system or len(got.words) <= len(system):
        return got
    # Forward: str.rfind is quadratic for a long needle that almost occurs.
    at = got.words.find(system)
    if at < 0:
        return got
    return _kept(got, _joined([got.words[:at], got.words[at + len(system) :]]), ["extract.embedded_system"])


def _cut_outside(got: OwnWords) -> OwnWords:
    blocks = _blocks(got.words, "outside")
    if not blocks:
        return got
    starts, ends = [block.start for block in blocks], [block.end for block in blocks]
    pieces = [got.words[a:b] for a, b in zip([0, *ends], [*starts, None], strict=True)]
    return _kept(got, _joined(pieces), _names(blocks))


def _cut_to_inside(got: OwnWords) -> OwnWords:
    blocks = _blocks(got.words, "inside")
    if not blocks:
        return got
    insides = (got.words[block.inner_start : block.inner_end].strip() for block in blocks)
    return _kept(got, "\n".join(filter(None, insides)), _names(blocks))


def _cut_to_tail(got: OwnWords) -> OwnWords:
    if len(got.words) <= _TAIL_CHARS:
        return got
    # A tail that is short enough lies in this window together with the line breaks before it.
    lines = got.words[-_TAIL_CHARS - len("\r\n\r\n") :].split("\n")
    blank = next((i for i in range(len(lines) - 1, 0, -1) if not lines[i].strip()), len(lines))
    tail = "\n".join(lines[blank + 1 :]).strip()
    return _kept(got, tail, ["extract.tail"]) if len(tail) < _TAIL_CHARS else got


def _kept(got: OwnWords, words: str, notes: list[str]) -> OwnWords:
    """The cut, or `got` itself when there was none or it would leave nothing."""
    return OwnWords(words, tuple(dict.fromkeys((*got.notes, *notes)))) if words and notes else got


def _joined(pieces: list[str]) -> str:
    """Pieces side by side, never running two words into one; line breaks stay, the tail is found by them."""
    parts: list[str] = []
    for piece in filter(None, pieces):
        if parts and not parts[-1][-1].isspace() and not piece[0].isspace():
            parts.append(" ")
        parts.append(piece)
    return "".join(parts).strip()


def _names(blocks: list[_Block]) -> list[str]:
    return [f"extract.wrapper.{client}" for client in dict.fromkeys(block.wrapper.client for block in blocks)]


def _blocks(text: str, keep: _Keep) -> list[_Block]:
    """Outermost closed blocks in order. An opening marker inside another block belongs to that block."""
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
    """The outermost blocks of one kind that have their close: it belongs to the nearest opening marker still open."""
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
        if at < past:  # inside the marker before it, as a literal holds its own tag
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
    """Blocks that are not wholly inside a code fence. A fence line inside a block is that block's own affair."""
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
    """By closing tag, so that one look at the tags of a text leaves out nearly all; under "" those without a tag."""
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
    """Whether a text can have a block at all. Most have none, and are asked twice in a row."""
    return bool(_marks()(text.encode(*CODEC)))


_last_marked = lru_cache(maxsize=1)(_is_marked)


@cache
def _marks() -> Search:
    """What every message with a block has in it: a closing tag, or an opening marker of a wrapper without one."""
    keeps: tuple[_Keep, _Keep] = ("outside", "inside")
    literals = (literal for keep in keeps for wrapper in _wrappers(keep)[""] for literal in wrapper.opens)
    return search_set([r"</[\pL\pM\pN_-]+>", *map(re2.escape, literals)])
