"""MiniLM as an ONNX graph, made from its weights: token ids in, one unit vector out.

The graph takes one text at a time and needs neither padding nor a mask. With int8 weights a product's range is taken
from the activations at hand; texts that share a batch would share that range and change one another's vectors.

The same weights give the same bytes on every machine: quantising is plain arithmetic on single numbers, and nothing
that is written depends on a clock or an order. So the hash of the file can name the embedder wherever it is built.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from turnout.core.errors import WeightsRefused

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

# all-MiniLM-L6-v2, as its config.json says.
LAYERS = 6
WIDTH = 384
INNER = 1536
HEADS = 12
VOCABULARY = 30_522
EPSILON = 1e-12
# The weights know 512 positions; the model was trained on 256 and is cut there.
POSITIONS = 256
# x86 without VNNI adds two products of 8 bits in 16 and clips the sum. 255 * 63 * 2 stays within 32,767, so that every
# processor computes the same; one bit more gains .002 in cosine where nothing is clipped and nothing where it is.
LARGEST_WEIGHT = 63
# A row of the vocabulary is only ever scaled back, never multiplied: it can use all of its eight bits.
LARGEST_WORD = 127
# Gelu came with operator set 20, which onnxruntime reads from 1.17 on; 9 is the file format of that time.
OPERATORS = 20
FILE_FORMAT = 9


def expected_shapes() -> dict[str, tuple[int, ...]]:
    """Every tensor the graph is made of, as the weights name it."""
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (VOCABULARY, WIDTH),
        "embeddings.position_embeddings.weight": (512, WIDTH),
        "embeddings.token_type_embeddings.weight": (2, WIDTH),
    }
    dense = {
        "attention.self.query": (WIDTH, WIDTH),
        "attention.self.key": (WIDTH, WIDTH),
        "attention.self.value": (WIDTH, WIDTH),
        "attention.output.dense": (WIDTH, WIDTH),
        "intermediate.dense": (INNER, WIDTH),
        "output.dense": (WIDTH, INNER),
    }
    norms = ["embeddings.LayerNorm"]
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}."
        norms += [f"{at}attention.output.LayerNorm", f"{at}output.LayerNorm"]
        for name, shape in dense.items():
            shapes |= {f"{at}{name}.weight": shape, f"{at}{name}.bias": shape[:1]}
    for name in norms:
        shapes |= {f"{name}.weight": (WIDTH,), f"{name}.bias": (WIDTH,)}
    return shapes


def build_graph(weights: Mapping[str, Array], *, quantised: bool) -> bytes:
    """The graph as a file's content: `ids` (tokens) to `vector` (384)."""
    import numpy as np

    for name, shape in expected_shapes().items():
        found = weights.get(name)
        if found is None or found.shape != shape:
            what = "is missing" if found is None else f"is {found.shape}, not {shape}"
            raise WeightsRefused(f"these are not the weights of all-MiniLM-L6-v2: {name} {what}")
        if not np.isfinite(found).all():
            raise WeightsRefused(f"{name} holds numbers that are not finite")
    return _Graph(weights, quantised).build()


class _Graph:
    """A graph that is being written, node by node."""

    def __init__(self, weights: Mapping[str, Array], quantised: bool) -> None:
        self.weights = weights
        self.quantised = quantised
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}

    def build(self) -> bytes:
        from onnx import TensorProto, helper

        state = self.norm(self.embedded(), "embeddings.LayerNorm")
        for layer in range(LAYERS):
            at = f"encoder.layer.{layer}."
            mixed = self.dense(self.attended(state, at), f"{at}attention.output.dense")
            state = self.norm(self.add("Add", mixed, state), f"{at}attention.output.LayerNorm")
            inner = self.add("Gelu", self.dense(state, f"{at}intermediate.dense"))
            state = self.norm(self.add("Add", self.dense(inner, f"{at}output.dense"), state), f"{at}output.LayerNorm")
        # Of the mean only its direction is left, which is that of the sum.
        total = self.add("ReduceSum", state, self.whole("rows", [0]), keepdims=0)
        self.nodes.append(helper.make_node("LpNormalization", [total], ["vector"], axis=-1, p=2))
        ids = helper.make_tensor_value_info("ids", TensorProto.INT64, ["tokens"])
        vector = helper.make_tensor_value_info("vector", TensorProto.FLOAT, [WIDTH])
        graph = helper.make_graph(self.nodes, "all-MiniLM-L6-v2", [ids], [vector], list(self.constants.values()))
        operators = [helper.make_opsetid("", OPERATORS)]
        model = helper.make_model(graph, opset_imports=operators, ir_version=FILE_FORMAT, producer_name="turnout")
        content: bytes = model.SerializeToString(deterministic=True)
        return content

    def embedded(self) -> str:
        """Each token's own vector, and its position's."""
        import numpy as np
        from onnx import TensorProto

        words = np.asarray(self.weights["embeddings.word_embeddings.weight"])
        if self.quantised:
            scale = _scales(words, LARGEST_WORD, axis=1)
            rows = self.add("Gather", self.constant("words", _rounded(words, scale, LARGEST_WORD)), "ids")
            scales = self.add("Gather", self.constant("word_scales", scale), "ids")
            found = self.add("Mul", self.add("Cast", rows, to=TensorProto.FLOAT), scales)
        else:
            found = self.add("Gather", self.constant("words", words), "ids")
        # There is one sentence, so all tokens are of the first type.
        positions = self.weights["embeddings.position_embeddings.weight"][:POSITIONS]
        positions = positions + self.weights["embeddings.token_type_embeddings.weight"][0]
        start = self.whole("start", [0])
        return self.add(
            "Add", found, self.add("Slice", self.constant("positions", positions), start, self.add("Shape", "ids"))
        )

    def attended(self, state: str, at: str) -> str:
        """What every token takes from all others, head by head."""
        import numpy as np

        names = [f"{at}attention.self.{part}" for part in ("query", "key", "value")]
        # Attention divides by the root of a head's width; the query's weights can do that beforehand.
        factors = [np.float32(1 / math.sqrt(WIDTH / HEADS)), np.float32(1), np.float32(1)]
        weight = np.concatenate(
            [self.weights[f"{name}.weight"] * factor for name, factor in zip(names, factors, strict=True)]
        )
        bias = np.concatenate(
            [self.weights[f"{name}.bias"] * factor for name, factor in zip(names, factors, strict=True)]
        )
        every = self.product(state, weight, bias, f"{at}attention.self")
        heads = self.add("Reshape", every, self.whole("heads", [0, 3, HEADS, WIDTH // HEADS]))
        # Three of (head, token, number), side by side.
        sides = self.add("Transpose", heads, perm=[1, 2, 0, 3])
        query, key, value = (self.add("Gather", sides, self.whole(f"side_{n}", n), axis=0) for n in range(3))
        likeness = self.add("MatMul", query, self.add("Transpose", key, perm=[0, 2, 1]))
        taken = self.add("MatMul", self.add("Softmax", likeness, axis=-1), value)
        return self.add("Reshape", self.add("Transpose", taken, perm=[1, 0, 2]), self.whole("joined", [0, WIDTH]))

    def dense(self, state: str, name: str) -> str:
        return self.product(state, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"], name)

    def product(self, state: str, weight: Array, bias: Array, name: str) -> str:
        """`state @ weight.T + bias`; quantised, each output has a scale of its own."""
        import numpy as np
        from onnx import TensorProto

        turned = np.ascontiguousarray(weight.T)
        if self.quantised:
            scale = _scales(turned, LARGEST_WEIGHT, axis=0)[0]
            small = self.constant(f"{name}.weight", _rounded(turned, scale, LARGEST_WEIGHT))
            levels, step, zero = self.add_all("DynamicQuantizeLinear", [state], 3)
            # In this order onnxruntime knows the five nodes for one and runs them as one.
            summed = self.add("Cast", self.add("MatMulInteger", levels, small, zero), to=TensorProto.FLOAT)
            result = self.add("Mul", summed, self.add("Mul", step, self.constant(f"{name}.scale", scale)))
        else:
            result = self.add("MatMul", state, self.constant(f"{name}.weight", turned))
        return self.add("Add", result, self.constant(f"{name}.bias", bias))

    def norm(self, state: str, name: str) -> str:
        gain, bias = (self.constant(f"{name}.{part}", self.weights[f"{name}.{part}"]) for part in ("weight", "bias"))
        return self.add("LayerNormalization", state, gain, bias, axis=-1, epsilon=EPSILON)

    def constant(self, name: str, value: Array) -> str:
        import numpy as np
        from onnx import numpy_helper

        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(np.asarray(value), name)
        return name

    def whole(self, name: str, value: int | list[int]) -> str:
        import numpy as np

        return self.constant(name, np.asarray(value, np.int64))

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        return self.add_all(operator, list(inputs), 1, **attributes)[0]

    def add_all(self, operator: str, inputs: list[str], count: int, **attributes: Any) -> list[str]:
        from onnx import helper

        outputs = [f"{operator}_{len(self.nodes)}_{number}" for number in range(count)]
        self.nodes.append(helper.make_node(operator, inputs, outputs, **attributes))
        return outputs


def _scales(weight: Array, largest: int, axis: int) -> Array:
    """What one step is worth, along the other axis; a row of zeros keeps a step of one."""
    import numpy as np

    highest = np.abs(weight).max(axis=axis, keepdims=True)
    return np.where(highest > 0, highest / np.float32(largest), np.float32(1)).astype(np.float32)


def _rounded(weight: Array, scale: Array, largest: int) -> Array:
    import numpy as np

    return np.clip(np.rint(weight / scale), -largest, largest).astype(np.int8)
