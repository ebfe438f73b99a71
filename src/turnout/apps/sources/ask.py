"""A request to sources, and the decision for one that names its source, which needs no layer to choose."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from msgspec.structs import replace

from turnout.core.decision import Decision, new_id
from turnout.core.errors import UnknownRoute
from turnout.core.profile import Profile
from turnout.core.query import Query
from turnout.core.router import Router
from turnout.core.verdict import Reason
from turnout.store.row import asked_text
from turnout.text.followup import leans
from turnout.text.read import extract
from turnout.text.standalone import make_standalone

from .choose import RememberedChoice
from .plan import MOST_SOURCES

PROFILE = "sources"
# The specification's sources of a fusion that is requested without a list, unless a model names others.
FUSED = ("kiwix", "web")

Decides = Callable[[Router, Query], Awaitable[Decision]]


class AskRequest(NamedTuple):
    """A question, and the sources the caller wants for it."""

    query: Query
    source: str = "auto"
    fusion: tuple[str, ...] = ()


class Standalone(NamedTuple):
    """A question that can be understood without those before it."""

    text: str
    """As rules word it."""
    own: str
    """In the user's own words."""
    before: tuple[str, ...] = ()
    """The user's earlier questions, oldest first."""

    @property
    def is_follow_up(self) -> bool:
        return bool(self.before) and (self.text != self.own or leans(self.own, self.before))


def read_standalone(query: Query, profile: Profile) -> Standalone:
    """The last question, as far as possible in the user's own words."""
    text = asked_text(query)
    # Text that chat clients wrap around a question is not part of it.
    own = extract(text)
    text = own.words if any(note.startswith(("extract.wrapper", "extract.packed")) for note in own.notes) else text
    users = tuple(turn.text for turn in query.turns if turn.role == "user")[:-1]
    made = make_standalone(text, users, lambda words: bool(profile.read(Query(words)).hits)) if users else text
    return Standalone(made, text, users)


async def decide_explicit(router: Router, query: Query, asked: AskRequest, decides: Decides) -> Decision:
    """The decision on a request that names a source, or asks for a fusion."""
    profile = router.profile
    if asked.source != "fusion":
        named: tuple[str, ...] = (asked.source,)
    elif asked.fusion:
        named = tuple(dict.fromkeys(asked.fusion))[:MOST_SOURCES]
    else:
        return await _decide_fusion(router, query, decides)
    for name in named:
        if name not in profile.routes:
            raise UnknownRoute("source", name, profile.routes)
    reason = Reason("declared.route", f"the caller asked for {' + '.join(named)}")
    query = replace(query, declared=asked.source if asked.source in profile.routes else None)
    return Decision(profile, query, named, 1.0, 1.0, "declared", "D-", remarks=(reason,), id=new_id())


async def _decide_fusion(router: Router, query: Query, decides: Decides) -> Decision:
    """Two or three sources that a model names; else the encyclopedia and the web."""
    profile = router.profile
    models = tuple(place for place in profile.layers if isinstance(place.call, RememberedChoice))
    alone = Router(replace(profile, layers=models, split=None, adjust=()))
    decision = await decides(alone, query)
    if len(decision.routes) > 1:
        return decision
    reason = Reason("sources.fused", f"no model named two or three: {' + '.join(FUSED)}")
    remarks = (*decision.remarks, reason)
    return replace(decision, routes=FUSED, by="declared", outcome="D-", remarks=remarks, _reasons=None)
