"""A source of knowledge that follows a script: it answers, has nothing, fails, is late, hangs or raises.

A script is a list; its last entry repeats. Its entries are those of `ScriptedLayer`, for a question in place of a
reading; a text is an answer that says just that. Every question that was asked is in `calls`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from turnout.apps.sources.source import Health, SourceAnswer, SourceQuestion

from .doubles import Script, Stall

HANG = Stall(3600.0)
"""Answers after longer than any test waits."""
HEALTHY = Health("ok")


class ScriptedSource(Script):
    """A source with a script."""

    passing = "[Empty()] for a source that has nothing"

    def __init__(
        self,
        name: str,
        script: Sequence[object],
        *,
        description: str = "",
        words: Sequence[str] = (),
        health: Health = HEALTHY,
    ) -> None:
        super().__init__(script)
        self.name = name
        self.description = description or f"what {name} knows"
        self.health = health
        self._words = tuple(words)

    async def ask(self, question: SourceQuestion) -> Any:
        entry = await self._answer(question)
        return SourceAnswer(entry) if isinstance(entry, str) else entry

    async def check(self) -> Health:
        return self.health

    def words(self) -> Sequence[str]:
        return self._words
