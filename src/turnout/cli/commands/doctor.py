"""`turnout doctor`: what is installed here, what is missing, and what to do about it."""

from __future__ import annotations

from turnout.runtime.doctor import examine
from turnout.text.count import counted

from ..draw.finding import BAD, draw_findings
from ..draw.screen import console
from ..option import ConfigOption


def doctor(*, config: ConfigOption = None) -> int:
    screen = console()
    found = list(examine(config))
    if broken := draw_findings(screen, found):
        screen.say((f"{broken} broken", BAD))
        return 1
    notes = sum(finding.state == "note" for finding in found)
    screen.say("nothing is broken" + (f"; {counted(notes, 'note')}" if notes else ""))
    return 0
