"""From a merged document to a profile that can decide: check it, build its layers, compile its one matcher, hash it."""

from __future__ import annotations

import functools
import hashlib
import threading
from collections.abc import Callable, Mapping
from pathlib import Path as File
from typing import Any

import msgspec
from msgspec.structs import replace

from turnout import layers as _builtin_layers  # noqa: F401 - importing it registers the kinds that ship with Turnout
from turnout.core.embed import Embeds
from turnout.core.errors import ConfigError
from turnout.core.layer import Layer
from turnout.core.model import Asks
from turnout.core.profile import Part, PatternSource, PlacedLayer, Profile
from turnout.core.query import Query, Reading
from turnout.core.registry import Supplies, broken, kinds
from turnout.core.verdict import Verdict, check_verdict, contain
from turnout.text.match import Lexicon, Matcher
from turnout.text.plan import planner
from turnout.text.read import reader

from .champion import FIELD, find_model
from .check import Checker, layer_id, own_keys
from .document import Document, Tree
from .model import NOT_HASHED, LayerHead, ProfileFile, SplitConfig

# Hex digits of SHA-256 that identify a profile: 64 bits tell versions apart and are short enough to read.
HASH_DIGITS = 16
# The default for network layers; local layers are not timed out, only measured.
NETWORK_DEADLINE_MS = 350.0


# msgspec inspects a type on first use, and two threads that do so at once can crash the process.
_one_at_a_time = threading.Lock()


def build(
    document: Document,
    remarks: tuple[str, ...] = (),
    models: Asks | None = None,
    embedder: Embeds | None = None,
    beside: File | None = None,
    students: Mapping[str, File] | None = None,
    notices: tuple[str, ...] = (),
) -> Profile:
    """The profile; raises a ConfigError with every mistake in it.

    `models` asks language models and `embedder` makes vectors; without them, layers that need them pass. Relative paths
    in the profile start from the folder `beside`. `students` are folders of trained models to serve instead of the
    layers' own.
    """
    with _one_at_a_time:
        problems = Checker(document).problems()
        if problems:
            raise ConfigError(problems)
        file = msgspec.convert(document.tree, ProfileFile)
        lexicon = Lexicon()
        supplies = Supplies(file.routes, lexicon, models, profile=file.name, beside=beside, embedder=embedder)
        tree = _without_models(document.tree, students or {})
        placed = tuple(_place(entry, _find_students(supplies, tree, entry, students or {})) for entry in tree["layers"])
        tree = _name_models(tree, placed)
        adjust = tuple(_construct(entry, supplies) for entry in file.adjust)
        wrap = file.text.fold == "unicode"
        matcher = lexicon.compile(wrap=wrap)
        read = reader(matcher, fold_name=file.text.fold, unwrap=file.text.unwrap, inherit=file.text.inherit)
        built = [place.call for place in placed if place.call is not None]
        missing = tuple(
            f"layer {place.id!r} passes: " + (place.absent or f"no installed package provides {place.kind}")
            for place in placed
            if place.call is None
        )
        return Profile(
            name=file.name,
            hash=digest(tree),
            description=file.description,
            routes=file.routes,
            layers=placed,
            policies=file.policy,
            fallback=file.fallback,
            read=read,
            mute=lexicon.mute,
            off=None if file.enabled else file.off,
            blank=file.blank,
            ordered=file.ordered,
            deadline_ms=file.deadline_ms,
            contract=file.contract,
            adjust=adjust,
            split=_split(file.split, matcher, lexicon, placed, file.routes, read),
            declared=tuple(layer.validate for layer in built if layer.judges_by == "declared"),
            undeclared=frozenset(name for layer in built for name in layer.undeclared),
            remarks=remarks
            + missing
            + tuple(f"plug-in {name!r} was not imported: {why}" for name, why in broken().items()),
            notices=notices,
            resolved=tree,
            patterns=tuple(
                PatternSource(code, pattern.kind, source)
                for code, pattern, source in zip(lexicon.codes, lexicon.patterns, matcher.sources, strict=True)
            ),
            encoded_policies={route: msgspec.Raw(msgspec.json.encode(policy)) for route, policy in file.policy.items()},
        )


def _split(
    config: SplitConfig | None,
    matcher: Matcher,
    lexicon: Lexicon,
    placed: tuple[PlacedLayer, ...],
    routes: tuple[str, ...],
    read: Callable[[Query], Reading],
) -> Callable[[Reading], tuple[Part, ...]] | None:
    if config is None:
        return None
    keywords = frozenset(i for i, code in enumerate(lexicon.codes) if code.startswith("keyword."))
    # Splitting must not wait for a server.
    local = [
        (place.call, place.gate)
        for place in placed
        if place.call is not None and place.cost != "network" and not place.call.awaits and place.needs is None
    ]

    def knows(text: str) -> bool:
        reading = read(Query(text))
        answers = ((gate, check_verdict(contain(call, reading), routes)) for call, gate in local)
        return any(isinstance(answer, Verdict) and gate.admits(answer) for gate, answer in answers)

    return planner(matcher, triggering=keywords, compound=config.compound, conditions=config.conditions, knows=knows)


def digest(tree: Tree) -> str:
    """A hash of everything in a resolved profile that can change a decision."""
    hashed = {key: value for key, value in tree.items() if key not in NOT_HASHED}
    return hashlib.sha256(msgspec.json.encode(hashed, order="sorted")).hexdigest()[:HASH_DIGITS]


def _without_models(tree: Tree, layers: Mapping[str, File]) -> Tree:
    """The tree without the trained models that it names for these layers."""
    if not layers:
        return tree
    named = ("model", FIELD)
    return {
        **tree,
        "layers": [
            {key: value for key, value in entry.items() if key not in named} if layer_id(entry) in layers else entry
            for entry in tree["layers"]
        ],
    }


def _find_students(supplies: Supplies, tree: Tree, entry: Any, students: Mapping[str, File]) -> Supplies:
    folder = students.get(layer := layer_id(entry))
    find = functools.partial(find_model, tree, layer) if folder is None else lambda _digest: folder
    return replace(supplies, find_student=find)


def _name_models(tree: Tree, placed: tuple[PlacedLayer, ...]) -> Tree:
    """The tree with the digest of every trained model that serves, so that its decisions can be reproduced."""
    served = {place.id: found for place in placed if place.call is not None and (found := place.call.artefact)}
    if not served:
        return tree
    layers = [{**entry, FIELD: served[at]} if (at := layer_id(entry)) in served else entry for entry in tree["layers"]]
    return {**tree, "layers": layers}


def _place(entry: Any, supplies: Supplies) -> PlacedLayer:
    head = msgspec.convert(entry, LayerHead, strict=False)
    kind = kinds().get(head.kind)
    deadline_ms = head.deadline_ms if head.deadline_ms is not None else NETWORK_DEADLINE_MS
    layer: Layer | None = None if kind is None else _construct(entry, replace(supplies, deadline_ms=deadline_ms))
    if kind is None or layer is None or layer.absent:
        absent = layer.absent if layer is not None else ""
        return PlacedLayer(
            layer_id(entry), head.kind, "free", "R", head.accept, deadline_ms, None, absent=absent, needs="install"
        )
    return PlacedLayer(
        id=layer_id(entry),
        kind=head.kind,
        cost=layer.cost or kind.cost,
        who=kind.who,
        gate=head.accept,
        deadline_ms=deadline_ms,
        call=layer,
        held_text=head.held_text,
        max_shift=head.max_shift,
        needs=layer.judges_by,
    )


def _construct(entry: Any, supplies: Supplies) -> Any:
    kind = kinds()[entry["kind"]]
    return kind.build(msgspec.convert(own_keys(entry), kind.config), supplies)
