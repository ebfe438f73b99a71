"""The kinds of layer that ship in the base install, one file each. Importing this package registers them."""

from __future__ import annotations

from . import agent, declared, followup, framing, gain, keywords, llm, pointing, rules, signals, student  # noqa: F401
