"""semantic-router as a contender, around an encoder so small that the clock shows the router and not a model.

The encoder hashes character trigrams into a fixed vector. It reads the first `WINDOW` characters only, since embedding
models cut their input too: at 4k and 100k tokens this contender reads a fraction of what the others read.
"""

import asyncio
from importlib.metadata import version
from zlib import crc32

from timing import Contender, Crew, serve

# About 512 tokens, the usual limit of small embedding models.
WINDOW = 2048
WIDTH = 256

EXAMPLES = {
    "SIMPLE": ("hi there", "what is a verb", "who painted this", "how tall is that tower", "good morning, thank you"),
    "MEDIUM": (
        "summarise this article for a colleague",
        "explain how a cache works and when it helps",
        "write a limerick about trains",
        "why does this line raise a type error",
    ),
    "COMPLEX": (
        "design a distributed booking system with failover and monitoring",
        "implement a concurrent scheduler with tests and error handling",
        "create a database schema for a hospital with roles and audit",
    ),
    "REASONING": (
        "prove by induction that the sum is even",
        "reason step by step about which option is best",
        "think it through carefully, weigh both sides and show how you got there",
    ),
}


def assemble() -> Crew:
    import numpy as np
    from semantic_router import IndexedRouter, Route
    from semantic_router.encoders import DenseEncoder

    def embed(text: str) -> list[float]:
        raw = f" {text[:WINDOW].lower()} ".encode()
        # crc32 and not hash(): the same vector in every process.
        buckets = [crc32(raw[i : i + 3]) % WIDTH for i in range(len(raw) - 2)]
        vector = np.bincount(buckets, minlength=WIDTH).astype(float)
        return (vector / np.linalg.norm(vector)).tolist()

    class Trigrams(DenseEncoder):
        name: str = "trigrams"

        def __call__(self, docs: list[str]) -> list[list[float]]:
            return [embed(doc) for doc in docs]

        async def acall(self, docs: list[str]) -> list[list[float]]:
            return self(docs)

    routes = [Route(name=name, utterances=list(examples)) for name, examples in EXAMPLES.items()]
    router = IndexedRouter(encoder=Trigrams(), routes=routes)
    loop = asyncio.new_event_loop()
    return Crew(
        version("semantic-router"),
        {
            # The plain call hands the query to other threads and back; awaited inside a loop it makes no such trip.
            "call": Contender(router, lambda choice: str(choice.name)),
            "acall": Contender(
                lambda text: loop.run_until_complete(router.acall(text)), lambda choice: str(choice.name)
            ),
        },
    )


if __name__ == "__main__":
    serve(assemble)
