"""From what was asked to what the layers read: extract the user's own words, fold them, scan them once."""

from __future__ import annotations

from collections.abc import Callable

from turnout.core.query import Query, Reading, Turn

from .extract import extract
from .fold import FoldedText, fold, fold_ascii, fold_javascript
from .match import Matcher
from .reference import needs_history
from .terms import tokenize
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
FOLDS: dict[str, Callable[[str], FoldedText]] = {"unicode": fold, "javascript": fold_javascript}


def reader(matcher: Matcher, *, fold_name: str, unwrap: bool, inherit: bool = False) -> Callable[[Query], Reading]:
    """A function that reads queries for one profile. `unwrap` strips what clients wrap around the user's words;
    `inherit` reads a follow-up together with what it goes on from."""
    to_folded = FOLDS[fold_name]
    scan, scan_ascii = matcher.scan, matcher.scan_ascii
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
            seen = fold_ascii(words)
            bare = seen.strip()
            notes += _WINDOW if seam else ()
            return Reading(query, words, bare.decode(), len(seen) + between, scan_ascii(bare), notes)
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
    return all(word in CLOSING.words for word in tokenize(fold(words).text) if word[0].isalnum())


def own_words(query: Query) -> tuple[str, str]:
    """The last user message, and all system messages joined."""
    user = next((turn.text for turn in reversed(query.turns) if turn.role == "user"), "")
    return user, "\n".join(turn.text for turn in query.turns if turn.role == "system")
