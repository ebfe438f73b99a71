"""A text's outward shape: how long it is and what it is made of, whatever it says.

Such numbers say little about a question, but what they say carries over from one kind of question to another, which
words do not. They are read off the folded text in time linear in what is read, and that is capped.
"""

from __future__ import annotations

from math import log1p

# What is beyond only counts as length: the proportions of a long text show in its first pages.
READ = 4096

# How many numbers `shape_of` gives.
NUMBERS = 14

_ASCII = bytes(range(128))
_DIGITS = b"0123456789"
_SIGNS = bytes(code for code in range(33, 127) if not chr(code).isalnum())
_BUT_DIGITS = bytes(set(_ASCII) - set(_DIGITS)) + bytes(range(128, 256))
_BUT_SIGNS = bytes(set(_ASCII) - set(_SIGNS)) + bytes(range(128, 256))


def shape_of(folded: str) -> tuple[float, ...]:
    """Logarithms of counts, and proportions: all of them finite, and none larger than a few dozen."""
    read = folded[:READ]
    encoded = read.encode("utf-8", "replace")
    words = read.split()
    size, count = max(len(read), 1), max(len(words), 1)
    digits = len(encoded.translate(None, _BUT_DIGITS))
    signs = len(encoded.translate(None, _BUT_SIGNS))
    length = log1p(len(folded))
    return (
        length,
        # A tenth keeps it in the range of the others: the logarithm of 16 million is 17.
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
