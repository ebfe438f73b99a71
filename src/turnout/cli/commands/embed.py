"""`turnout embed`: install, show and try the sentence embedder of this machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path as File
from typing import Annotated

import msgspec
from cyclopts import App, Parameter
from rich.filesize import decimal

from turnout.core.errors import EmbedderError, QueryError
from turnout.models.embed import (
    BUILD,
    TOKENS,
    MiniLM,
    embedder_folder,
    find_embedder,
    install,
    missing_packages,
    read_manifest,
)

from ..app import examples_of
from ..draw.screen import as_typed_here, console, visible, write_json
from ..option import FolderOption, JsonOption, TextArgument, clean
from ..question import read_text

app = App(name="embed", help_epilogue=examples_of("embed"))

# Twenty texts of about twelve tokens, like questions.
TEXTS = tuple(f"How do I change the {thing} of my account?" for thing in (
    "password", "address", "name", "language", "owner", "limit", "plan", "colour", "number", "currency",
    "picture", "country", "time zone", "size", "type", "status", "region", "price", "key", "model",
))  # fmt: skip
NOT_INSTALLED = "No embedder is installed: turnout-build-minilm"


@app.default
@app.command(name="list")
def list_embedders(*, json: JsonOption = False) -> None:
    """Show what is installed: name, size, hash, and how long a question takes on one thread."""
    folder = embedder_folder()
    manifest = read_manifest(folder)
    missing = missing_packages()
    if manifest is None:
        write_json([]) if json else console().say(as_typed_here(NOT_INSTALLED))
        return
    embedder = MiniLM(folder, manifest)
    p50_ms = None if missing else _measure(embedder)
    if json:
        row = msgspec.to_builtins(manifest) | {"folder": str(folder), "missing": missing, "p50_ms": p50_ms}
        write_json([row])
        return
    console().facts(_facts(embedder, p50_ms))
    if missing:
        console().say((f"It cannot run without {', '.join(missing)}: pip install 'turnout[embed]'", "yellow"))


def _measure(embedder: MiniLM) -> float:
    """The median time of a question in milliseconds, without loading the model."""
    from statistics import median

    embedder.embed(TEXTS[:3])
    times = []
    for text in TEXTS:
        started = time.perf_counter()
        embedder.embed([text])
        times.append(time.perf_counter() - started)
    return round(1000 * median(times), 2)


def _facts(embedder: MiniLM, p50_ms: float | None) -> Iterator[tuple[str, str]]:
    manifest = embedder.manifest
    yield "name", embedder.name
    yield "vectors", f"{embedder.width} numbers, of the first {TOKENS} tokens of a text"
    yield "size", decimal(manifest.graph.size_bytes + manifest.tokenizer.size_bytes)
    yield "sha256", manifest.graph.sha256
    yield "closeness", f"cosine {manifest.lowest_cosine:g} or more to the weights in float32"
    yield "made from", f"{manifest.source} ({manifest.weights_sha256[:16]}) on {manifest.built[:10]}"
    yield "folder", str(embedder.folder)
    yield "a question", "not measured" if p50_ms is None else f"{p50_ms:g} ms (median of {len(TEXTS)})"


@app.command(name="install")
def install_embedder(
    *,
    source: Annotated[
        FolderOption,
        Parameter(name="--from", help="The folder of an embedder that was built, here or on another machine."),
    ] = None,
    trust: Annotated[bool, Parameter(help="Accept one that was not built from the published weights.")] = False,
    json: JsonOption = False,
) -> None:
    """Install an embedder that was built before: its files are checked and copied.

    turnout-build-minilm builds it from its weights and installs it; some seconds, no network.
    """
    if source is None:
        raise EmbedderError(f"{BUILD}; --from FOLDER takes one that was built on another machine")
    folder = File(source).expanduser()
    if not folder.is_dir():
        raise EmbedderError(f"--from {source}: there is no such folder")
    embedder = install(folder, trust=trust)
    manifest = embedder.manifest
    if json:
        write_json(msgspec.to_builtins(manifest) | {"folder": str(embedder.folder)})
        return
    size = decimal(manifest.graph.size_bytes + manifest.tokenizer.size_bytes)
    screen = console()
    screen.say(f"{manifest.name} is installed: {size} in {visible(str(embedder.folder))}")
    screen.say(f"Checked: cosine {manifest.lowest_cosine:g} or more to the weights in float32.")


@app.command(name="text")
def embed_text(
    text: TextArgument = None,
    /,
    *others: Annotated[str, Parameter(help="Texts to compare it with.")],
    json: JsonOption = False,
) -> None:
    """Embed a text, and show how similar others are to it: 1 is the same direction, 0 has nothing in common."""
    question = read_text(text)
    embedder = find_embedder()
    if embedder is None:
        missing = missing_packages()
        needs = f"the embedder needs {', '.join(missing)}: pip install 'turnout[embed]'"
        raise EmbedderError(needs if missing else NOT_INSTALLED)
    others = tuple(map(clean, others))
    vectors = embedder.embed([question, *others])
    if not vectors[0].any():
        raise QueryError("a blank text has no direction: give it a word")
    cosines = [(other, float(vectors[0] @ vector)) for other, vector in zip(others, vectors[1:], strict=True)]
    if json:
        near = [{"text": other, "cosine": cosine} for other, cosine in cosines]
        write_json({"embedder": embedder.name, "vector": vectors[0].tolist(), "near": near})
        return
    screen = console()
    if not others:
        shown = ", ".join(f"{number:.4f}" for number in vectors[0][:6])
        screen.say(f"{embedder.name}: {embedder.width} numbers, {shown}, …")
    for other, cosine in sorted(cosines, key=lambda pair: -pair[1]):
        screen.say(f"{cosine:6.3f}  {visible(other)}")
