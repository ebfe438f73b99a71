"""Limits how much of a student's training one sender can control. Rows beyond a limit are quarantined with a reason.

Users write training rows by asking questions. Four limits apply: rows of a session, of a tenant, of one source within
a label, and the growth of a label in one update. The remaining rows are searched for triggers: words that were rare,
are now frequent and nearly always come with one label.

Such a word may also be the name of a new product. The rules, in this order:

1. At least three named people labelled the rows: the word is genuine, the rows stay.
2. Without the word, at least half of the texts clearly have another label, by a model that saw none of these rows, and
   far more often than usual: a trigger, the rows are quarantined, from any sender. (If the label has too few rows to
   judge by, nine of ten texts must contradict it.)
3. Nothing contradicts the label, and people labelled the rows or at least three senders sent them: new vocabulary, the
   rows stay. (A row without a session counts as a sender of its own.)
4. Otherwise one or two senders had a model label a new word: the rows are quarantined.

Many sessions never override rule 2, because anyone can open another session. A trigger in texts that rightly have the
label, sent under many names, cannot be told from new vocabulary; only the limits bound such rows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

from ..dataset import Example, folded, hash_text
from .trigger import Trigger, scan

Share = Annotated[float, Meta(gt=0.0, le=1.0)]
Code = Literal["session", "tenant", "source", "trigger", "growth"]


class SenderLimits(Struct, frozen=True, forbid_unknown_fields=True):
    """How many rows are accepted from each sender."""

    # T-RT-7 of the threat model: 20 rows a key, 5 % a tenant.
    session_rows: Annotated[int, Meta(ge=1)] = 20
    tenant_share: Share = 0.05
    # Of one label's new rows: the share of each of five sources of the same size.
    source_share: Share = 0.2
    source_rows: Annotated[int, Meta(ge=1)] = 5
    """Rows that are accepted from every source."""
    # A label may double in one update, so that at least half of its rows are old.
    growth: Annotated[float, Meta(gt=0.0)] = 1.0
    growth_rows: Annotated[int, Meta(ge=1)] = 100
    """Rows that a label may always grow by, so that a small set can start."""
    # T-RT-7: the chance of a word's rows having one label without association, and of their disagreeing as usual.
    doubt: Annotated[float, Meta(gt=0.0, lt=1.0)] = 1e-6
    vouchers: Annotated[int, Meta(ge=1)] = 3
    """People or sessions that make a new word plausible."""


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
    """Decide which of the new rows may be learnt from. `known` are the champion's rows, which are not judged again.

    Seeds are not limited. `accept` are new words the operator vouches for. Collapse duplicates first, so that many
    copies are one row.
    """
    limits = limits or SenderLimits()
    aside: list[QuarantinedRow] = []
    kept = _cap(new, aside, "session", _session, lambda _: limits.session_rows, "rows of one session")
    tenants = {_tenant(row) for row in kept if row.by != "seed"} - {None}
    if tenants:
        # With few tenants, twice the share that each would have on average, so that a single one is not limited.
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
    """The session, else the tenant, with the label; a file that names neither is trusted as the operator's own."""
    sender = _session(row) or _tenant(row)
    return (row.label, *sender) if sender is not None else None


def _cap(
    rows: Sequence[Example],
    aside: list[QuarantinedRow],
    code: Code,
    whose: Callable[[Example], Who | None],
    allowed: Callable[[Who], int],
    what: str,
) -> list[Example]:
    """Keep the allowed number of rows of each sender: the most trusted labels first, then by a hash of the text."""
    by_sender: defaultdict[Who, list[Example]] = defaultdict(list)
    for row in rows:
        sender = whose(row) if row.by != "seed" else None
        if sender is not None:
            by_sender[sender].append(row)
    over: set[int] = set()
    for sender, theirs in by_sender.items():
        most = allowed(sender)
        for row in sorted(theirs, key=lambda row: (row.belief, hash_text(folded(row.text))))[most:]:
            over.add(id(row))
            aside.append(QuarantinedRow(row, code, f"{len(theirs):,} {what}, at most {most:,} are learnt from"))
    return [row for row in rows if id(row) not in over]


def _without_triggers(
    rows: list[Example],
    known: Sequence[Example],
    limits: SenderLimits,
    aside: list[QuarantinedRow],
    accept: Iterable[str],
) -> tuple[list[Example], list[Trigger], list[str]]:
    if not known:
        why = "no trigger scan: there is no champion whose data the new rows could be compared with"
        return rows, [], [why] if rows else []
    triggers = scan(rows, known, limits.doubt, limits.vouchers, accept)
    reasons: dict[int, str] = {}
    for trigger in triggers:
        for index in trigger.rows if not trigger.excuse else ():
            reasons.setdefault(index, trigger.sentence())
    aside += [QuarantinedRow(rows[index], "trigger", reason) for index, reason in reasons.items()]
    remarks = [f"{one.word!r} is new and means {one.label}: {one.excuse}" for one in triggers if one.excuse]
    return [row for index, row in enumerate(rows) if index not in reasons], triggers, remarks[:10]
