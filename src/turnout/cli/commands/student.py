"""`turnout student`: a trained student on its way into service, and out of it."""

from __future__ import annotations

from cyclopts import App

from ..app import examples_of, register
from ..table import Command

COMMANDS = (
    Command(
        "shadow",
        "Let a trained student decide logged questions beside the one that serves.\n\n"
        "How often the two agree, which questions change from which route to which, and how many of each are right "
        "where people said so. Nothing is served by it; what was found is kept for turnout student promote.",
        (
            "turnout student shadow -p assist",
            "turnout student shadow -p assist --since 7d --model 3f2a91",
        ),
    ),
    Command(
        "promote",
        "Let a trained student serve, if every check says it may.\n\n"
        "Accuracy and the difference to the champion as lower bounds, the recall of each label, golden cases, "
        "contract, flip rate, shadow decisions, suspicious rows and words. The exit code is 1 if it does not serve "
        "afterwards.",
        (
            "turnout student promote -p assist",
            "turnout student promote 3f2a91 -p assist --check",
            'turnout student promote 3f2a91 -p assist --force --why "the champion answers nothing in Spanish"',
        ),
    ),
    Command(
        "rollback",
        "Let the student before this one serve again.\n\n"
        "One step back each time, down to the one that came with Turnout. --history lists who served when, and why.",
        ("turnout student rollback -p assist", "turnout student rollback -p assist --history"),
    ),
    Command(
        "drift",
        "See whether the traffic has changed since the student learnt from it.\n\n"
        "Routes, layers, confidence, unknown questions, unseen words and corrections, before and now. A change counts "
        "that is beyond chance and large enough. The exit code is 1 if there is one.",
        (
            "turnout student drift -p assist",
            "turnout student drift -p assist --since 7d --against 37d",
        ),
    ),
)

app = App(name="student", help_epilogue=examples_of("student"))
for _order, _command in enumerate(COMMANDS):
    register(app, _command, _order)
