"""Recognises texts by which a source says that it has nothing: the one list of such phrases.

All clients but one report a status. This is for a source that only returns text, an endpoint declared in the settings;
nothing else may guess from words.
"""

from __future__ import annotations

from turnout.text.fold import fold

# From the sources of the specification.
PHRASES = (
    *("no results found", "no results", "nothing found", "no matching", "no articles found", "no entries found"),
    *("not configured", "is not set", "could not connect", "connection refused", "cannot reach", "unreachable"),
    *("timed out", "request failed", "an error occurred", "error:"),
)
# A longer text is an answer, whatever it begins with.
LONGEST = 200


def compat_text_is_empty(text: str) -> bool:
    """Whether a text is blank or says that there is no result."""
    words = " ".join(fold(text[: LONGEST + 1]).text.split())
    return not words or (len(words) <= LONGEST and any(phrase in words for phrase in PHRASES))
