"""From what was asked to what the layers read: extract the user's own words, fold them, scan them once."""

from __future__ import annotations

from collections.abc import Callable

from turnout.core.query import Query, Reading

from .extract import extract
from .fold import Folded, fold, fold_ascii, fold_javascript
from .match import Matcher

FOLDS: dict[str, Callable[[str], Folded]] = {"unicode": fold, "javascript": fold_javascript}


def reader(matcher: Matcher, *, fold_name: str, unwrap: bool) -> Callable[[Query], Reading]:
    """A function that reads queries for one profile. `unwrap` strips what clients wrap around the user's words."""
    to_folded = FOLDS[fold_name]
    scan, scan_ascii = matcher.scan, matcher.scan_ascii
    fast = to_folded is fold

    def read(query: Query) -> Reading:
        words = query.text
        notes: tuple[str, ...] = ()
        if query.turns and not words:
            words, system = own_words(query)
            if unwrap:
                words, notes = extract(words, system)
        # Most text is ASCII: it goes from folding to scanning as bytes.
        if fast and words.isascii():
            seen = fold_ascii(words)
            bare = seen.strip()
            return Reading(query, words, bare.decode(), len(seen), scan_ascii(bare), notes)
        folded = to_folded(words)
        if folded.windowed:
            notes += ("scan.window",)
        return Reading(query, words, folded.text, folded.units, scan(folded.text), notes)

    return read


def own_words(query: Query) -> tuple[str, str]:
    """The last user message, and all system messages joined."""
    user = next((turn.text for turn in reversed(query.turns) if turn.role == "user"), "")
    return user, "\n".join(turn.text for turn in query.turns if turn.role == "system")
