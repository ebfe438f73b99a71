"""What was not sent and what that saved, for one answer and for all.

The log keeps only numbers of it, so they are there at every level of redaction. An answer after which the reader asked
for the page counts as regret.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from turnout.models.price import MILLION, prices_of
from turnout.models.slot import Slot
from turnout.store.records import Search

from .context import Tokens


class Saving(Struct, frozen=True, omit_defaults=True):
    """The tokens sent for one answer, and those that its policy left out."""

    sent: Tokens
    left_out: Tokens
    usd: float | None = None
    """The price of what was left out; None if the model's price is not known."""


def saving(sent: Tokens, left_out: Tokens, slot: Slot) -> Saving:
    prices = prices_of(slot)
    return Saving(sent, left_out, left_out.total * prices.input_usd / MILLION if prices is not None else None)


def note(found: Saving, *, sentences: int, capped: bool, again: bool) -> dict[str, Any]:
    """What the log keeps of an answer."""
    return {
        "sent_tokens": asdict(found.sent),
        "left_out_tokens": asdict(found.left_out),
        "saved_usd": found.usd,
        "sentences": sentences,
        "capped": capped,
        "again": again,
    }


class Savings(Struct, frozen=True):
    """The savings of all answers."""

    answers: int
    sent_tokens: int
    left_out_tokens: int
    by_kind: dict[str, int]
    saved_usd: float | None
    """None if no model had a known price."""
    regretted: int
    """Answers after which the reader asked for the page."""

    @property
    def share(self) -> float:
        """The share of the available context that was not sent."""
        return self.left_out_tokens / ((self.sent_tokens + self.left_out_tokens) or 1)


def total(rows: Iterable[Search]) -> Savings:
    answers = sent = regretted = 0
    by_kind = dict.fromkeys(Tokens.__struct_fields__, 0)
    usd: list[float] = []
    for row in rows:
        if "left_out_tokens" not in row.extra:
            continue
        answers += 1
        sent += sum(row.extra["sent_tokens"].values())
        regretted += bool(row.extra["again"])
        for kind, tokens in row.extra["left_out_tokens"].items():
            by_kind[kind] += tokens
        if row.extra["saved_usd"] is not None:
            usd.append(row.extra["saved_usd"])
    return Savings(answers, sent, sum(by_kind.values()), by_kind, sum(usd) if usd else None, regretted)
