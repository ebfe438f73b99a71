"""`turnout doctor`: what is installed here, what is missing, and what to do about it."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path as File
from typing import Literal, NamedTuple

from turnout import __version__
from turnout.config.document import read
from turnout.config.load import load_profile, settings_file, shipped
from turnout.core.errors import ConfigError
from turnout.core.registry import GROUP, kinds

from .option import ConfigOption


class Finding(NamedTuple):
    state: Literal["ok", "note", "broken"]
    subject: str
    text: str
    advice: str = ""


def doctor(*, config: ConfigOption = None) -> int:
    from rich.table import Table
    from rich.text import Text

    from .screen import console, counted, glyphs_for, visible
    from .shape import Rail

    screen = console()
    glyphs = glyphs_for(screen)
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    style = {"ok": "green", "note": "yellow", "broken": "bold red"}
    found = list(_examine(config))
    for finding in found:
        text = Text("\n".join(map(visible, finding.text.split("\n"))))
        if finding.advice:
            text.append(f"\n{glyphs.arrow} {visible(finding.advice)}", style[finding.state])
        grid.add_row(Text(finding.state, style[finding.state]), Text(finding.subject, "bold"), text)
    screen.print(Rail(grid, ""))
    broken = sum(finding.state == "broken" for finding in found)
    notes = sum(finding.state == "note" for finding in found)
    screen.print()
    if broken:
        screen.print(Text(f"{broken} broken", "bold red"))
        return 1
    screen.print("nothing is broken" + (f"; {counted(notes, 'note')}" if notes else ""))
    return 0


def _examine(config: str | None) -> Iterator[Finding]:
    yield Finding("ok", "turnout", f"{__version__} in {os.path.dirname(os.path.dirname(os.path.abspath(__file__)))}")
    yield Finding("ok", "python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    encoding = getattr(sys.stdout, "encoding", None) or "none"
    if encoding.lower().startswith("utf"):
        yield Finding("ok", "terminal", encoding)
    else:
        yield Finding("note", "terminal", f"{encoding}: pictures are drawn in ASCII", "set PYTHONIOENCODING=utf-8")
    yield from _requirements()
    yield from _kinds()
    settings = _settings(config)
    yield settings
    # Settings that are broken are said to be, once; what the profiles are without them is another matter.
    yield from _profiles("" if settings.state == "broken" else config)


def _requirements() -> Iterator[Finding]:
    """The packages Turnout declares, and those of its extras that are not here."""
    try:
        declared = metadata.requires("turnout") or []
    except metadata.PackageNotFoundError:
        yield Finding("note", "packages", "Turnout runs from its source and is not installed", "pip install -e .")
        return
    for requirement in declared:
        name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)", requirement)
        try:
            yield Finding("ok", name, metadata.version(name))
        except metadata.PackageNotFoundError:
            if extra:
                install = f"pip install 'turnout[{extra[1]}]'"
                yield Finding("note", name, f"not installed; only needed for {extra[1]}", install)
            else:
                yield Finding("broken", name, f"not installed, but required ({requirement})", f"pip install {name}")


def _kinds() -> Iterator[Finding]:
    for entry in metadata.entry_points(group=GROUP):
        try:
            entry.load()
        except (ImportError, AttributeError, SyntaxError, NameError, TypeError, ValueError, OSError) as error:
            source = entry.dist.name if entry.dist is not None else entry.value
            said = f"{entry.name} from {source} cannot be loaded: {type(error).__name__}: {error}"
            yield Finding("broken", "kinds", said, f"repair or uninstall {source}")
            return
    listed = ", ".join(f"{kind.name} ({kind.cost})" for kind in kinds().values())
    yield Finding("ok", "kinds", listed)


def _settings(config: str | None) -> Finding:
    path = settings_file(config)
    if path is None:
        return Finding("ok", "settings", "none; every profile is as it ships")
    named = " (named by TURNOUT_CONFIG)" if config is None and os.environ.get("TURNOUT_CONFIG") else ""
    problems = "\n".join(dict.fromkeys(_problems_of_settings(path)))
    if problems:
        return Finding("broken", "settings", f"{problems}{named}", "correct the file, or point --config elsewhere")
    return Finding("ok", "settings", f"{path}{named}")


def _problems_of_settings(path: File) -> Iterator[str]:
    """What is wrong with the file, or with a profile only once the file is laid over it."""
    try:
        read(path)
    except ConfigError as error:
        yield str(error)
        return
    for name in shipped():
        try:
            load_profile(name, config=path)
        except ConfigError as error:
            with contextlib.suppress(ConfigError):
                load_profile(name, config="")
                yield from map(str, error.problems)


def _profiles(config: str | None) -> Iterator[Finding]:
    from .screen import counted

    missing: dict[str, list[str]] = {}
    for name in shipped():
        try:
            profile = load_profile(name, config=config)
        except ConfigError as error:
            yield Finding(
                "broken", name, str(error), "correct what it says; if you changed nothing, install Turnout anew"
            )
            continue
        fine = f"{counted(len(profile.routes), 'route')}, {counted(len(profile.layers), 'layer')}, {profile.hash}"
        yield Finding("ok", name, "\n".join([fine, *profile.remarks]))
        for place in profile.layers:
            if place.call is None:
                missing.setdefault(place.kind, []).append(name)
    for kind, names in missing.items():
        said = f"not installed; its layer passes in {', '.join(names)}"
        yield Finding(
            "note", kind, said, f"install the package that provides {kind}, or leave it: decisions stay local"
        )
