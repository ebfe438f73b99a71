"""What reaches a model for each route, byte for byte: `python tests/apps/study/golden.py` writes the files anew.

The scene is the same for all: a session that was remembered, three turns in this one, a vault with one note, a page.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from pathlib import Path

from apps.study.reader import Page, reading
from turnout.testing import Reply, ScriptedProvider

FOLDER = Path(__file__).parent / "requests"
QUESTIONS = {
    "standalone_definition": "Define osmosis",
    "page_grounded_definition": "Explain the definition in the top left",
    "general_contextual": "What do my notes say about the Krebs cycle?",
}
WIRES = ("openai-chat", "anthropic-messages")


async def record(folder: Path, wire: str) -> dict[str, tuple[bytes, int]]:
    """The body of the request for each route, and how often the image was read for it."""
    found: dict[str, tuple[bytes, int]] = {}
    with ScriptedProvider.in_thread() as provider:
        provider.default = Reply("The Krebs cycle yields two ATP. It was found in 1937. And so on.")
        for route, question in QUESTIONS.items():
            async with reading(folder / wire / route, provider, wire=wire) as reader:
                await reader.ask("Summarize the page about the Krebs cycle", Page())
                reader.app.sessions.end("", "default")
                reader.clock.now_s += 86_400
                for earlier in ("Why is it a cycle?", "Walk me through this page", "Is that important?"):
                    await reader.ask(earlier, Page())
                page = Page()
                answer = await reader.ask(question, page)
                assert answer.route == route, answer
                found[route] = (provider.requests[-1].raw, page.read)
    return found


def golden_file(route: str, wire: str) -> Path:
    return FOLDER / f"{route}.{wire}.json"


def readable(raw: bytes) -> str:
    """The same, for people to compare."""
    return json.dumps(json.loads(raw), indent=1, ensure_ascii=False)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        os.environ |= {"XDG_DATA_HOME": f"{temporary}/data", "XDG_CONFIG_HOME": f"{temporary}/none"}
        for wire in WIRES:
            for route, (raw, _) in asyncio.run(record(Path(temporary), wire)).items():
                FOLDER.mkdir(exist_ok=True)
                golden_file(route, wire).write_bytes(raw)
