"""The pepper: the secret that the digests of keys are made with, so that a stolen store opens nothing."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from turnout.config.settings import data_folder
from turnout.core.errors import ConfigError, Problem
from turnout.text.file import read_bytes, reason_of

# The longest pepper file that is read; the one made here has 64 characters.
MOST_BYTES = 4096


def pepper_file() -> Path:
    return data_folder() / "pepper"


def read_pepper() -> bytes:
    """What digests are keyed with: `TURNOUT_PEPPER`, else a file made once in the user's data folder."""
    named = os.environ.get("TURNOUT_PEPPER")
    if named is not None:
        if len(named.strip()) < 16:
            raise ConfigError([Problem("TURNOUT_PEPPER", "needs at least 16 characters; unset it to have one made")])
        # Bytes that are not UTF-8 are as good as others, and an error about them would carry all of it.
        return named.encode("utf-8", "surrogateescape")
    path = pepper_file()
    if not os.path.lexists(path):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        new = path.with_name(f"pepper.{secrets.token_hex(4)}")
        with os.fdopen(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(secrets.token_hex(32))
        try:
            os.link(new, path)  # the first one wins, and half of it is never read
        except FileExistsError:
            pass
        finally:
            new.unlink()
    try:
        pepper = read_bytes(path, MOST_BYTES).strip()
    except OSError as error:
        said = f"cannot be read: {reason_of(error)}; every key depends on it: restore it"
        raise ConfigError([Problem(str(path), said)]) from None
    if len(pepper) < 16 or not pepper.isascii():
        raise ConfigError([Problem(str(path), "is empty or damaged: every key depends on it; restore it")])
    return pepper
