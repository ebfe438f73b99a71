"""kill -9 at any moment: every acknowledged decision is there, once, and says what routing says without a store.

Ten rounds here, a hundred and PostgreSQL in `make soak`. The seed says when the kill comes, to a millisecond or so;
what the process is doing just then is the system's own chance.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from faults import rounds, workload
from faults.rounds import SCENARIOS, RoundFailed, Scenario, play


@pytest.mark.alike(3)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_killed(scenario: Scenario, tmp_path: Path) -> None:
    seed = 1_000 + SCENARIOS.index(scenario)
    result = play(scenario, tmp_path, seed)
    assert result.kills >= scenario.workers, "a process was done before it could be killed"
    assert result.rows >= result.acknowledged
    # A line is torn only where the kill came into the write itself, and then it was not acknowledged.
    assert result.torn <= scenario.workers


def test_the_rounds_are_able_to_fail() -> None:
    """A check that cannot fail shows nothing: each of these must be noticed."""
    number = next(n for n in range(0, 100_000, 50) if len(workload.decide("w0", n).parts) == 2)
    decision = workload.decide("w0", number)
    row = (decision.id, None, f"w0-{number}", "sources", json.dumps(decision.routes), decision.by)
    parts = [
        (part.id, decision.id, f"w0-{number}", "sources", json.dumps(part.routes), part.by) for part in decision.parts
    ]
    promised = {"w0": {number: decision.id}}

    def reader(*rows: tuple[Any, ...], settled: int = 1, stray: int = 0) -> Callable[..., list[tuple[Any, ...]]]:
        def read(statement: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
            if statement == rounds.ALL:
                return list(rows)
            return [(decision.id,)] * settled if statement == rounds.SETTLEMENTS else [(stray,) * 5]

        return read

    assert rounds.check(reader(row, *parts), promised, "self", 0) == 1
    wrong = {
        "1 acknowledged decisions are not there": reader(),
        "the outcome of decision": reader(row, *parts, settled=0),
        "1 decisions are there twice": reader(row, *parts, ("other", *row[1:])),
        r"says RoutedDecision\(routes=\('another',\)": reader((*row[:4], '["another"]', row[5]), *parts),
        f"decision {number} says": reader(row, *parts[1:]),
        "there are parts without the question": reader(row, *parts, stray=1),
    }
    for message, read in wrong.items():
        with pytest.raises(RoundFailed, match=message):
            rounds.check(read, promised, "self", 0)
