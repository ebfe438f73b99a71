"""Removes credentials from messages.

A message that quotes a file may quote a key put there by mistake, and others will read it on a screen, in a log or in a
ticket. Credentials are recognised by their shape here; `models.secret` hides the exact values that were read as keys.
"""

from __future__ import annotations

import re

HIDDEN = "***"

# Shapes of credentials that providers issue: by prefix, and JSON web tokens (base64 parts joined by dots).
CREDENTIAL = re.compile(
    r"\b(?:sk-[\w-]{16,}|AIza[\w-]{30,}|gh[pousr]_\w{30,}|github_pat_\w{30,}|xox[abpr]-[\w-]{10,}|A[KS]IA[0-9A-Z]{16}"
    r"|(?:rk|tno|hf|gsk|xai|pplx|nvapi|glpat)[-_](?=[\w-]*\d)[\w-]{16,}|eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?)"
)
# A password may have any character, even ones that should have been escaped, so everything up to the last @ goes.
_IN_ADDRESS = re.compile(r"(://[^\s/:@'\"]*:)[^\s'\"]*@")
_IN_QUERY = re.compile(r"([?&][\w-]*(?:key|token|secret|password)=)[^&\s'\"]+", re.IGNORECASE)
_IN_HEADER = re.compile(r"(\b(?:bearer|authorization:\s*\w+|x-api-key:)\s+)(?=\S*\d)[^\s'\"]{8,}", re.IGNORECASE)
# Too random for the name of a variable or file: one long word with digits among its letters.
_RANDOM = re.compile(r"(?=[^\W\d]*\d)(?=.*[a-z])[\w+=~-]{20,}")


def conceal(text: str) -> str:
    """The text with `***` for every credential in it."""
    text = _IN_ADDRESS.sub(rf"\1{HIDDEN}@", text)
    text = _IN_QUERY.sub(rf"\1{HIDDEN}", text)
    text = _IN_HEADER.sub(rf"\1{HIDDEN}", text)
    return CREDENTIAL.sub(HIDDEN, text)


def looks_secret(text: str) -> bool:
    """Whether a text is probably a credential, not the name of one."""
    return CREDENTIAL.search(text) is not None or _RANDOM.fullmatch(text) is not None
