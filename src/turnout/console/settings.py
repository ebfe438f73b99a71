"""Settings: what is in force and where it comes from, what is wrong with the files, what a reload would change."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from turnout.apps.app import Answer, Call, Route
from turnout.runtime.inforce import find_in_force

from .page import go_to

if TYPE_CHECKING:
    from .console import Console


def settings_routes(console: Console) -> Sequence[Route]:
    async def settings(call: Call) -> Answer:
        """What is in force."""
        found = await asyncio.to_thread(find_in_force, console.runtime, console.server.settings)
        return console.show(
            call, "settings.html", here="/settings", found=found, problems=(), done=call.options.get("reloaded") == "1"
        )

    async def reload(call: Call) -> Answer:
        """Read settings, profiles and keys again."""
        done = await console.server.reload()
        if not done.problems:
            return go_to("/settings?reloaded=1")
        found = await asyncio.to_thread(find_in_force, console.runtime, console.server.settings)
        return console.show(
            call, "settings.html", 422, here="/settings", found=found, problems=done.problems, done=False
        )

    return [
        Route("GET", "/settings", "admin", settings, is_page=True),
        Route("POST", "/reload", "admin", reload, is_page=True),
    ]
