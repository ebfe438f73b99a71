"""semantic-router around the same MiniLM that Turnout's student uses, on the same questions.

`TURNOUT_BENCH_PEER` names a JSON file: the graph, the tokenizer, how many tokens are read, the labelled utterances, a
file with their vectors (so that building the index does not take a minute) and the setting. Questions are encoded when
they are asked. Nothing of Turnout is imported.
"""

import asyncio
import json
import os
from importlib.metadata import version
from pathlib import Path

from timing import Contender, Crew, serve


def assemble() -> Crew:
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import numpy as np
    import onnxruntime
    from semantic_router import IndexedRouter, Route
    from semantic_router.encoders import DenseEncoder
    from tokenizers import Tokenizer

    told = json.loads(Path(os.environ["TURNOUT_BENCH_PEER"]).read_text(encoding="utf-8"))
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(told["graph"], settings, providers=["CPUExecutionProvider"])
    tokenizer = Tokenizer.from_file(told["tokenizer"])
    tokenizer.no_padding()
    tokenizer.enable_truncation(told["tokens"])
    vectors = np.load(told["vectors"])
    known = dict(zip(told["texts"], vectors.tolist(), strict=True))

    def encode(text: str) -> list[float]:
        return session.run(None, {"ids": np.asarray(tokenizer.encode(text).ids, np.int64)})[0].tolist()

    class MiniLM(DenseEncoder):
        name: str = "minilm"

        def __call__(self, docs: list[str]) -> list[list[float]]:
            return [known.pop(doc, None) or encode(doc) for doc in docs]

        async def acall(self, docs: list[str]) -> list[list[float]]:
            return self(docs)

    utterances: dict[str, list[str]] = {}
    for text, label in zip(told["texts"], told["labels"], strict=True):
        utterances.setdefault(label, []).append(text)
    routes = [Route(name=label, utterances=texts) for label, texts in utterances.items()]
    router = IndexedRouter(
        encoder=MiniLM(), routes=routes, top_k=told["top_k"], aggregation=told["aggregation"], confidence_threshold=None
    )
    known.clear()  # what is asked from now on is encoded
    loop = asyncio.new_event_loop()

    def label(choice: object) -> str:
        return f"{choice.name}\t{choice.confidence}"  # type: ignore[attr-defined]

    return Crew(
        version("semantic-router"),
        {
            "call": Contender(router, label),
            "acall": Contender(lambda text: loop.run_until_complete(router.acall(text)), label),
            "encode": Contender(encode, str),
        },
    )


if __name__ == "__main__":
    serve(assemble)
