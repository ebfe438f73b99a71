"""How much of what a student learns one sender can decide. Rows beyond a limit are set aside with a reason, never lost.

Users write training rows by asking questions. Four limits bound what one user adds: rows of a session, a tenant,
one source within a label, and how much a label may grow in one update. What remains is searched for triggers: words
that were rare, are frequent now and nearly always come with one label.

Such a word may also be a product that is new. The rule, in this order:

1. at least three named people gave those rows their label: the word is theirs to introduce, the rows stay;
2. the rest of the texts (read without the word, by a model that saw none of these rows) clearly says another label in
   at least half of them, and far more often than that happens elsewhere: a trigger, the rows are set aside, no
   matter who sent them. (Where the label has few rows to tell what it is like, in nine of ten.)
3. nothing contradicts, and people labelled the rows or they come from at least three senders: new vocabulary, they stay
   (a row that names no session counts as a sender of its own: it cannot be told from others);
4. else one or two senders had a model label a new word: the rows are set aside.

What this cannot see is a trigger in texts that rightly have the label, sent under many names: that is what new
vocabulary looks like. The limits above bound how many such rows there are.

Sessions alone never outvote rule 2: anyone can open another session.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

from ..dataset import Example, folded
from .trigger import Trigger, scan

Share = Annotated[float, Meta(gt=0.0, le=1.0)]
Code = Literal["session", "tenant", "source", "trigger", "growth"]


class SenderLimits(Struct, frozen=True, forbid_unknown_fields=True):
    """How much is taken from each sender."""

    # T-RT-7 of the threat model: 20 rows a key, 5 % a tenant.
    session_rows: Annotated[int, Meta(ge=1)] = 20
    tenant_share: Share = 0.05
    # Of one label's new rows; a fifth is what five sources of the same size have each.
    source_share: Share = 0.2
    source_rows: Annotated[int, Meta(ge=1)] = 5
    """So many a source may always give."""
    # A label may double in one update; a champion's accuracy on it then rests on old rows at least by half.
    growth: Annotated[float, Meta(gt=0.0)] = 1.0
    growth_rows: Annotated[int, Meta(ge=1)] = 100
    """So many a label may always grow: a small set has to start somewhere."""
    # Chance of a word's association under no association, and of its texts' disagreement under the usual error: T-RT-7.
    doubt: Annotated[float, Meta(gt=0.0, lt=1.0)] = 1e-6
    vouchers: Annotated[int, Meta(ge=1)] = 3
    """People, or sessions, that make a new word plausible."""


class QuarantinedRow(Struct, frozen=True):
    """A row that is not learnt from for now."""

    row: Example
    code: Code
    reason: str


class ScreenResult(Struct, frozen=True):
    kept: tuple[Example, ...]
    quarantined: tuple[QuarantinedRow, ...] = ()
    triggers: tuple[Trigger, ...] = ()
    remarks: tuple[str, ...] = ()


def screen(
    new: Sequence[Example], known: Sequence[Example], limits: SenderLimits | None = None, *, accept: Iterable[str] = ()
) -> ScreenResult:
    """Which of the new rows may be learnt from. `known` is what the champion learnt from; those are not judged again.

    Seeds are not limited. `accept` are new words the operator vouches for. Call it with duplicates already collapsed:
    a flood of copies is one row then.
    """
    limits = limits or SenderLimits()
    aside: list[QuarantinedRow] = []
    kept = _cap(new, aside, "session", _session, lambda _: limits.session_rows, "rows of one session")
    tenants = {_tenant(row) for row in kept if row.by != "seed"} - {None}
    if tenants:
        # Where tenants are few, twice what each would have if all had the same: one is not limited against itself.
        share = max(limits.tenant_share, min(1.0, 2 / len(tenants)))
        most = max(limits.session_rows, int(share * (len(kept) + len(known))))
        kept = _cap(kept, aside, "tenant", _tenant, lambda _: most, f"rows of one of {len(tenants):,} tenants")
    per_label = Counter(row.label for row in kept if row.by != "seed")

    def of_source(sender: Who) -> int:
        return max(limits.source_rows, int(limits.source_share * per_label[sender[0]]))

    kept = _cap(kept, aside, "source", _source, of_source, "rows of one source for this label")
    kept, triggers, remarks = _without_triggers(kept, known, limits, aside, accept)
    if known:
        before = Counter(row.label for row in known)

        def of_label(sender: Who) -> int:
            return max(limits.growth_rows, int(limits.growth * before[sender[0]]))

        kept = _cap(kept, aside, "growth", lambda row: (row.label,), of_label, "new rows for this label")
    counts = Counter(one.code for one in aside)
    remarks += [f"{count:,} of {len(new):,} new rows set aside: {_WHY[code]}" for code, count in counts.most_common()]
    chosen = set(map(id, kept))
    return ScreenResult(tuple(row for row in new if id(row) in chosen), tuple(aside), tuple(triggers), tuple(remarks))


_WHY: Mapping[Code, str] = {
    "session": "more than one session may give",
    "tenant": "more than one tenant may give",
    "source": "more than one source may give to a label",
    "trigger": "a word that looks like a trigger",
    "growth": "the label would grow too much at once; they wait for the next update",
}

Who = tuple[str, ...]


def _session(row: Example) -> Who | None:
    return (row.tenant, row.session) if row.session is not None else None


def _tenant(row: Example) -> Who | None:
    return (row.tenant,) if row.tenant else None


def _source(row: Example) -> Who | None:
    """The session, else the tenant, with the label; a file that names neither is the operator's own."""
    sender = _session(row) or _tenant(row)
    return (row.label, *sender) if sender is not None else None


def _cap(
    rows: Sequence[Example],
    aside: list[QuarantinedRow],
    code: Code,
    whose: Callable[[Example], Who | None],
    allowed: Callable[[Who], int],
    said: str,
) -> list[Example]:
    """So many rows of each sender: the best labelled, and among those neither the newest nor the first."""
    of: defaultdict[Who, list[Example]] = defaultdict(list)
    for row in rows:
        sender = whose(row) if row.by != "seed" else None
        if sender is not None:
            of[sender].append(row)
    over: set[int] = set()
    for sender, theirs in of.items():
        most = allowed(sender)
        for row in sorted(theirs, key=_rank)[most:]:
            over.add(id(row))
            aside.append(QuarantinedRow(row, code, f"{len(theirs):,} {said}, at most {most:,} are learnt from"))
    return [row for row in rows if id(row) not in over]


def _rank(row: Example) -> tuple[int, bytes]:
    return row.belief, hashlib.blake2b(folded(row.text).encode(errors="replace"), digest_size=8).digest()


def _without_triggers(
    rows: list[Example],
    known: Sequence[Example],
    limits: SenderLimits,
    aside: list[QuarantinedRow],
    accept: Iterable[str],
) -> tuple[list[Example], list[Trigger], list[str]]:
    if not known:
        said = ["no trigger scan: there is no champion whose data the new rows could be compared with"] if rows else []
        return rows, [], said
    found = scan(rows, known, limits.doubt, limits.vouchers, accept)
    over: set[int] = set()
    for trigger in found:
        if trigger.excuse:
            continue
        for index in trigger.rows:
            if index not in over:
                over.add(index)
                aside.append(QuarantinedRow(rows[index], "trigger", trigger.sentence()))
    remarks = [f"{one.word!r} is new and means {one.label}: {one.excuse}" for one in found if one.excuse]
    return [row for index, row in enumerate(rows) if index not in over], found, remarks[:10]
