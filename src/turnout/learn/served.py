"""Asks a freshly fitted student, and the whole profile with it, about held-out rows.

The student is written to disk and read back as a serving one would be, so that exactly what will serve is judged.
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
    """The answer to a row before it was learnt from."""

    label: str | None
    """The student's answer; None if it passed."""
    confidence: float
    margin: float
    decided: str
    """The routes that the whole profile decides on, with this student."""
    fallback: bool
    """Whether the fallback decided."""

    def is_right(self, label: str) -> bool:
        """Whether the whole profile is right."""
        return matches(label, self.decided, self.fallback)


class RememberedVectors(Struct, frozen=True):
    """An embedder with known vectors: a row is embedded once, however often it is judged."""

    name: str
    width: int
    vectors: Mapping[str, Any]
    embedder: Embeds
    """Embeds all other texts, such as parts of a question."""

    def embed(self, texts: Sequence[str], /) -> Any:
        import numpy as np

        return np.stack(
            [self.vectors[text] if text in self.vectors else self.embedder.embed((text,))[0] for text in texts]
        )


def remember(
    embedder: Embeds | None, profile: Profile, rows: Sequence[Example], fitted: StudentFit
) -> RememberedVectors | None:
    """An embedder that knows the vectors of these rows, each text cut as the student cuts it."""
    if embedder is None:
        return None
    terms = fitted.draft.terms or Terms()
    read = (terms.cut(profile.read(Query(row.text)).folded)[:EMBEDDED_CHARACTERS] for row in rows)
    folded = list(dict.fromkeys(read))
    vectors = dict(zip(folded, embedder.embed(folded), strict=True)) if folded else {}
    # A remote embedder knows its width only after its first answer, so this comes last.
    return RememberedVectors(embedder.name, embedder.width, vectors, embedder)


def serve_fit(
    fitted: StudentFit,
    tree: Mapping[str, Any],
    layer: str,
    embedder: Embeds | None = None,
    beside: File | None = None,
) -> Profile:
    """The resolved profile with this student in a layer. Relative paths in it start from `beside`."""
    with tempfile.TemporaryDirectory(prefix="turnout-fit-") as path:
        folder, name = File(path), str(tree["name"])
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
    """By row key, the student's answer to each row and what the profile decides with it."""
    if not rows:
        return {}
    router = Router(serve_fit(fitted, profile.resolved, layer, embedder, beside))
    ask = asker(router, layer)
    answers = {}
    for row in rows:
        verdict = ask(row.text)
        label, confidence, margin = (
            (None, 0.0, 0.0) if verdict is None else (verdict.routes[0], verdict.confidence, verdict.margin)
        )
        answers[row_key(row)] = HeldAnswer(label, confidence, margin, *decide(router, row.text))
    return answers


def decide(router: Router, text: str) -> tuple[str, bool]:
    """The routes that a profile decides on, as a label is written, and whether the fallback decided."""
    decision = router.route_sync(Query(text))
    return JOIN.join(decision.routes), decision.outcome.startswith("F")


def matches(label: str, decided: str, fallback: bool) -> bool:
    """Whether a decision is right. An out-of-scope question belongs to the fallback."""
    return fallback if label == OUT_OF_SCOPE else in_order(decided) == in_order(label)


def measure_served(rows: Sequence[Example], answers: Mapping[str, HeldAnswer]) -> dict[str, float]:
    """How often the whole profile is right, how often the fallback decides, and how often the most frequent label would
    be right."""
    if not rows:
        return {}
    judged = [(answers[row_key(row)], row.label) for row in rows]
    most = Counter(row.label for row in rows).most_common(1)[0][1]
    count = len(rows)
    return {
        "rows": float(count),
        "accuracy": sum(answer.is_right(label) for answer, label in judged) / count,
        "fallback": sum(answer.fallback for answer, _ in judged) / count,
        "majority": most / count,
    }
