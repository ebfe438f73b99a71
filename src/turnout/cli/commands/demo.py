"""`python -m turnout.cli.commands.demo`: an explained decision from each profile that ships with Turnout, offline."""

from __future__ import annotations

import sys

from turnout import load
from turnout.config.load import shipped

from ..app import guarded

# One question a profile, chosen so that the picture has something to show.
QUESTIONS = {
    "assist": "How do I rotate an API key, and what does it mean for running jobs?",
    "claims": "Did Matthew copy Mark?",
    "sources": "If it rains tomorrow, which lights are on, and what changed today?",
    "study": "Explain what complexity means in the definition on the far right",
    "study-seed": "What is happening here?",
    "tiers": "First prove the theorem step by step, then explain it",
    "tiers-seed": "How can I improve my algorithm?",
}
ANY = "What is the difference between entropy and information, in short?"


def run() -> int:
    from rich.text import Text

    from turnout.explain.explanation import explain

    from ..draw.picture import picture
    from ..draw.screen import console

    screen = console()
    glyphs, width = screen.glyphs, screen.room
    for number, name in enumerate(shipped()):
        router = load(name, config="")
        decision = router.route_sync(QUESTIONS.get(name, ANY))
        if number:
            screen.print()
        screen.print(picture(explain(decision), glyphs, width), width=width)
    screen.print()
    screen.print(Text("turnout explain TEXT -p PROFILE draws this for any question", "dim"))
    return 0


if __name__ == "__main__":
    sys.exit(guarded(run))
