"""Whether a request names what only one provider has: a stored response, a file, a container, an address to fetch.

Looked for only when a provider says it does not have something, in the bytes as they came. A key's quotes cannot occur
inside a string, where they are escaped.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec
import re2

# Members of a body that name something, whatever they say.
MEMBERS = ("previous_response_id", "conversation", "prompt", "container", "mcp_servers")
# Members with such things inside.
INSIDE = ("messages", "input", "tools", "system", "tool_resources", "attachments")
# So much of each is read: the worst there is takes a tenth of a second.
READ_BYTES = 12 * 1024 * 1024
PATTERNS = (
    r'"(?:file_id|connector_id|container|container_id|skill_id|batch_id|prompt_id|vector_store_id)"\s*:\s*"',
    r'"(?:file_ids|vector_store_ids)"\s*:\s*\[\s*"',
    r'"type"\s*:\s*"item_reference"',
    r'"audio"\s*:\s*\{\s*"id"',
    # An address; a picture that is sent along has one that begins with "data:".
    r'"(?:url|image_url|file_url|server_url)"\s*:\s*"(?:[^d]|d[^a])',
)


@cache
def _pattern() -> Any:
    return re2.compile("|".join(PATTERNS).encode())


def names_something(fields: Mapping[str, Any]) -> bool:
    """Whether a request's members do; each is its bytes."""
    if any(bytes(fields[name]) not in (b"null", b'""') for name in MEMBERS if name in fields):
        return True
    return any(_pattern().search(_plain(fields[name])) is not None for name in INSIDE if name in fields)


def _plain(raw: Any) -> bytes:
    """The text, with letters that are escaped written out: a name may be spelt `\\u0066ile_id`."""
    text = bytes(memoryview(raw)[:READ_BYTES])
    return msgspec.json.encode(msgspec.json.decode(raw)) if len(raw) <= READ_BYTES and b"\\u00" in text else text
