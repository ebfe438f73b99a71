"""Makes a profile and its trained student from a table of labelled texts.

Nothing is written before the student is trained, and the champion changes last, so a failure on the way leaves
everything as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path as File
from typing import Any

import msgspec
from msgspec import Struct

from turnout.config.champion import SHIPPED, champion_digest
from turnout.config.check import Checker
from turnout.config.document import Document, from_source
from turnout.config.resolve import build
from turnout.config.starter import GATE, STUDENT, choose_fallback, student_profile
from turnout.core.embed import Embeds
from turnout.core.errors import ConfigError, QueryError, TooFewExamples, UnknownRoute
from turnout.core.policy import Policy
from turnout.core.router import Router
from turnout.text.file import write_bytes

from . import registry
from .dataset import OUT_OF_SCOPE, Example
from .fit import Say, fit
from .rows import quote
from .served import serve_fit
from .split import SHARE
from .stranger import find_strangers
from .table import LabelledTable
from .train import Training, train

# With fewer rows per label, sentence vectors help most. On Banking77, 130 rows for each of 77 labels reach 91.2 % by
# words and 94.3 % with vectors; 10 rows for each of 10 labels reach 89.2 % and 94.5 %.
FEW_ROWS = 100


class LearntProfile(Struct, frozen=True):
    """The profile and the student that were made from a table."""

    file: File
    table: LabelledTable
    fallback: str
    training: Training

    @property
    def wants_vectors(self) -> bool:
        """Whether there was no embedder although one would help a lot."""
        rows = len(self.table.examples.rows) / len(self.table.routes)
        return self.training.report.embedder is None and rows < FEW_ROWS


def begin(
    name: str,
    table: LabelledTable,
    file: File,
    *,
    fallback: str | None = None,
    embedder: Embeds | None = None,
    seed: int = 0,
    share: float = SHARE,
    who: str = "",
    say: Say = lambda _what, _done: None,
) -> LearntProfile:
    """Train a student for the labels of a table, write its profile and make it the champion."""
    _, fallback_route = choose_fallback(table.routes, fallback)
    text = student_profile(name, table.routes, fallback=fallback, source=File(table.file).name)
    serving = before = champion_digest(name, STUDENT)
    if before != SHIPPED:  # the profile cannot be built while a student for other routes is its champion
        registry.set_champion(name, STUDENT, SHIPPED, who=who, why="turnout init")
    try:
        profile = build(from_source(text, file.name))
        training = train(profile, table.examples, embedder=embedder, seed=seed, share=share, say=say)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(file, text.encode())
        serving = training.manifest.digest
    finally:
        registry.set_champion(name, STUDENT, serving, who=who, why=f"turnout init from {table.file}")
    return LearntProfile(file, table, fallback_route, training)


def own_champion(name: str) -> str | None:
    """The digest of the student that already serves a profile of this name; None if none does."""
    digest = champion_digest(name, STUDENT)
    return None if digest == SHIPPED else digest


# --- in memory


def learn_router(
    examples: Mapping[str, Sequence[str]],
    *,
    fallback: str | None = None,
    policies: Mapping[str, Policy | Mapping[str, object]] | None = None,
    embedder: Embeds | None = None,
    gate: float | None = None,
    name: str = "examples",
    seed: int = 0,
) -> Router:
    """A router trained on some texts of each route; nothing is kept on disk."""
    rows = list(_read_lists(examples))
    routes, fallback = choose_fallback([route for route in examples if route != OUT_OF_SCOPE], fallback)
    gate = GATE if gate is None else gate
    if not 0.0 <= gate <= 1.0:
        raise QueryError(f"gate {gate}: how sure it must be to be right, between 0 and 1")
    tree = from_source(student_profile(name, routes, fallback=fallback, gate=gate), f"{name}.toml").tree
    tree["policy"] |= _read_policies(policies or {}, routes)
    if problems := Checker(Document(tree, {}, f"{name}.toml")).problems():
        raise ConfigError(problems)
    try:
        labels = [route for route in routes if examples.get(route)]
        fitted = fit([*rows, *find_strangers(rows, fallback)], labels=labels, embedder=embedder, seed=seed)
    except TooFewExamples as error:
        # The rest of the message is advice for the command line.
        raise TooFewExamples(str(error).partition("; label more")[0]) from None
    return Router(serve_fit(fitted, tree, STUDENT, embedder))


def _read_lists(examples: Any) -> Iterator[Example]:
    """Texts by their route, as rows; raises QueryError for anything else."""
    if not isinstance(examples, Mapping):
        raise QueryError(f"examples must be texts by their route, {{'refund': ['…']}}, found {type(examples).__name__}")
    for route, texts in examples.items():
        if not isinstance(route, str) or not route.strip() or not route.isprintable():
            raise QueryError(f"{route!r} is not a name for a route")
        if isinstance(texts, str) or not isinstance(texts, Iterable):
            raise QueryError(f"the examples of {route!r} must be a list of texts, found {quote(texts)}")
        for text in texts:
            if not isinstance(text, str) or not text.strip():
                raise QueryError(f"an example of {route!r} must be a text, found {quote(text)}")
            yield Example(text, route)


def _read_policies(policies: Mapping[str, Policy | Mapping[str, object]], routes: Sequence[str]) -> dict[str, Any]:
    for route in policies:
        if route not in routes:
            raise UnknownRoute("policies", route, routes)
    return {
        route: {name: value for name, value in msgspec.to_builtins(policy).items() if value is not None}
        for route, policy in policies.items()
    }
