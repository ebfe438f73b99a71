"""Splits rows into those to learn from and those to judge by.

The side of a row depends on its text and the seed. Shuffling the file changes nothing and added rows hardly move the
others, so the rows that judged an earlier student are still held out from the next. Near duplicates, and on request
the rows of a session, form a group that stays together, whatever their labels. Each label has its share on both sides
as far as its groups allow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from turnout.core.errors import TooFewExamples
from turnout.text.count import counted

from .dataset import Example, folded, hash_text
from .dedupe import group_alike

# A fifth is held out: enough to judge by, with little loss for the training on the rest.
SHARE = 0.2
FOLDS = 5
# How far a label's share may be from the requested one before rows change sides.
SLACK = 0.2


class Split(Struct, frozen=True):
    """The indices of the rows on either side."""

    learn: tuple[int, ...]
    judge: tuple[int, ...]
    remarks: tuple[str, ...] = ()


class Group(NamedTuple):
    place: float
    """A number from 0 to 1 that depends on its texts and the seed."""
    rows: tuple[int, ...]


def hold_out(rows: Sequence[Example], *, share: float = SHARE, seed: int = 0, sessions: bool = False) -> Split:
    """Hold out a stratified share of the rows to judge by. A label with one group is learnt, and not judged."""
    if not 0 < share < 1:
        raise ValueError(f"share {share}: more than 0 and less than 1 is needed")
    judge: list[int] = []
    remarks: list[str] = []
    for label, groups in _by_label(rows, seed, sessions).items():
        total = sum(len(group.rows) for group in groups)
        low, high = max(1, total * share * (1 - SLACK)), max(1, total * share * (1 + SLACK))
        taken: list[Group] = []
        held = 0
        for group in groups:
            # By its place alone, unless the label's share would be too far off.
            wanted = group.place < share or held < low
            if wanted and held + len(group.rows) <= high and len(taken) < len(groups) - 1:
                taken.append(group)
                held += len(group.rows)
        smallest = min(groups, key=lambda group: (len(group.rows), group.place))
        if not taken and len(smallest.rows) <= total / 2:
            taken.append(smallest)
        judge += [index for group in taken for index in group.rows]
        if not taken:
            remarks.append(f"{label}: {_size(groups)}, too few to hold some out: it is learnt and not judged")
    judged = set(judge)
    learn = tuple(index for index in range(len(rows)) if index not in judged)
    return Split(learn, tuple(sorted(judged)), tuple(remarks))


def k_fold(rows: Sequence[Example], *, folds: int = FOLDS, seed: int = 0, sessions: bool = False) -> tuple[Split, ...]:
    """Split the rows this many ways. Each row is judged in exactly one split; labels are spread evenly."""
    if folds < 2:
        raise ValueError(f"folds {folds}: at least 2 are needed")
    if len(rows) < folds:
        raise TooFewExamples(f"{len(rows)} examples cannot be split {folds} ways: fewer folds, or more examples")
    fold_of = [0] * len(rows)
    sizes = [0] * folds
    remarks: list[str] = []
    for label, groups in _by_label(rows, seed, sessions).items():
        filled: Counter[int] = Counter()
        for group in sorted(groups, key=lambda group: (-len(group.rows), group.place)):
            fold = min(range(folds), key=lambda fold: (filled[fold], sizes[fold], fold))
            filled[fold] += len(group.rows)
            sizes[fold] += len(group.rows)
            for index in group.rows:
                fold_of[index] = fold
        if len(groups) < folds:
            remarks.append(f"{label}: {_size(groups)} for {folds} folds: some folds have none of it")
    return tuple(
        Split(
            tuple(index for index, own in enumerate(fold_of) if own != fold),
            tuple(index for index, own in enumerate(fold_of) if own == fold),
            tuple(remarks),
        )
        for fold in range(folds)
    )


def _by_label(rows: Sequence[Example], seed: int, sessions: bool) -> dict[str, list[Group]]:
    """The groups by the most frequent label of their rows, in the order of their places."""
    first: dict[tuple[str, str], int] = {}
    joined = [
        (first.setdefault((row.tenant, row.session), index), index)
        for index, row in enumerate(rows if sessions else ())
        if row.session is not None
    ]
    members: dict[int, list[int]] = {}
    for index, group in enumerate(group_alike([row.text for row in rows], joined)):
        members.setdefault(group, []).append(index)
    by_label: dict[str, list[Group]] = {}
    for indices in members.values():
        labels = Counter(rows[index].label for index in indices)
        label = min(labels, key=lambda name: (-labels[name], name))
        place = min(_place(rows[index].text, seed) for index in indices)
        # The minimum of many places is small, so large groups would always be held out; this makes it uniform again.
        place = 1 - (1 - place) ** len({folded(rows[index].text) for index in indices})
        by_label.setdefault(label, []).append(Group(place, tuple(indices)))
    return {label: sorted(by_label[label]) for label in sorted(by_label)}


def _place(text: str, seed: int) -> float:
    return int.from_bytes(hash_text(f"{seed}\0{folded(text)}"), "big") / 2**64


def _size(groups: Sequence[Group]) -> str:
    total = sum(len(group.rows) for group in groups)
    rows = counted(total, "row")
    return rows if total == len(groups) else f"{rows} in {len(groups):,} groups of near duplicates"
