"""A layer that says what its question tells it to: `n17 A 0.93` is A, 0.93 sure. And a profile that has it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np
from msgspec import Struct

from turnout.core import registry
from turnout.core.query import Reading
from turnout.core.verdict import Verdict

PROFILE = """\
name = "toy"
routes = ["A", "B"]
fallback = { route = "A" }

[settings]
toy_threshold = "layers.toy.accept.confidence"

[[layers]]
id = "rules"
kind = "rules.v1"

[[layers.rules]]
id = "always"
route = "B"
when = { any = ["always"] }
text = "always"

[[layers]]
id = "toy"
kind = "toy.v1"
accept = { confidence = 0.5 }

[[layers]]
id = "llm"
kind = "llm.v1"
optional = true
deadline_ms = 1_500

[policy.A]
[policy.B]
"""


class ToyConfig(Struct, frozen=True, forbid_unknown_fields=True):
    pass


@contextmanager
def toy_kind() -> Iterator[None]:
    with mock.patch.object(registry, "_kinds", dict(registry.kinds())):

        @registry.kind("toy.v1")
        def toy(config: ToyConfig) -> object:
            def judge(reading: Reading) -> Verdict | None:
                words = reading.words.split()
                return Verdict((words[1],), float(words[2]), 0.5) if len(words) > 2 else None

            return judge

        yield


def write_world(folder: Path, rows: int = 1500, seed: int = 0, foreign: int = 0) -> None:
    """toy.toml, and labels.jsonl: an answer of confidence c is wrong with a chance of (1 - c) / 2."""
    draw = np.random.default_rng(seed)
    lines = []
    for number in range(rows):
        said, sure = "AB"[number % 2], round(float(draw.beta(3, 0.5)), 4)
        true = said if draw.random() >= (1 - sure) / 2 else "BA"[number % 2]
        if number < foreign:
            true, sure = "oos", 0.3
        lines.append({"text": f"n{number} {said} {sure}", "label": true})
    lines += [{"text": f"always {number}", "label": "B"} for number in range(rows // 20)]
    (folder / "toy.toml").write_text(PROFILE)
    (folder / "labels.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
