"""Settings that change under load, some of them wrong: every request is served by one set of settings, a sound one.

Two sound settings have a profile and a provider each, and the one that is wrong has a provider that nobody may ask.
"""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from faults.asking import LAST, HttpResponse, ask, connect, get, outcomes, request, understand
from serving import RunningServer, serving
from toml_router import LOCAL
from turnout.testing import Reply, ScriptedProvider

CLIENTS = 4
SOUND = """
[server]
profile = "{profile}"
lag_s = 60.0
[models.simple]
model = "{name}/one"
base_url = "{url}"
[models.medium]
model = "{name}/two"
base_url = "{url}"
[tiers]
accept_confidence = {threshold}
"""
# The slots are sound, the profile is not.
WRONG = SOUND.replace("{threshold}", "7.5")
BROKEN = "[models.simple\n"


class Reloads(NamedTuple):
    kept: int
    swapped: int
    answered: int
    by: dict[str, int]


def reload_under_load(folder: Path, times: int, seed: int) -> Reloads:
    chance = random.Random(seed)
    over = asyncio.Event()
    found: list[HttpResponse] = []

    async def client(served: RunningServer, number: int) -> None:
        turn = 0
        while not over.is_set():
            turn += 1
            sent = request("openai-chat", f"Say {number}, {turn}.", stream=bool(turn % 2))
            found.append(await ask(served.url, sent))

    async def reload(served: RunningServer, text: str) -> Any:
        file = folder / "turnout.toml"
        part = file.with_suffix(".part")
        await asyncio.to_thread(part.write_text, text, encoding="utf-8")
        os.replace(part, file)
        reader, writer = await connect(served.admin)
        writer.write(
            get("/admin/reload").replace(b"GET", b"POST").replace(b"\r\n\r\n", b"\r\ncontent-length:0\r\n\r\n")
        )
        got = understand(await reader.read())
        writer.close()
        assert got.status == 200, got
        return msgspec.json.decode(got.body)

    async def everybody(served: RunningServer, texts: dict[str, str]) -> tuple[int, int]:
        clients = [asyncio.create_task(client(served, number)) for number in range(CLIENTS)]
        kept = swapped = 0
        try:
            for number in range(times):
                wrong = number % 10 == 9
                name = chance.choice(("wrong", "broken")) if wrong else ("a", "b")[number % 2]
                told = await reload(served, texts[name])
                assert told["status"] == ("kept" if wrong else "reloaded"), told
                kept, swapped = kept + wrong, swapped + (not wrong)
        finally:
            over.set()
            await asyncio.gather(*clients)
        return kept, swapped

    with (
        ScriptedProvider.in_thread(Reply("From a.", delay_s=0.01)) as a,
        ScriptedProvider.in_thread(Reply("From b.", delay_s=0.01)) as b,
        ScriptedProvider.in_thread() as never,
    ):
        texts = {
            "a": SOUND.format(name="a", url=a.base_url, threshold=0.7, profile=LOCAL),
            "b": SOUND.format(name="b", url=b.base_url, threshold=0.6999, profile=LOCAL),
            "wrong": WRONG.format(name="never", url=never.base_url, profile=LOCAL),
            "broken": BROKEN,
        }
        with serving(folder, texts["b"]) as served:
            kept, swapped = asyncio.run(everybody(served, texts))
            written = outcomes(served, folder)
            with closing(sqlite3.connect(f"file:{folder / 'turnout.db'}?mode=ro", uri=True)) as connection:
                hashes = dict(connection.execute("select id, profile_hash from decisions"))
        assert never.received == 0
    served_by: dict[str, set[str]] = {}
    counts: dict[str, int] = {}
    for got in found:
        assert (got.status, got.whole) == (200, True), got
        model = got.headers["x-turnout-model"].partition("/")[0]
        assert f"From {model}.".encode() in got.body or LAST["openai-chat"] in got.body
        assert got.headers["x-turnout-attempts"] == "1"
        served_by.setdefault(model, set()).add(hashes[got.headers["x-turnout-decision"]])
        counts[model] = counts.get(model, 0) + 1
    assert {outcome.ended for outcome in written.values()} == {"answered"}
    # One profile with each provider, and not the same: never one's slots with the other's thresholds.
    assert {len(some) for some in served_by.values()} == {1}
    assert len(set.union(*served_by.values())) == 2
    return Reloads(kept, swapped, len(found), counts)


def test_settings_change_under_load(tmp_path: Path) -> None:
    found = reload_under_load(tmp_path, 60, seed=1)
    assert found.kept == 6
