"""Keys: their rights, budgets and use; they are made and revoked here. A new key is shown once and not stored."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from turnout.apps.app import Answer, Call, Route
from turnout.apps.request import invalid
from turnout.core.errors import Refused
from turnout.runtime.traffic import DAY_MS
from turnout.store.backend import hour_of
from turnout.store.keys import Key
from turnout.store.row import now_ms
from turnout.web.auth import SCOPES
from turnout.web.key import make_key

from .page import go_to, read_form

if TYPE_CHECKING:
    from .console import Console

NAME_CHARACTERS = 200
# The recent use that is shown; `turnout stats` shows all of it.
USE_DAYS = 30


def key_routes(console: Console) -> Sequence[Route]:
    async def show(call: Call, status: int = 200, *, made: str = "", said: str = "") -> Answer:
        at, stored = now_ms(), call.store.keys
        keys = await asyncio.to_thread(stored.all)
        used = await asyncio.to_thread(stored.recent_use, hour_of(at - USE_DAYS * DAY_MS), at)
        rows = [(key, *used.get(key.id, (0, None)), key.is_valid(at)) for key in keys]
        usual = Key("", "", "").scopes
        return console.show(
            call, "keys.html", status, here="/keys", rows=rows, scopes=SCOPES, usual=usual, made=made, said=said
        )

    async def keys(call: Call) -> Answer:
        """The keys of this server, and what each has spent."""
        return await show(call)

    async def create(call: Call) -> Answer:
        """Make a key."""
        form = read_form(call)
        if not call.caller.key_id:
            said = "any user of this machine could make the first key here: make it with turnout keys create NAME"
            return await show(call, 403, said=said)
        try:
            fields = _read(form)
        except Refused as refused:
            return await show(call, refused.status, said=str(refused))
        store = call.store
        _, credential = await asyncio.to_thread(lambda: make_key(store.keys, **fields))
        console.server.auth.forget()
        return await show(call, 201, made=credential)

    async def revoke(call: Call) -> Answer:
        """Revoke a key."""
        if not await asyncio.to_thread(call.store.keys.revoke, call.params["id"]):
            raise Refused(404, "not_found_error", f"no valid key {call.params['id'][:40]!r}")
        console.server.auth.forget()
        return go_to("/keys")

    return [
        Route("GET", "/keys", "admin", keys, is_page=True),
        Route("POST", "/keys", "admin", create, is_page=True),
        Route("POST", "/keys/{id}/revoke", "admin", revoke, is_page=True),
    ]


def _read(form: Mapping[str, str]) -> dict[str, Any]:
    """The fields of a new key."""
    name = form.get("name", "").strip()
    if not name or len(name) > NAME_CHARACTERS:
        raise invalid(f"name: say what the key is for, in 1 to {NAME_CHARACTERS} characters")
    scopes = tuple(scope for scope in SCOPES if form.get(f"scope-{scope}"))
    if not scopes:
        raise invalid("scopes: a key that may do nothing is none; choose at least one")
    amounts = {field: _usd(form, field) for field in ("budget_usd", "budget_day_usd", "budget_month_usd")}
    return {"name": name, "scopes": scopes, "tenant": form.get("tenant", "").strip()[:NAME_CHARACTERS], **amounts}


def _usd(form: Mapping[str, str], field: str) -> float | None:
    text = form.get(field, "").strip()
    if not text:
        return None
    try:
        amount = float(text)
    except ValueError:
        amount = math.nan
    if not math.isfinite(amount) or amount < 0:
        raise invalid(f"{field}: {text[:40]!r} is not an amount of US dollars")
    return amount
