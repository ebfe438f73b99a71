"""Stores decisions: one schema, two databases, one journal in front of them.

>>> import turnout, turnout.store
>>> with turnout.store.open_store("decisions.db") as store:  # doctest: +SKIP
...     store.record(turnout.load("study").route_sync("Define entropy"))
"""

from __future__ import annotations

from .journal import Counts, Journal
from .records import Checked, Feedback, Intent, Label, Logged, Records, RuleCount, Session
from .redact import LEVELS, Level
from .row import BreachRow, Outcome
from .stats import Bucket, Spent, Stats, TimeSpan
from .store import Store, open_store

__all__ = [
    "LEVELS",
    "BreachRow",
    "Bucket",
    "Checked",
    "Counts",
    "Feedback",
    "Intent",
    "Journal",
    "Label",
    "Level",
    "Logged",
    "Outcome",
    "Records",
    "RuleCount",
    "Session",
    "Spent",
    "Stats",
    "Store",
    "TimeSpan",
    "open_store",
]
