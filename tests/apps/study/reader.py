"""A reader with a book, a vault of notes and a model that writes down what it is asked."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from turnout.apps.caller import Budget, Caller
from turnout.apps.event import Event
from turnout.apps.study.app import StudyApp
from turnout.apps.study.ask import StudyAnswer, StudyQuestion
from turnout.runtime.runtime import Runtime
from turnout.store import Store, open_store

JPEG = b"\xff\xd8\xff\xe0" + bytes(range(32))
MINUTE_S = 60.0
NOTE = "# Biology\n\n## Krebs cycle\n\nThe Krebs cycle yields two ATP for each glucose. It runs in the mitochondria.\n"


class Clock:
    """Stands still until it is moved. It is a Monday in 2026."""

    def __init__(self) -> None:
        self.now_s = 1_794_800_000.0

    def __call__(self) -> float:
        return self.now_s


class Page:
    """An image that knows how often it was read."""

    def __init__(self, raw: bytes = JPEG) -> None:
        self.raw = raw
        self.read = 0

    def __call__(self) -> bytes:
        self.read += 1
        return self.raw


class HasUrl(Protocol):
    """A provider, whichever."""

    @property
    def base_url(self) -> str: ...


class Reader(NamedTuple):
    app: StudyApp
    store: Store
    clock: Clock
    vault: Path
    caller: Caller

    async def events(self, question: str, page: Callable[[], bytes] | None = None, **more: Any) -> list[Event]:
        asked = StudyQuestion(question, page, **more)
        return [event async for event in self.app.ask(asked, self.caller)]

    async def ask(self, question: str, page: Callable[[], bytes] | None = None, **more: Any) -> StudyAnswer:
        last = (await self.events(question, page, **more))[-1]
        assert isinstance(last, StudyAnswer), last
        return last


def model_settings(provider: HasUrl, wire: str = "openai-chat") -> str:
    return (
        f'[models.main]\nmodel = "fake/main"\nbase_url = "{provider.base_url}"\nprivate = true\nwires = ["{wire}"]\n'
        "prices = { input_usd = 3.0, output_usd = 15.0 }\n"
    )


@contextlib.asynccontextmanager
async def reading(
    folder: Path,
    provider: HasUrl | None = None,
    settings: str = "",
    *,
    wire: str = "openai-chat",
    **store: Any,
) -> AsyncIterator[Reader]:
    """An assistant with its own store, settings and vault, until the block ends."""
    vault = folder / "vault"
    if not vault.exists():
        vault.mkdir(parents=True)
        (vault / "Biology.md").write_text(NOTE, encoding="utf-8")
    file = folder / "turnout.toml"
    models = model_settings(provider, wire) if provider is not None else ""
    file.write_text(f'[study]\nnotes = "{vault}"\n{settings}\n{models}', encoding="utf-8")
    opened = open_store(str(folder / "turnout.db"), config=str(file), **store)
    clock = Clock()
    app = StudyApp(Runtime(opened, profile="study", config=str(file)), clock=clock, fence=lambda: "fence")
    try:
        yield Reader(app, opened, clock, vault, Caller("", "", frozenset(("ask",)), Budget()))
    finally:
        await app.runtime.close()
