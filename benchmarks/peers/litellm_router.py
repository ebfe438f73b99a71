"""LiteLLM's complexity router as a contender, at its cheapest synchronous entry.

Version one has a public `classify`. Version two is only reachable through a coroutine; the clock covers the function
which that coroutine calls, so the peer pays for no event loop. Neither is asked to encode its answer.
"""

import os
from importlib.metadata import version
from typing import Any

from timing import Contender, Crew, serve


def assemble() -> Crew:
    # Read while the package is imported: without it the price list is fetched from the network.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    from litellm.router_strategy.complexity_router import ComplexityRouter

    def router(kind: str) -> Any:
        config = {"classifier_type": kind}
        return ComplexityRouter("benchmark", litellm_router_instance=None, complexity_router_config=config)

    first, second = router("heuristic"), router("heuristic_v2")
    return Crew(
        version("litellm"),
        {
            "heuristic": Contender(first.classify, lambda answer: answer[0].value),
            "heuristic_v2": Contender(second._classify_with_heuristic_v2, lambda outcome: outcome.tier.value),
        },
    )


if __name__ == "__main__":
    serve(assemble)
