"""Makes keys: `tno_<id>_<secret>`. The store has the id and a keyed digest of the secret, which is of no use alone.

A secret of 256 random bits needs no slow hash, and a slow hash would help to overload the server.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from turnout.runtime.pepper import read_pepper
from turnout.store.keys import Key
from turnout.store.row import now_ms

from .auth import PREFIX, Credential, digest

if TYPE_CHECKING:
    from turnout.store.keys import Keys

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"


def new_credential() -> Credential:
    return Credential("".join(secrets.choice(_ALPHABET) for _ in range(12)), secrets.token_urlsafe(32))


def spell(credential: Credential) -> str:
    return f"{PREFIX}_{credential.key_id}_{credential.secret}"


def make_key(keys: Keys, name: str, **fields: Any) -> tuple[Key, str]:
    """Store a new key; returns its row and the key itself, which cannot be shown again."""
    credential = new_credential()
    fields.setdefault("created_ms", now_ms())
    row = Key(credential.key_id, digest(credential.secret, read_pepper()), name, **fields)
    keys.add(row)
    return row, spell(credential)
