"""Texts about what a user has written, without the credentials in it.

A key in a file by mistake is reported, and a message is read by others: on a screen, in a log, in a
ticket. Credentials are known by their looks here; a value that was read as a key is hidden by `models.secret`, exactly.
"""

from __future__ import annotations

import re

HIDDEN = "***"

# Shapes of credentials that providers hand out: by prefix, and three parts of base64 with dots between them.
CREDENTIAL = re.compile(
    r"\b(?:sk-[\w-]{16,}|AIza[\w-]{30,}|gh[pousr]_\w{30,}|github_pat_\w{30,}|xox[abpr]-[\w-]{10,}|A[KS]IA[0-9A-Z]{16}"
    r"|(?:rk|tno|hf|gsk|xai|pplx|nvapi|glpat)[-_](?=[\w-]*\d)[\w-]{16,}|eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?)"
)
# A password may hold any sign, also the ones that should have been escaped: all of it goes, up to the last @.
_IN_ADDRESS = re.compile(r"(://[^\s/:@'\"]*:)[^\s'\"]*@")
_IN_QUERY = re.compile(r"([?&][\w-]*(?:key|token|secret|password)=)[^&\s'\"]+", re.IGNORECASE)
_IN_HEADER = re.compile(r"(\b(?:bearer|authorization:\s*\w+|x-api-key:)\s+)(?=\S*\d)[^\s'\"]{8,}", re.IGNORECASE)
# What is too random to be the name of a variable or a file: long, one word, with digits among its letters.
_RANDOM = re.compile(r"(?=[^\W\d]*\d)(?=.*[a-z])[\w+=~-]{20,}")


def conceal(text: str) -> str:
    """The text with `***` for every credential in it."""
    text = _IN_ADDRESS.sub(rf"\1{HIDDEN}@", text)
    text = _IN_QUERY.sub(rf"\1{HIDDEN}", text)
    text = _IN_HEADER.sub(rf"\1{HIDDEN}", text)
    return CREDENTIAL.sub(HIDDEN, text)


def looks_secret(text: str) -> bool:
    """Whether a text is rather a credential than the name of one."""
    return CREDENTIAL.search(text) is not None or _RANDOM.fullmatch(text) is not None
