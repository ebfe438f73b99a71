"""The application under a server that is not ours: made by its factory, opened and closed with that server."""

import asyncio
import threading
import time
from pathlib import Path

import pytest
import uvicorn

from secured_server import call, clean_environment, settings
from stored_decisions import select
from turnout.core.errors import ConfigError
from turnout.testing import ScriptedProvider


def test_another_server_runs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clean_environment(monkeypatch, tmp_path)
    file, database = tmp_path / "turnout.toml", tmp_path / "turnout.db"
    with ScriptedProvider.in_thread() as provider:
        file.write_text(settings(provider), encoding="utf-8")
        monkeypatch.setenv("TURNOUT_CONFIG", str(file))
        monkeypatch.setenv("TURNOUT_DB", str(database))
        config = uvicorn.Config("turnout.web.asgi:app", factory=True, port=0, lifespan="on", log_level="warning")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve()), daemon=True)
        thread.start()
        until = time.monotonic() + 20
        while not server.started and time.monotonic() < until:
            time.sleep(0.01)
        url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        try:
            assert call(url, "GET", "/ready").status == 200
            assert call(url, "POST", "/v1/route", {"text": "Prove it step by step"}).json["route"] == "REASONING"
            assert call(url, "GET", "/metrics").status == 404
        finally:
            server.should_exit = True
            thread.join(20)
    assert not thread.is_alive()
    # Closed with the server: what was decided is in the database.
    assert select(f"sqlite:///{database}", "select count(*) from decisions") == [(1,)]


def test_beyond_loopback_it_needs_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from turnout.web.asgi import app

    clean_environment(monkeypatch, tmp_path)
    file = tmp_path / "turnout.toml"
    file.write_text('[server]\nhost = "0.0.0.0"\n', encoding="utf-8")
    monkeypatch.setenv("TURNOUT_CONFIG", str(file))
    monkeypatch.setenv("TURNOUT_DB", str(tmp_path / "turnout.db"))
    with pytest.raises(ConfigError, match="there is no key"):
        app()
