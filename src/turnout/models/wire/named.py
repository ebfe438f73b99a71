"""Whether a request names something only one provider has: a stored response, a file, a container, an address to fetch.

Checked only when a provider says that something is missing, in the request's bytes. Unescaped quotes of a key cannot
occur inside a JSON string.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec
import re2

# Members of a body that always name something.
MEMBERS = ("previous_response_id", "conversation", "prompt", "container", "mcp_servers")
# Members that may contain such names.
INSIDE = ("messages", "input", "tools", "system", "tool_resources", "attachments")
# How much of each is read: the worst case takes a tenth of a second.
READ_BYTES = 12 * 1024 * 1024
PATTERNS = (
    r'"(?:file_id|connector_id|container|container_id|skill_id|batch_id|prompt_id|vector_store_id)"\s*:\s*"',
    r'"(?:file_ids|vector_store_ids)"\s*:\s*\[\s*"',
    r'"type"\s*:\s*"item_reference"',
    r'"audio"\s*:\s*\{\s*"id"',
    # An address, but not that of an inline picture, which begins with "data:".
    r'"(?:url|image_url|file_url|server_url)"\s*:\s*"(?:[^d]|d[^a])',
)


@cache
def _pattern() -> Any:
    return re2.compile("|".join(PATTERNS).encode())


def names_something(fields: Mapping[str, Any]) -> bool:
    """Whether a request's members, each as its bytes, name such a thing."""
    if any(bytes(fields[name]) not in (b"null", b'""') for name in MEMBERS if name in fields):
        return True
    return any(_pattern().search(_plain(fields[name])) is not None for name in INSIDE if name in fields)


def _plain(raw: Any) -> bytes:
    """The JSON without escaped letters: a name may be written `\\u0066ile_id`."""
    text = bytes(memoryview(raw)[:READ_BYTES])
    return msgspec.json.encode(msgspec.json.decode(raw)) if len(raw) <= READ_BYTES and b"\\u00" in text else text
