"""Settings: the settings in force and their origins, what is wrong with the files, and a reload."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from turnout.apps.app import Answer, Call, Route
from turnout.runtime.inforce import find_in_force

from .page import go_to

if TYPE_CHECKING:
    from .console import Console


def settings_routes(console: Console) -> Sequence[Route]:
    async def show(call: Call, status: int = 200, **values: Any) -> Answer:
        found = await asyncio.to_thread(find_in_force, console.runtime, console.server.settings)
        return console.show(call, "settings.html", status, here="/settings", found=found, **values)

    async def settings(call: Call) -> Answer:
        """What is in force."""
        return await show(call, problems=(), done=call.options.get("reloaded") == "1")

    async def reload(call: Call) -> Answer:
        """Read settings, profiles and keys again."""
        if problems := (await console.server.reload()).problems:
            return await show(call, 422, problems=problems, done=False)
        return go_to("/settings?reloaded=1")

    return [
        Route("GET", "/settings", "admin", settings, is_page=True),
        Route("POST", "/reload", "admin", reload, is_page=True),
    ]
