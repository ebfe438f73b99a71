"""How a tier came about, in the words of the specification."""

from __future__ import annotations

from turnout.core.decision import Decision


def method(decision: Decision) -> str:
    """forced, packed-default, rule-based, llm-confirmed, llm-override, llm-skipped, llm-failed, llm-invalid, pinned."""
    who, how = decision.outcome[0], decision.outcome[1]
    if who == "D":
        return "forced"
    if decision.by == "pin":
        return "pinned"
    if any(reason.code == "extract.packed_empty" for reason in decision.remarks):
        return "packed-default"
    if who in ("L", "A", "C"):
        held = decision.held
        same = held is not None and held.verdict is not None and held.verdict.routes == decision.routes
        return "llm-confirmed" if same else "llm-override"
    if who == "F":
        return {"i": "llm-invalid", "t": "llm-failed", "e": "llm-failed", "x": "llm-failed"}.get(how, "llm-skipped")
    return "rule-based"
