"""When a student should be trained again: enough new conversations, enough corrections, or traffic that has changed.

Counted from the moment the newest model was trained, so that a training that was not promoted does not come again with
every look. Only rows whose text was kept whole count: from the others nothing can be learnt.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from turnout.config.learning import LearnSettings
from turnout.store import TimeSpan
from turnout.store.store import StoreReader

from .drift import find_drift
from .registry import trained_ms

# Rows looked at before the answer is given as it stands: a look must stay a look, and this many are due in any case.
MOST_ROWS = 500_000


class Due(Struct, frozen=True):
    """Whether training is due, and why."""

    due: bool
    why: tuple[str, ...]
    """Each reason there is; where none is, what is missing."""
    sessions: int
    sessions_needed: int
    corrections: int
    corrections_needed: int
    unread: int
    """Rows whose text was not kept, which nobody can learn from."""
    since_ms: int
    """When the newest model was trained; 0 where there is none."""
    drifted: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.due

    def __str__(self) -> str:
        return "; ".join(self.why)


def is_due(
    store: StoreReader,
    profile: str,
    settings: LearnSettings,
    *,
    layer: str = "student",
    drifted: Callable[[StoreReader, str, str], tuple[str, ...]] = find_drift,
) -> Due:
    """Look whether training is due. `drifted` names what has changed in the traffic; asked only if nothing else is."""
    since = trained_ms(profile, layer)
    sessions: set[tuple[str, str]] = set()
    corrections = unread = rows = 0
    for tenant in store.tenants():
        for label in store.records(tenant).labels(span=TimeSpan(since), profile=profile):
            rows += 1
            if rows > MOST_ROWS:
                break
            if label.text is None or label.kept != "full":
                unread += 1
                continue
            # A question that belongs to no session is a conversation of its own.
            sessions.add((tenant, label.session or label.id))
            if label.human_by is not None and label.human != label.route:
                corrections += 1
    why = []
    if len(sessions) >= settings.retrain_sessions:
        why.append(f"{len(sessions):,} new sessions, {settings.retrain_sessions:,} make a training due")
    if settings.retrain_corrections and corrections >= settings.retrain_corrections:
        why.append(f"{corrections:,} corrections by people, {settings.retrain_corrections:,} make a training due")
    moved = drifted(store, profile, layer) if not why else ()
    if moved:
        why.append(f"the traffic has changed: {', '.join(moved)}")
    due = bool(why)
    if not due:
        why.append(
            f"{len(sessions):,} of {settings.retrain_sessions:,} new sessions, "
            f"{corrections:,} of {settings.retrain_corrections:,} corrections"
        )
        if unread:
            why.append(f'{unread:,} rows were logged without their text: text = "full" in [store] keeps it')
    return Due(
        due,
        tuple(why),
        len(sessions),
        settings.retrain_sessions,
        corrections,
        settings.retrain_corrections,
        unread,
        since,
        moved,
    )
