"""Providers by name: their addresses, their wire formats, and the header that carries their key.

A table of facts. A provider that is not listed is an OpenAI-compatible server whose slot gives the address.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Wire = Literal["openai-chat", "anthropic-messages", "openai-responses"]
WIRES: tuple[Wire, ...] = ("openai-chat", "anthropic-messages", "openai-responses")
CHAT: tuple[Wire, ...] = ("openai-chat",)


class Provider(Struct, frozen=True):
    base_url: str | None
    """None: the slot must give it."""
    env: str | None
    """The environment variable that usually holds its key; None if it needs none."""
    wires: tuple[Wire, ...] = CHAT
    chat_limit: str = "max_tokens"
    """The member of a chat completion that limits its answer. OpenAI renamed it, not everyone followed, and a provider
    ignores a name it does not know."""


NEW_LIMIT = "max_completion_tokens"

PROVIDERS: dict[str, Provider] = {
    "anthropic": Provider("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", ("anthropic-messages", "openai-chat")),
    "openai": Provider("https://api.openai.com/v1", "OPENAI_API_KEY", ("openai-chat", "openai-responses"), NEW_LIMIT),
    "google": Provider("https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
    "mistral": Provider("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "groq": Provider("https://api.groq.com/openai/v1", "GROQ_API_KEY", chat_limit=NEW_LIMIT),
    "deepseek": Provider("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "xai": Provider("https://api.x.ai/v1", "XAI_API_KEY", chat_limit=NEW_LIMIT),
    "openrouter": Provider("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "ollama": Provider("http://127.0.0.1:11434/v1", None),
    "vllm": Provider("http://127.0.0.1:8000/v1", None),
    "lmstudio": Provider("http://127.0.0.1:1234/v1", None),
    "demo": Provider("demo:", None, WIRES),
}
"""`demo` is the demonstration model that ships with Turnout."""

PATHS: dict[Wire, str] = {
    "openai-chat": "/chat/completions",
    "anthropic-messages": "/messages",
    "openai-responses": "/responses",
}

# Anthropic requires the version of its API in each request; this has been the only one since June 2023.
ANTHROPIC_VERSION = "2023-06-01"


def limit_field(wire: Wire, provider: str) -> str:
    """The member of a request that limits the length of the answer."""
    match wire:
        case "anthropic-messages":
            return "max_tokens"
        case "openai-responses":
            return "max_output_tokens"
        case "openai-chat":
            return PROVIDERS[provider].chat_limit if provider in PROVIDERS else "max_tokens"


def credential(wire: Wire, provider: str, key: str) -> tuple[str, str]:
    """The header that carries a key."""
    if wire == "anthropic-messages" and provider != "openrouter":
        return "x-api-key", key
    return "authorization", f"Bearer {key}"
