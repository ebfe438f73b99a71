"""Settings: what is in force and where it comes from, what is wrong with the files, what a reload would change."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from turnout.apps.app import Answer, Call, Route
from turnout.web.inforce import find_in_force

if TYPE_CHECKING:
    from .console import Console


def settings_routes(console: Console) -> Sequence[Route]:
    async def settings(call: Call) -> Answer:
        """What is in force."""
        found = await asyncio.to_thread(find_in_force, console.runtime, console.server.settings)
        return console.show(call, "settings.html", here="/settings", found=found, problems=(), done=False)

    async def reload(call: Call) -> Answer:
        """Read settings, profiles and keys again."""
        done = await console.server.reload()
        found = await asyncio.to_thread(find_in_force, console.runtime, console.server.settings)
        status = 422 if done.problems else 200
        values = {"found": found, "problems": done.problems, "done": not done.problems}
        return console.show(call, "settings.html", status, here="/settings", **values)

    return [
        Route("GET", "/settings", "admin", settings, is_page=True),
        Route("POST", "/reload", "admin", reload, is_page=True),
    ]
