"""Plain-text sources that cannot report a status say in words that they have nothing: the one list of such words.

Every client here reports a status. This is for a source that only returns text, such as an endpoint declared in the
settings; nothing else may guess from words.
"""

from __future__ import annotations

from turnout.text.fold import fold

# Of the seed's sources.
PHRASES = (
    *("no results found", "no results", "nothing found", "no matching", "no articles found", "no entries found"),
    *("not configured", "is not set", "could not connect", "connection refused", "cannot reach", "unreachable"),
    *("timed out", "request failed", "an error occurred", "error:"),
)
# A text this long has said something, whatever it begins with.
LONGEST = 200


def compat_text_is_empty(text: str) -> bool:
    """Whether a text that came instead of a result says that there is none."""
    said = " ".join(fold(text[: LONGEST + 1]).text.split())
    return not said or (len(said) <= LONGEST and any(phrase in said for phrase in PHRASES))
