"""Writes a profile that extends another. It is loaded and checked first; a file that fails is not left behind."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path as File

from turnout.config.load import is_shipped, load_profile, read_chain
from turnout.config.name import current_name
from turnout.core.errors import LearnError
from turnout.core.profile import Profile


def check_out(out: File, base: str) -> None:
    """Refuse a place where no profile that extends `base` can be written, before anything is measured."""
    if out.suffix != ".toml":
        raise LearnError(f"--out {out}: a profile is a .toml file")
    if is_shipped(out.stem):
        raise LearnError(f"--out {out}: {out.stem!r} is the name of a shipped profile, choose another")
    if out.resolve() in [file.resolve() for file in read_chain(base).files]:
        raise LearnError(f"--out {out}: the profile it would extend is that file, choose another")
    if not out.parent.is_dir():
        raise LearnError(f"--out {out}: there is no folder {out.parent}")


def write_heir(out: File, base: str, compose: Callable[[str], str], check: Callable[[Profile], object]) -> None:
    """Write the text that `compose` returns for the name to extend; `check` gets the loaded profile and may refuse
    it."""
    check_out(out, base)
    extends = current_name(base) if is_shipped(base) else os.path.relpath(base, out.parent)
    part = out.with_name(f".{out.stem}.part.toml")
    try:
        part.write_text(compose(extends), encoding="utf-8", newline="\n")
        check(load_profile(part, config=""))
        os.replace(part, out)
    finally:
        part.unlink(missing_ok=True)
