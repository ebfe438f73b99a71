"""When every provider fails, the storm of retries that follows stays a small share of what clients asked.

The budget is a share of the requests under way, and never less than three retries at once: a lone request may always
be tried again, so with a handful of clients up to twice as much is sent, and with many at most 1.2 times as much.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import NamedTuple

import pytest

from faults.asking import HttpResponse, ask, outcomes, request
from serving import serving
from turnout.net.circuit import Breaker, BreakerSettings
from turnout.testing import Fault, Reply, ScriptedProvider

CHAIN = 2
SETTINGS = """
[server]
lag_s = 60.0
[models.simple]
model = "first/one"
base_url = "%s"
[models.medium]
model = "second/two"
base_url = "%s"
"""


class Case(NamedTuple):
    id: str
    reply: Reply
    status: int


CASES = (
    Case("comes back at once", Reply("busy", status=429, headers={"retry-after": "0"}, delay_s=0.05), 429),
    Case("comes back soon", Reply("busy", status=503, headers={"retry-after": "0.1"}, delay_s=0.05), 502),
    Case("hangs up", Reply(delay_s=0.05, fault=Fault("reset", "before_headers")), 502),
    Case("fails", Reply("broken", status=500, delay_s=0.05), 502),
)


@pytest.mark.alike(2)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_retries_stay_a_small_share(tmp_path: Path, case: Case) -> None:
    together, each = 80, 3

    async def client(url: str, number: int) -> list[HttpResponse]:
        return [await ask(url, request("openai-chat", f"Question {number}, {turn}.")) for turn in range(each)]

    async def everybody(url: str) -> list[list[HttpResponse]]:
        return await asyncio.gather(*(client(url, number) for number in range(together)))

    with (
        ScriptedProvider.in_thread(case.reply) as first,
        ScriptedProvider.in_thread(case.reply) as second,
        serving(tmp_path, SETTINGS % (first.base_url, second.base_url)) as served,
    ):
        models = served.server.runtime.models
        for slot in models.slots.slots.values():
            # Breakers would spare the providers nearly all of it: this is what is sent without them.
            models.breakers[slot.endpoint] = Breaker(BreakerSettings(in_a_row=10**6, at_least=10**6))
        found = [got for some in asyncio.run(everybody(served.url)) for got in some]
        assert {got.status for got in found} == {case.status}
        asked = first.received + second.received
        written = outcomes(served, tmp_path).values()
        assert {outcome.ended for outcome in written} == {"failed"}
        assert sum(outcome.attempts for outcome in written) == asked
        assert len(found) * CHAIN <= asked <= 1.2 * len(found) * CHAIN
        assert served.server.runtime.models.retries.retrying == 0


def test_breakers_spare_providers_that_fail(tmp_path: Path) -> None:
    reply = Reply("broken", status=500)
    with (
        ScriptedProvider.in_thread(reply) as first,
        ScriptedProvider.in_thread(reply) as second,
        serving(tmp_path, SETTINGS % (first.base_url, second.base_url)) as served,
    ):
        for number in range(30):
            assert asyncio.run(ask(served.url, request("openai-chat", f"Question {number}."))).status == 502
        # Five in a row open the first's; the last of a chain is always tried.
        assert (first.received, second.received) == (5, 30)
