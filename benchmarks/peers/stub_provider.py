"""The provider behind every gateway: answers at once, and counts what it was asked.

Prints its port; for every line on its standard input, how many requests came so far and how many of them were a
classifier's.
"""

import asyncio
import sys

from turnout.testing import Reply, ScriptedProvider
from turnout.testing.reply import Received

ANSWER = Reply(
    "Sixteen trains leave the yard before noon, and the ninth of them takes the branch line to the harbour.",
    usage=(80, 22),
)
LABEL = Reply("MEDIUM", usage=(220, 2))


async def main() -> None:
    classified = 0

    def reply(request: Received) -> Reply:
        nonlocal classified
        if b'"model":"classifier"' in request.raw:
            classified += 1
            return LABEL
        return ANSWER

    async with ScriptedProvider(reply, keep=1) as provider:
        print(provider.port, flush=True)
        while await asyncio.to_thread(sys.stdin.readline):
            print(provider.received, classified, flush=True)


if __name__ == "__main__":
    import uvloop

    uvloop.run(main())
