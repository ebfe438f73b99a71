"""The kinds of layer that ship in the base install, one file each. Importing this package registers them."""

from __future__ import annotations

from . import declared, framing, keywords, llm, rules, signals

__all__ = ["declared", "framing", "keywords", "llm", "rules", "signals"]
