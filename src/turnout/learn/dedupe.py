"""Collapses duplicate rows into the one with the most trusted label, which counts how many rows it stands for.

Rows with the same folded text are duplicates, whatever their labels. Rows that share most of their character shingles
are near duplicates, and collapse only if their labels are the same, because a single word may be the difference between
two routes ("turn it on", "turn it off").

Similarity is estimated from MinHash signatures. Rows are candidates if a band of their signatures is equal, and in
every bucket each row is compared with its neighbour and with the first, so the time is linear in the rows. Collapsing
is repeated until nothing changes, so that doing it twice has no further effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from turnout.text.count import counted

from .dataset import Example, folded, hash_text

# Shingles of four characters distinguish short questions that differ in one word, and survive a changed ending.
SHINGLE = 4
# The share of shingles that two near duplicates have in common: one changed word in a sentence of twelve. Below it are
# paraphrases, which are worth learning from.
ALIKE = 0.8
# With 16 bands of 8, a pair at exactly ALIKE is a candidate with 95 %, a pair at 0.9 with more than 99.9 %.
BANDS, ROWS = 16, 8
# Only the beginning and the end of a longer text are compared.
CHARACTERS = 4096
# Signatures are computed for this many characters at a time, in about 60 MB.
CHUNK = 1 << 20
# A fixed seed, so that signatures are the same everywhere; any number would do.
SEED = 0x7475726E


class UniqueRows(Struct, frozen=True):
    rows: tuple[Example, ...]
    exact: int
    """Rows removed because another has the same folded text."""
    near: int
    """Rows removed as near duplicates of another with the same label."""
    remarks: tuple[str, ...] = ()


def dedupe(rows: Sequence[Example]) -> UniqueRows:
    """Each question once; the remaining rows keep their order."""
    once, conflicts = collapse_exact(rows)
    left = collapse_near(once)
    exact, nearly = len(rows) - len(once), len(once) - len(left)
    remarks = []
    if exact or nearly:
        gone = [counted(count, noun) for count, noun in ((exact, "duplicate"), (nearly, "near duplicate")) if count]
        remarks.append(f"{' and '.join(gone)} collapsed: {counted(len(left), 'row')} left")
    if conflicts:
        shown = "; ".join(f"{text[:60]!r}: {' over '.join(labels)}" for text, labels in conflicts[:3])
        remarks.append(f"people disagree on {counted(len(conflicts), 'question')}, the last word counts: {shown}")
    return UniqueRows(tuple(left), exact, nearly, tuple(remarks))


def collapse_exact(rows: Sequence[Example]) -> tuple[list[Example], list[tuple[str, list[str]]]]:
    """One row for each folded text: the most trusted, and of several such the newest. Also the questions that people
    labelled differently, with their labels, the used one first."""
    same: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        same.setdefault(folded(row.text), []).append(index)
    kept: list[tuple[int, Example]] = []
    conflicts: list[tuple[str, list[str]]] = []
    for indices in same.values():
        # Of equally new rows the last one: a correction is usually appended to a file.
        ranked = sorted(indices, key=lambda index: (rows[index].belief, -rows[index].at, -index))
        best = rows[ranked[0]]
        count = sum(rows[index].count for index in indices)
        kept.append((ranked[0], best if count == best.count else msgspec.structs.replace(best, count=count)))
        humans = list(dict.fromkeys(rows[index].label for index in ranked if rows[index].by == "human"))
        if len(humans) > 1:
            conflicts.append((best.text, humans))
    return [row for _, row in sorted(kept, key=lambda pair: pair[0])], conflicts


def collapse_near(rows: Sequence[Example]) -> list[Example]:
    """Rows with the same label that are nearly the same become one."""
    if len(rows) < 2:
        return list(rows)
    texts = [folded(row.text) for row in rows]
    signatures = sign(texts)
    order = _orders(texts)
    labels = np.unique(np.array([row.label for row in rows], dtype=object), return_inverse=True)[1]
    # The most trusted label first, then the row that stands for most, then a tie-break independent of the order.
    rank = np.empty(len(rows), dtype=np.int64)
    ranked = sorted(range(len(rows)), key=lambda index: (rows[index].belief, -rows[index].count, int(order[index])))
    rank[ranked] = np.arange(len(rows))
    counts = [row.count for row in rows]
    left = np.arange(len(rows))
    while True:
        pairs = left[alike(signatures[left], order[left])]
        pairs = pairs[labels[pairs[:, 0]] == labels[pairs[:, 1]]] if len(pairs) else pairs
        if not len(pairs):
            break
        better = np.where(rank[pairs[:, 0]] < rank[pairs[:, 1]], pairs[:, 0], pairs[:, 1])
        worse = pairs.sum(axis=1) - better
        into: dict[int, int] = {}
        # Starting with the best row, each remaining row absorbs those like it.
        for index in np.lexsort((rank[worse], rank[better])).tolist():
            keeper, other = int(better[index]), int(worse[index])
            if keeper not in into and other not in into:
                into[other] = keeper
        for other, keeper in into.items():
            counts[keeper] += counts[other]
        left = np.array([index for index in left.tolist() if index not in into], dtype=np.int64)
    return [
        rows[index] if counts[index] == rows[index].count else msgspec.structs.replace(rows[index], count=counts[index])
        for index in left.tolist()
    ]


def group_alike(texts: Sequence[str], joined: Iterable[tuple[int, int]] = ()) -> list[int]:
    """The group number of each text. Texts share a group if they are the same, near duplicates, or `joined`."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    first: dict[str, int] = {}
    plain = [folded(text) for text in texts]
    pairs = [(first.setdefault(text, index), index) for index, text in enumerate(plain)]
    alone = list(first.values())
    if len(alone) > 1:
        chosen = [plain[index] for index in alone]
        pairs += [(alone[one], alone[other]) for one, other in alike(sign(chosen), _orders(chosen)).tolist()]
    ends = np.array([*pairs, *joined]).reshape(-1, 2)
    links = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(len(texts), len(texts)))
    groups: list[int] = connected_components(links, directed=False)[1].tolist()
    return groups


# --- signatures


def sign(texts: Sequence[str]) -> Any:
    """The MinHash signature of each text: (len(texts), BANDS * ROWS) 32-bit numbers."""
    random = np.random.default_rng(SEED)
    factors = random.integers(1, 1 << 62, BANDS * ROWS, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    signatures = np.empty((len(texts), BANDS * ROWS), dtype=np.uint32)
    for start, end in _chunks(texts):
        shingles, starts = _shingles(texts[start:end])
        for column, factor in enumerate(factors):
            # Multiply and keep the upper half: independent enough for a minimum, in one pass over memory.
            hashed = ((shingles * factor) >> np.uint64(32)).astype(np.uint32)
            signatures[start:end, column] = np.minimum.reduceat(hashed, starts)
    return signatures


def alike(signatures: Any, order: Any) -> Any:
    """Pairs of near duplicates, (n, 2). `order` has a number for each row that depends on its text alone."""
    codes = []
    for band in range(BANDS):
        part = np.ascontiguousarray(signatures[:, band * ROWS : (band + 1) * ROWS])
        keys = part.view(np.dtype((np.void, part.dtype.itemsize * ROWS))).ravel()
        bucket = np.unique(keys, return_inverse=True)[1]
        # Each band orders a bucket differently, so rows have other neighbours and another first row.
        mixed = order * np.uint64(2 * band + 3) ^ (order >> np.uint64(band + 7))
        sorted_rows = np.lexsort((mixed, bucket))
        buckets = bucket[sorted_rows]
        inside = np.flatnonzero(buckets[1:] == buckets[:-1]) + 1
        if not len(inside):
            continue
        begins = np.flatnonzero(np.concatenate(([True], buckets[1:] != buckets[:-1])))
        firsts = begins[np.searchsorted(begins, inside, side="right") - 1]
        for other in (inside - 1, firsts):
            one, two = sorted_rows[inside], sorted_rows[other]
            codes.append(np.minimum(one, two) * len(signatures) + np.maximum(one, two))
    if not codes:
        return np.empty((0, 2), dtype=np.int64)
    pairs = np.stack(np.divmod(np.unique(np.concatenate(codes)), len(signatures)), axis=1)
    same = np.concatenate(
        [
            (signatures[some[:, 0]] == signatures[some[:, 1]]).mean(axis=1)
            for some in np.array_split(pairs, len(pairs) // 100_000 + 1)
        ]
    )
    return pairs[same >= ALIKE]


def _orders(texts: Iterable[str]) -> Any:
    """A number for each text that depends on it alone."""
    return np.frombuffer(b"".join(map(hash_text, texts)), dtype=np.uint64)


def _chunks(texts: Sequence[str]) -> Iterable[tuple[int, int]]:
    start = size = 0
    for index, text in enumerate(texts):
        size += min(len(text), CHARACTERS) + SHINGLE
        if size >= CHUNK:
            yield start, index + 1
            start, size = index + 1, 0
    if start < len(texts):
        yield start, len(texts)


def _shingles(texts: Sequence[str]) -> tuple[Any, Any]:
    """The hashed shingles of all texts in a row, and where each text begins; every text has at least one."""
    half = CHARACTERS // 2
    # Everything but letters and digits counts as a space, so that "please!" and "please." are the same.
    shown = (text if len(text) <= CHARACTERS else f"{text[:half]} {text[-half:]}" for text in texts)
    spaced = [f" {_plain(text)} ".ljust(SHINGLE) for text in shown]
    codes = np.frombuffer("".join(spaced).encode("utf-32-le", "replace"), dtype=np.uint32).astype(np.uint64)
    lengths = np.array([len(text) for text in spaced])
    mixed = np.zeros(len(codes) - SHINGLE + 1, dtype=np.uint64)
    for offset in range(SHINGLE):
        mixed = mixed * np.uint64(0x9E3779B97F4A7C15) + codes[offset : offset + len(mixed)] + np.uint64(1)
    # A finaliser, so that neighbours in the alphabet are not neighbours in the order of the hashes.
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    ends = np.cumsum(lengths)
    keep = np.ones(len(codes), dtype=bool)
    for offset in range(1, SHINGLE):
        keep[ends - offset] = False
    kept = lengths - SHINGLE + 1
    return mixed[keep[: len(mixed)]], np.concatenate(([0], np.cumsum(kept)[:-1]))


def _plain(text: str) -> str:
    if text.isalnum():
        return text
    plain = " ".join("".join(character if character.isalnum() else " " for character in text).split())
    # A text of punctuation alone is compared by its punctuation.
    return plain or text
