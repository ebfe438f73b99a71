"""A student that is kept nowhere yet, in its place: what it says, and what the whole profile decides with it.

It is written and read back as one that serves would be, so that what is judged is what will be asked.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path as File
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from turnout.config.document import Document
from turnout.config.resolve import build
from turnout.core.embed import Embeds
from turnout.core.profile import Profile
from turnout.core.query import Query
from turnout.core.router import Router
from turnout.layers.student_model import EMBEDDED_CHARACTERS
from turnout.layers.term_head import Terms

from .contest import asker
from .dataset import JOIN, OUT_OF_SCOPE, Example, in_order, row_key
from .fit import StudentFit
from .registry import write_artefact


class HeldAnswer(Struct, frozen=True, array_like=True):
    """What was said of a row that had not been learnt from yet."""

    label: str | None
    """The student's; None where it passed."""
    confidence: float
    margin: float
    decided: str
    """The whole profile's, with the student in its place."""
    fallback: bool
    """Whether the fallback decided."""

    def is_right(self, label: str) -> bool:
        """Whether the whole profile was. The fallback is where a question for no route belongs."""
        return self.fallback if label == OUT_OF_SCOPE else in_order(self.decided) == in_order(label)


class RememberedVectors(Struct, frozen=True):
    """An embedder that has been asked already: a row is embedded once, however often it is judged."""

    name: str
    width: int
    vectors: Mapping[str, Any]
    asked: Embeds
    """Who knows the others, such as parts of a question."""

    def embed(self, texts: Sequence[str], /) -> Any:
        import numpy as np

        return np.stack(
            [self.vectors[text] if text in self.vectors else self.asked.embed((text,))[0] for text in texts]
        )


def remember(
    embedder: Embeds | None, profile: Profile, rows: Sequence[Example], fitted: StudentFit
) -> RememberedVectors | None:
    """The vectors of these rows, each text as the student will be asked about it."""
    if embedder is None:
        return None
    terms = fitted.draft.terms or Terms()
    read = (terms.cut(profile.read(Query(row.text)).folded)[:EMBEDDED_CHARACTERS] for row in rows)
    folded = list(dict.fromkeys(read))
    vectors = dict(zip(folded, embedder.embed(folded), strict=True)) if folded else {}
    # A server's embedder knows its width once it has answered, so this comes last.
    return RememberedVectors(embedder.name, embedder.width, vectors, embedder)


def serve_fit(
    fitted: StudentFit,
    tree: Mapping[str, Any],
    layer: str,
    embedder: Embeds | None = None,
    beside: File | None = None,
) -> Profile:
    """The resolved profile with this student in a layer's place. Relative paths in it start from `beside`."""
    with tempfile.TemporaryDirectory(prefix="turnout-fit-") as made:
        folder, name = File(made), str(tree["name"])
        write_artefact(folder, replace(fitted.draft, profile=name, layer=layer), fitted.arrays)
        return build(Document(dict(tree), {}, name), embedder=embedder, beside=beside, students={layer: folder})


def ask_served(
    fitted: StudentFit,
    profile: Profile,
    layer: str,
    rows: Sequence[Example],
    embedder: Embeds | None = None,
    beside: File | None = None,
) -> dict[str, HeldAnswer]:
    """For the key of each row what the student says of it, and what the profile decides with it in its place."""
    if not rows:
        return {}
    router = Router(serve_fit(fitted, profile.resolved, layer, embedder, beside))
    ask = asker(router, layer)
    found = {}
    for row in rows:
        said, decision = ask(row.text), router.route_sync(Query(row.text))
        found[row_key(row)] = HeldAnswer(
            said.routes[0] if said is not None else None,
            said.confidence if said is not None else 0.0,
            said.margin if said is not None else 0.0,
            JOIN.join(decision.routes),
            decision.outcome.startswith("F"),
        )
    return found


def measure_served(rows: Sequence[Example], answers: Mapping[str, HeldAnswer]) -> dict[str, float]:
    """How often the whole profile is right, its fallback included; how often the fallback decides; and how often always
    saying the most frequent label would be right."""
    if not rows:
        return {}
    found = [(answers[row_key(row)], row.label) for row in rows]
    most = Counter(row.label for row in rows).most_common(1)[0][1]
    count = len(rows)
    return {
        "rows": float(count),
        "accuracy": sum(one.is_right(label) for one, label in found) / count,
        "fallback": sum(one.fallback for one, _ in found) / count,
        "majority": most / count,
    }
