"""`pointing.v1`, an adjustment: a question about something only its asker can see or remember goes to a route that
sends the page and the conversation.

"What is the footnote about?" is worded like a definition, and every layer may take it for one. Unlike `followup.v1` no
earlier turns are needed: the thing may be on the page.
"""

from __future__ import annotations

from turnout.core.query import Reading
from turnout.core.registry import kind
from turnout.core.verdict import Reason
from turnout.text.pointing import find_pointing
from turnout.text.reference import find_reference

from .followup import Followup, FollowupConfig

# References that a page may explain. The others (an ellipsis, a comparison) need earlier turns: see `followup.v1`.
POINTS = frozenset(("pronoun", "deictic", "earlier"))


class PointingConfig(FollowupConfig, frozen=True, forbid_unknown_fields=True):
    """The route that is replaced, and by which."""


class Pointing(Followup):
    def find_reason(self, reading: Reading) -> Reason | None:
        reference = find_reference(reading.words)
        words = reference.words if reference is not None and reference.kind in POINTS else None
        words = words or find_pointing(reading.words)
        if words is None:
            return None
        return Reason("pointing.context", f"{words!r} is something only its asker can see or remember: {self.route}")


@kind("pointing.v1", stage="adjust")
def pointing(config: PointingConfig) -> Pointing:
    return Pointing(config)
