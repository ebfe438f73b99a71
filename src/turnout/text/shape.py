"""Features of a text's form: how long it is and what it is made of.

Such numbers say little about a question, but unlike words, what they say applies to all kinds of questions. They are
computed from the folded text, in linear time up to a limit.
"""

from __future__ import annotations

from math import log1p

# Characters read for everything but the length: the proportions of a long text show in its first pages.
READ = 4096

# How many numbers `shape_of` returns.
NUMBERS = 14

_ASCII = bytes(range(128))
_DIGITS = b"0123456789"
_SIGNS = bytes(code for code in range(33, 127) if not chr(code).isalnum())
_BUT_DIGITS = bytes(set(_ASCII) - set(_DIGITS)) + bytes(range(128, 256))
_BUT_SIGNS = bytes(set(_ASCII) - set(_SIGNS)) + bytes(range(128, 256))


def shape_of(folded: str) -> tuple[float, ...]:
    """Logarithms of counts, and proportions: all finite, none larger than a few dozen."""
    read = folded[:READ]
    encoded = read.encode("utf-8", "replace")
    words = read.split()
    size, count = max(len(read), 1), max(len(words), 1)
    digits = len(encoded.translate(None, _BUT_DIGITS))
    signs = len(encoded.translate(None, _BUT_SIGNS))
    length = log1p(len(folded))
    return (
        length,
        # Divided by ten to keep it in the range of the others: the logarithm of 16 million is 17.
        length * length / 10,
        log1p(len(words)),
        min(size / count, 32.0),
        min(float(max(map(len, words), default=0)), 32.0),
        len(set(words)) / count,
        log1p(digits),
        digits / size,
        log1p(signs),
        signs / size,
        log1p(read.count("\n")),
        log1p(read.count("?")),
        log1p(read.count(".")),
        log1p(read.count(",")),
    )
