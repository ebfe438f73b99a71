"""Every source against every trouble: a value that says what happened, in bounded time and memory, with no secret."""

import asyncio
import time
import tracemalloc
from pathlib import Path

import pytest

from apps.sources.at_home import KINDS, SECRETS, Kind, ask, asking
from turnout.apps.sources.source import Cause, Empty, Failure, SourceAnswer
from turnout.testing.source import TROUBLES, Trouble

# What each trouble comes to. Some protocols cannot tell two of them apart.
MEANS: dict[Trouble, set[Cause]] = {
    "malformed": {Cause.MALFORMED},
    "deep": {Cause.MALFORMED},
    "down": {Cause.ERROR},
    "denied": {Cause.DENIED},
    "hung": {Cause.TIMEOUT},
    "huge": {Cause.MALFORMED, Cause.TIMEOUT},
    "bomb": {Cause.MALFORMED},
    "page": {Cause.MALFORMED},
    "elsewhere": {Cause.DENIED},
}
# Below this, whatever is sent: a limit of 8 MB, a copy or two of it, and the double's own chunks.
MEMORY_BYTES = 30 * 1024 * 1024


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.id)
def test_it_answers(kind: Kind, tmp_path: Path) -> None:
    async def main() -> None:
        async with asking(kind, tmp_path) as (_, source):
            assert (await source.check()).status == "ok"
            result = await ask(source, kind.question)
            assert isinstance(result, SourceAnswer), result
            assert kind.says in result.text

    asyncio.run(main())


@pytest.mark.alike(2)
@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.id)
def test_trouble(kind: Kind, trouble: Trouble, tmp_path: Path) -> None:
    async def main() -> None:
        # Only what never ends is waited for.
        limit_s = 0.3 if trouble in ("hung", "huge") else 5.0
        async with asking(kind, tmp_path, limit_s) as (double, source):
            double.trouble = trouble
            double.slow_s = 0.02
            began = time.monotonic()
            result = await ask(source, kind.question)
            # Each request has its own limit; a source makes a few, one after another.
            assert time.monotonic() - began < 4.0
            if trouble == "slow":
                assert isinstance(result, SourceAnswer)
            elif trouble == "empty":
                assert isinstance(result, Empty)
            else:
                assert isinstance(result, Failure), result
                assert result.why in MEANS[trouble], result
                assert result.said.startswith("it: ")
                assert not any(secret in result.said for secret in ("apipass", "apikey", "Bearer"))
                assert (await source.check()).status == "error"

    asyncio.run(main())


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.id)
def test_nobody_there(kind: Kind, tmp_path: Path) -> None:
    async def main() -> None:
        async with asking(kind, tmp_path) as (double, source):
            await double.stop()
            result = await ask(source, kind.question)
            assert isinstance(result, Failure)
            assert result.why is Cause.UNREACHABLE
            assert "is it running" in result.said

    asyncio.run(main())


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.id)
def test_cancelled_at_once(kind: Kind, tmp_path: Path) -> None:
    async def main() -> None:
        async with asking(kind, tmp_path, timeout_s=60.0) as (double, source):
            double.trouble = "hung"
            task = asyncio.create_task(ask(source, kind.question))
            await asyncio.sleep(0.05)
            task.cancel()
            began = time.monotonic()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert time.monotonic() - began < 1.0

    asyncio.run(main())


@pytest.mark.parametrize("trouble", ["huge", "bomb"])
def test_memory_is_bounded(trouble: Trouble, tmp_path: Path) -> None:
    async def main() -> None:
        async with asking(KINDS[0], tmp_path, timeout_s=3.0) as (double, source):
            double.trouble = trouble
            await ask(source, "warm up: the double makes its bomb")
            tracemalloc.start()
            try:
                result = await ask(source, "what is a black hole?")
                _, most = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            assert isinstance(result, Failure)
            assert most < MEMORY_BYTES

    asyncio.run(main())
