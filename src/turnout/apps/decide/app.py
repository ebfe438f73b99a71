"""Turnout's own API: decide what happens with a question, look a decision up, correct it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta, Raw, Struct

from turnout.apps.app import Answer, AppCommand, AppTool, Call, Route, answer
from turnout.apps.caller import Caller
from turnout.apps.ledger import decide, record, spent_usd
from turnout.apps.request import invalid, read_body
from turnout.core.decision import Decision
from turnout.core.errors import QueryError, Refused, StoreError, UnknownDecision
from turnout.core.query import Query, Turn
from turnout.models.wire.format import MESSAGES, check_text
from turnout.runtime.runtime import Runtime
from turnout.store import Outcome

BATCH = 1000
# After so long a batch lets other requests run.
TURN_S = 0.001

TOOL = "Decide what should happen with a text under one of Turnout's profiles, and why. Asks no source."

Name = Annotated[str, Meta(max_length=200)]
"""Of a profile, a route, a session: as long as the log keeps one."""


class TurnBody(Struct, forbid_unknown_fields=True):
    role: Name
    text: str


class RouteBody(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A question to decide."""

    text: str = ""
    turns: Annotated[tuple[TurnBody, ...], Meta(max_length=MESSAGES)] = ()
    attachments: Annotated[tuple[Name, ...], Meta(max_length=1000)] = ()
    declared: Name | None = None
    ceiling: Name | None = None
    session: Name | None = None
    profile: Name | None = None


class BatchBody(Struct, forbid_unknown_fields=True):
    """Questions to decide, in order."""

    queries: Annotated[list[RouteBody], Meta(min_length=1, max_length=BATCH)]
    profile: Name | None = None


class FeedbackBody(Struct, forbid_unknown_fields=True):
    """A human's word on a decision."""

    decision: Name
    verdict: Literal["right", "wrong"] | None = None
    should_be: Name | None = None
    note: Annotated[str, Meta(max_length=2000)] = ""
    by: Name = ""
    """Who judges, if there is no key."""


# Made at import, because msgspec cannot inspect a type in two threads at once.
_ROUTE = msgspec.json.Decoder(RouteBody)
_BATCH = msgspec.json.Decoder(BatchBody)
_FEEDBACK = msgspec.json.Decoder(FeedbackBody)


async def route(call: Call) -> Answer:
    """Decide what happens next with a question."""
    asked = await read_body(call, _ROUTE)
    return answer((await _decide(call, asked, asked.profile)).json())


async def route_batch(call: Call) -> Answer:
    """Decide many questions.

    Each is decided as if it had been asked alone: it counts against the key's rate and budget, and what is
    refused of it is said in its place."""
    clock = asyncio.get_running_loop().time
    asked = await read_body(call, _BATCH)
    decisions: list[Raw | dict[str, Any]] = []
    turn = clock() + TURN_S
    for number, one in enumerate(asked.queries):
        try:
            if number:  # the first was counted with the request
                call.caller.rate.count()
            decisions.append(Raw((await _decide(call, one, one.profile or asked.profile)).json()))
        except Refused as refused:
            decisions.append({"error": {"type": refused.kind, "message": str(refused)}})
        if clock() >= turn:
            await asyncio.sleep(0)
            turn = clock() + TURN_S
    return answer({"decisions": decisions})


async def _decide(call: Call, asked: RouteBody, profile: str | None) -> Decision:
    """Decide under the caller's rights and budget, and record the decision."""
    caller, slots, store = call.caller, call.runtime.models.slots, call.runtime.store
    router = await call.router(profile)
    turns = tuple(Turn(turn.role, turn.text) for turn in asked.turns)
    check_text((Turn("user", asked.text), *turns), 422)
    if asked.declared is not None and not caller.may_force:
        raise Refused(403, "permission_error", "this key may not declare a route itself")
    ceiling = router.profile.lower_ceiling(asked.ceiling, caller.ceiling)
    query = Query(asked.text, turns, asked.attachments, asked.declared, ceiling, asked.session, caller.tenant or None)
    try:
        decision = await decide(router, query, caller, slots, store)
    except QueryError as error:
        raise invalid(str(error)) from None
    spent = spent_usd(decision, slots) or 0.0
    caller.budget.settle(0.0, spent)
    if decision.outcome == "Dk" and ceiling != asked.ceiling:
        message = f"{asked.declared!r} is above this key's ceiling {ceiling}: declare a lower route, or none"
        raise Refused(403, "permission_error", message)
    if store is not None:
        await record(store, decision, key_id=caller.key_id, spent_usd=spent)
    return decision


async def decision(call: Call) -> Answer:
    """A decision, what happened after it, and what people said of it."""
    records = call.store.records(call.caller.tenant)

    def look() -> dict[str, Any]:
        row = records.get(call.params["id"])
        outcome = records.outcome(row.id)
        return row.to_dict() | {
            "question": row.question,
            "created_ms": row.created_ms,
            "session": row.session,
            "happened": None if outcome is None else _happened(outcome),
            "feedback": records.feedback(row.id),
            "violations": records.breaches(decision=row.id),
        }

    try:
        return answer(await asyncio.to_thread(look))
    except UnknownDecision as error:
        raise Refused(404, "not_found_error", str(error)) from None


def _happened(outcome: Outcome) -> Any:
    """An outcome for a tenant, without the details of attempts: they may name the operator's hosts."""
    shown = msgspec.to_builtins(outcome)
    attempts = outcome.extra.get("attempts")
    if isinstance(attempts, list):
        plain = [{**one, "detail": ""} if isinstance(one, dict) and "detail" in one else one for one in attempts]
        shown["extra"] = {**shown["extra"], "attempts": plain}
    return shown


async def feedback(call: Call) -> Answer:
    """Say whether a decision was right, or what it should have been."""
    given = await read_body(call, _FEEDBACK)
    if given.verdict is None and given.should_be is None:
        raise invalid("say a verdict (right or wrong), or which route it should_be")
    records = call.store.records(call.caller.tenant)

    def judge() -> Any:
        row = records.get(given.decision)
        verdict = given.verdict or ("right" if given.should_be == row.route else "wrong")
        by = call.caller.key_id or given.by or "anonymous"
        return records.judge(row.id, verdict, should_be=given.should_be, by=by, note=given.note)

    try:
        return answer(await asyncio.to_thread(judge), 201)
    except UnknownDecision as error:
        raise Refused(404, "not_found_error", str(error)) from None
    except StoreError as error:
        raise invalid(str(error)) from None


class DecideApp:
    name: ClassVar = "decide"
    commands: ClassVar[Sequence[AppCommand]] = ()
    routes: ClassVar[Sequence[Route]] = (
        Route("POST", "/v1/route", "route", route, RouteBody, asks=True),
        Route("POST", "/v1/route/batch", "route", route_batch, BatchBody, asks=True, is_batch=True),
        Route("GET", "/v1/decisions/{id}", "decisions:read", decision),
        Route("POST", "/v1/feedback", "feedback:write", feedback, FeedbackBody),
    )

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.tools = (AppTool("route", TOOL, RouteBody, self.decide),)

    async def decide(self, asked: RouteBody, caller: Caller) -> object:
        """The tool: decides like the route."""
        call = Call(self.runtime, caller, b"", {}, {})
        return (await _decide(call, asked, asked.profile)).to_dict()
