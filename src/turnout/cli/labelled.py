"""Options and checks shared by the commands that learn from labelled questions."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from collections.abc import Iterable, Iterator
from typing import Annotated

from cyclopts import Parameter

from turnout.config.load import find, read_chain
from turnout.core.errors import LearnError, QueryError
from turnout.runtime.load import EmbedderChoice

from .application import needing
from .option import STDIN, FolderOption, ShareOption

# Too few held-out rows measure nothing; more than half would leave too few to learn from.
LEAST_HELD, MOST_HELD = 0.01, 0.5

EmbedderOption = Annotated[
    EmbedderChoice,
    Parameter(
        name="--embedder",
        help="Sentence vectors besides n-grams: if installed, never, from MiniLM, or from the slot embedder.",
        show_default=True,
    ),
]
HoldOutOption = Annotated[ShareOption, Parameter(name="--hold-out", help="The share held out for evaluation.")]
ModelOption = Annotated[
    FolderOption, Parameter(name="--model", help="The trained model in that folder, instead of the one in use.")
]
LayerOption = Annotated[
    str | None,
    Parameter(name="--layer", help="The student's layer; needed only if a profile has several.", metavar="ID"),
]
AcceptOption = Annotated[
    tuple[str, ...],
    Parameter(name="--accept", help="A new word that you know is not a trigger. May be repeated.", metavar="WORD"),
]


def check_files(source: str | None, out: str | None = None, *, force: bool = False) -> None:
    """Raise if the labelled questions cannot be read, and read again, or the output would overwrite a file."""
    if source == STDIN:
        raise QueryError("labelled questions are read from a file: write what you pipe in into one, and name that")
    if source is not None:
        check_readable((source,))
    if out is not None:
        refuse_overwriting(out, force=force)


def refuse_overwriting(*files: str | os.PathLike[str], force: bool) -> None:
    existing = [os.fspath(file) for file in files if os.path.exists(file)]
    if existing and not force:
        raise QueryError(f"{' and '.join(existing)} would be overwritten: choose another name, or say --force")


def check_readable(files: Iterable[str]) -> None:
    """Raise if a file cannot be read: reported first, before a missing package or profile."""
    for file in files:
        try:
            open(file, "rb").close()
        except OSError as error:
            raise QueryError(f"{file}: cannot be read: {error.strerror}") from None


@contextlib.contextmanager
def needing_learn(profile: str) -> Iterator[None]:
    """The work inside needs the packages of the extra `learn` and an existing profile; an unknown profile is reported
    first."""
    find(profile)
    try:
        with needing("this needs", "learn"):
            yield
    except LearnError as error:
        error.args = (name_as_typed(str(error), profile),)
        raise


def name_as_typed(hint: str, profile: str) -> str:
    """The hint with the profile as the user typed it: a profile in a file is not found by its own name."""
    name = str(read_chain(profile).document.tree.get("name", ""))
    return re.sub(rf"-p {re.escape(name)}(?![\w.-])", lambda _: f"-p {shlex.quote(profile)}", hint)


def read_number(text: str, option: str) -> float:
    """Read `2%`, `2 %` or `0.02`; amounts, too."""
    number = text.strip()
    try:
        return float(number.removesuffix("%")) / (100 if number.endswith("%") else 1)
    except ValueError:
        raise QueryError(f"{option} {text[:40]!r} is not a number: write 95%, 0.95 or an amount") from None


def read_share(text: str, option: str) -> float:
    share = read_number(text, option)
    if not 0.0 < share < 1.0:
        raise QueryError(f"{option} {text!r}: a share between 0 and 1, such as 2% or 0.02")
    return share


def read_hold_out(text: str) -> float:
    share = read_share(text, "--hold-out")
    if not LEAST_HELD <= share <= MOST_HELD:
        raise QueryError(f"--hold-out {text[:40]!r}: from {LEAST_HELD:.0%} to {MOST_HELD:.0%}")
    return share


def percentage(share: float) -> str:
    """`2%`, `99.5%`"""
    return f"{100 * share:.6g}%"
