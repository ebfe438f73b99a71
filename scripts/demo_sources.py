"""`make demo-sources`: six questions to sources that are started for them.

The servers are the doubles that ship with Turnout, on loopback, and the files are its own documentation. Nothing leaves
this machine, and nothing of the user's is read or written.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from turnout.cli.app import guarded, main
from turnout.config.write import Value, toml_value
from turnout.core.errors import TurnoutError

if TYPE_CHECKING:
    from turnout.testing.source import SourceDouble

DOCS = Path(__file__).parents[1] / "docs"
# Few and short, so that the answer fits on a screen.
PAGES = ("explanation/durability.md", "how-to/set-a-ceiling.md")
# How long a request may take here: long enough to be seen, short enough to be waited for.
PATIENCE_S = 2.0
TOKEN = "TURNOUT_DEMO_TOKEN"  # noqa: S105 - the name of a variable


class Step(NamedTuple):
    question: str
    said: str
    """What there is to see."""
    session: bool = False
    stopped: str = ""
    """A source whose server is shut down before."""
    hung: str = ""
    """A source whose server takes the question and never answers."""


STEPS = (
    Step("Will it rain in Berlin today?", "One question, one source that knows.", session=True),
    Step("and tomorrow?", "A follow-up is understood by what was asked before.", session=True),
    Step(
        "Is everything up, and what do my documents say about a power cut?",
        "A compound question goes to several sources at once.",
    ),
    Step(
        "If the garage door is open, close it and check the news",
        "A condition is judged by states, not by words; nothing is ever switched.",
    ),
    Step("Who was Ada Lovelace?", "The encyclopedia is shut down: the web is asked in its place.", stopped="kiwix"),
    Step(
        "Which lights are on, and are there any headlines?",
        f"The home hangs: it is named after {PATIENCE_S:g} s, and the other answer is there.",
        hung="ha",
    ),
)


def make_doubles() -> dict[str, SourceDouble]:
    """A server for each source, by the source's name."""
    from turnout.testing.source import (
        Article,
        Day,
        FeedDouble,
        HomeDouble,
        KiwixDouble,
        KumaDouble,
        MeteoDouble,
        SearxDouble,
        WebResult,
    )

    now = datetime.now(UTC)
    ada = "Ada Lovelace was an English mathematician who wrote the first program for a machine that was never built."
    things = (
        ("cover.garage_door", "open", {"friendly_name": "Garage door", "device_class": "garage"}),
        ("light.kitchen", "on", {"friendly_name": "Kitchen light"}),
        ("light.hall", "off", {"friendly_name": "Hall light"}),
    )
    states = [{"entity_id": name, "state": state, "attributes": kept} for name, state, kept in things]
    return {
        "kiwix": KiwixDouble({"encyclopedia": {"Ada_Lovelace": ("Ada Lovelace", ada)}}),
        "forecast": MeteoDouble([Day(), Day(code=61, chance=90.0, rain_mm=7.0)]),
        "news": FeedDouble(
            [
                Article("A bridge is opened", "After nine years of work.", "https://news.example/bridge", now),
                Article("Rain is expected", "Mostly in the north.", "https://news.example/rain", now),
            ]
        ),
        "web": SearxDouble([WebResult("https://history.example/ada", "Ada Lovelace, 1815 to 1852", ada)]),
        "ha": HomeDouble(states, token=TOKEN),
        "uptime": KumaDouble({"Photos": 1, "Backup": 0}),
    }


def make_settings(doubles: dict[str, SourceDouble], pages: Path) -> str:
    """A settings file for the servers as they run now, and a folder of pages."""
    own: dict[str, dict[str, Value]] = {
        "forecast": {"place": "Berlin", "geocoding": doubles["forecast"].url},
        "news": {"feeds": [f"{doubles['news'].url}/rss.xml"]},
        "ha": {"token": {"env": TOKEN}},
    }
    tables: dict[str, dict[str, Value]] = {"files": {"folder": str(pages)}}
    for name, double in doubles.items():
        place: dict[str, Value] = {"url": double.url} if name != "news" else {}
        tables[name] = {**place, "timeout_s": PATIENCE_S, **own.get(name, {})}
    return "\n".join(
        "\n".join((f"[sources.{name}]", *(f"{key} = {toml_value(value)}" for key, value in table.items()), ""))
        for name, table in tables.items()
    )


def copy_pages(to: Path) -> Path:
    to.mkdir()
    for page in PAGES:
        shutil.copy(DOCS / page, to)
    return to


async def show(folder: Path) -> int:
    """All steps; how many of them nobody answered."""
    from turnout.cli.draw.screen import console
    from turnout.cli.option import hint

    unanswered = 0
    config, session = folder / "turnout.toml", folder / "chat.jsonl"
    doubles = make_doubles()
    async with AsyncExitStack() as running:
        for double in doubles.values():
            await running.enter_async_context(double)
        config.write_text(make_settings(doubles, copy_pages(folder / "pages")), encoding="utf-8")
        for number, step in enumerate(STEPS, 1):
            if step.stopped:
                await doubles[step.stopped].stop()
            if step.hung:
                doubles[step.hung].trouble = "hung"
            options = ("--session", session.name) if step.session else ()
            screen = console()
            screen.say((f"{number}  {step.said}", "bold"))
            screen.say((f"$ {hint('ask', step.question, *options)}", "cyan"))
            paths = ("--session", str(session)) if step.session else ()
            argv = ("ask", step.question, *paths, "--no-log", "--config", str(config))
            unanswered += await asyncio.to_thread(main, argv) != 0
            screen.print()
    console().say(("turnout sources add NAME adds one of yours, turnout ask QUESTION asks it", "dim"))
    return unanswered


@contextmanager
def apart() -> Iterator[Path]:
    """A folder for all that is written, and no provider's key: a model would be asked over the network."""
    from turnout.models.provider import PROVIDERS

    before = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="turnout-demo-") as folder:
        for row in PROVIDERS.values():
            os.environ.pop(row.env or "", None)
        # macOS goes by HOME.
        os.environ |= {"XDG_DATA_HOME": folder, "HOME": folder, TOKEN: TOKEN}
        try:
            yield Path(folder)
        finally:
            os.environ.clear()
            os.environ.update(before)


def run() -> int:
    try:
        import feedparser  # noqa: F401 - whether it is there

        import turnout.apps.sources.settings
        import turnout.testing.source  # noqa: F401 - whether it can be
    except ImportError as error:
        raise TurnoutError(f"this demonstration needs {error.name}: pip install 'turnout[serve,sources]'") from None
    with apart() as folder:
        return 1 if asyncio.run(show(folder)) else 0


if __name__ == "__main__":
    sys.exit(guarded(run))
