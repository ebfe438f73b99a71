"""What happens in one tenant's session is not told to another's."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest

from besieged import call, forget, make_key, surroundings
from serving import serving

QUIET = "[server]\nlag_s = 60.0\nwait_s = 10.0\ndrain_s = 1.0\n"


def test_one_tenants_session_is_not_anothers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    surroundings(monkeypatch, tmp_path)
    with serving(tmp_path, QUIET) as served:
        keys = [make_key(served.store, tenant=tenant) for tenant in ("a", "b")]
        forget(served)
        body = {"question": "Can you put that more simply?", "session_id": "s"}
        assert call(served.url, "POST", "/api/chat/ask", body, key=keys[0]).status == 200

        async def main() -> list[int]:
            counts = []
            for key in keys:
                told = 0
                headers = {"x-api-key": key}
                async with (
                    aiohttp.ClientSession(headers=headers) as client,
                    client.ws_connect(f"{served.url}/ws/pipeline/s") as opened,
                ):
                    while True:
                        try:
                            await opened.receive(timeout=0.7)
                        except TimeoutError:
                            break
                        told += 1
                counts.append(told)
            return counts

        first, other = asyncio.run(main())
    assert (first > 3, other) == (True, 0)
