"""From what was asked to what the layers read: extract the user's own words, fold them, scan them once."""

from __future__ import annotations

from collections.abc import Callable

from turnout.core.query import Query, Reading

from .extract import extract
from .fold import FoldedText, fold, fold_ascii, fold_javascript
from .match import Matcher

# Characters. Beyond them the beginning and the end tell what a text is about, and the work stops growing.
LONGEST = 2**20
# Characters on either side of where they meet that tell whether both are still there.
SEAM = 64

_WINDOW = ("scan.window",)
FOLDS: dict[str, Callable[[str], FoldedText]] = {"unicode": fold, "javascript": fold_javascript}


def reader(matcher: Matcher, *, fold_name: str, unwrap: bool) -> Callable[[Query], Reading]:
    """A function that reads queries for one profile. `unwrap` strips what clients wrap around the user's words."""
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


def own_words(query: Query) -> tuple[str, str]:
    """The last user message, and all system messages joined."""
    user = next((turn.text for turn in reversed(query.turns) if turn.role == "user"), "")
    return user, "\n".join(turn.text for turn in query.turns if turn.role == "system")
