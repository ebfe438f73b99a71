"""What a test with models must not inherit from whoever runs it: settings, a store, provider keys."""

from pathlib import Path

import pytest

from turnout.models.provider import PROVIDERS

NAMES = ("TURNOUT_CONFIG", "TURNOUT_DB", "TURNOUT_PEPPER", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL")
TOKENS = ("ANTHROPIC_AUTH_TOKEN", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OLLAMA_MODEL_NAME")


def clear_environment(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    keys = [row.env for row in PROVIDERS.values() if row.env is not None]
    for name in (*NAMES, *TOKENS, *keys):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "data"))
