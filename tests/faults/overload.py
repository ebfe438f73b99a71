"""Five times more than the server can do, at a steady rate from another process: what is let in is answered, the rest
is told soon, and afterwards all is as before.

The numbers depend on what else the machine does; `soak.py` prints them. A refusal costs about a twelfth of an answer
(measured), so at five times capacity most of the work is still answering.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import msgspec

from faults.load import Load
from faults.test_gateway_stop import running
from toml_router import LOCAL
from turnout.testing import Reply, ScriptedProvider

SETTINGS = f"""
[server]
profile = "{LOCAL}"
[models.simple]
model = "quick/one"
base_url = "{{url}}"
[models.medium]
model = "quick/two"
base_url = "{{url}}"
"""


class Overload(NamedTuple):
    peak: Load
    over: Load
    recovered_s: float


def load(url: str, rate: float, seconds: float, clients: int = 16) -> Load:
    command = [sys.executable, "-m", "faults.load", url, str(rate), str(seconds), "--clients", str(clients)]
    told = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=Path(__file__).parent.parent)
    return msgspec.json.decode(told.stdout, type=Load)


def overload(folder: Path, times: float = 5.0, seconds: float = 5.0) -> Overload:
    reply = Reply("Paris.", delay_s=0.02)
    with (
        ScriptedProvider.in_thread(reply, keep=10) as provider,
        running(folder, provider, settings=SETTINGS) as server,
    ):
        load(server.url, 0, 1.0)
        peak = max((load(server.url, 0, seconds, clients) for clients in (32, 96)), key=lambda one: one.answered_per_s)
        over = load(server.url, peak.answered_per_s * times, seconds)
        began = time.monotonic()
        while True:
            calm = load(server.url, peak.answered_per_s / 2, 0.5)
            if calm.statuses == {"200": calm.sent}:
                return Overload(peak, over, time.monotonic() - began)
