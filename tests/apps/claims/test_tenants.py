"""What happens in one tenant's session is not told to another's."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest
from msgspec.structs import replace

from apps.claims.chatting import FLOOD, bare_library
from secured_server import call, clean_environment, forget, make_key
from serving import serving

QUIET = "[server]\nlag_s = 60.0\nwait_s = 10.0\ndrain_s = 1.0\n"


def test_one_tenants_session_is_not_anothers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clean_environment(monkeypatch, tmp_path)
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


def test_a_tenant_hides_its_own_cards_and_only_an_administrator_those_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clean_environment(monkeypatch, tmp_path)
    with serving(tmp_path, QUIET) as served:
        with bare_library(served.store) as library:
            library.put_all([FLOOD, replace(FLOOD, id="own", claim_text="Own cards are kept apart.", tenant="a")])
        usual, other = (make_key(served.store, tenant=tenant) for tenant in ("a", "b"))
        admin = make_key(served.store, tenant="b", scopes=("feedback:write", "admin"))
        forget(served)

        def change(ident: str, what: str, key: str) -> int:
            return call(served.url, "POST", f"/api/claims/{ident}/{what}", key=key).status

        assert [change("own", "hide", key) for key in (usual, other, admin)] == [200, 404, 404]
        assert [change(FLOOD.id, "hide", key) for key in (usual, other, admin)] == [403, 403, 200]
        assert [change(FLOOD.id, "delete", key) for key in (usual, admin)] == [403, 200]
        deleted = call(served.url, "POST", "/api/claims/own/delete", key=other).json
        assert deleted == {"id": "own", "deleted": False}
        with bare_library(served.store) as library:
            assert [card.id for card in library.list(hidden=True)] == ["own"]
