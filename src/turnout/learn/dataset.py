"""Labelled examples to train on, each with who labelled it.

Rows come from files (JSONL, CSV, Parquet, the output of `turnout export`) and from the decision log. Every row is used,
skipped and counted for a reason the user cannot change (no label, no text kept, another profile), or reported as a
mistake. All mistakes of all files are reported at once.
"""

from __future__ import annotations

import datetime
import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path as File
from typing import Any, Literal, get_args

from msgspec import Struct

from turnout.config.name import current_name
from turnout.core.errors import BadExamples, suggest
from turnout.core.profile import Profile
from turnout.core.query import MAX_CHARACTERS
from turnout.store import Records, TimeSpan
from turnout.store.redact import SNIPPET_CHARACTERS
from turnout.store.stats import ALWAYS
from turnout.store.store import StoreReader
from turnout.text.fold import fold

from .rows import QUOTED, SHOWN, BadRow, quote, read_file

By = Literal["human", "seed", "teacher", "outcome"]
"""Who gave a label, the most trusted first. A seed is written by people, but comes from no traffic."""
BELIEVED: tuple[By, ...] = get_args(By)
# T-RT-7 of the threat model: a label by a model, or one guessed from what happened later, counts at most half of a
# person's.
WEIGHTS: Mapping[By, float] = {"human": 1.0, "seed": 1.0, "teacher": 0.5, "outcome": 0.5}

OUT_OF_SCOPE = "oos"
"""The label of a question for none of the routes; it teaches a student when not to answer."""

JOIN = " + "
"""Separates several routes in an answer or a label."""

_TEXTS = ("text", "label", "label_by", "human", "human_by", "teacher", "session", "tenant", "profile", "created_at")


class Example(Struct, frozen=True):
    """A question and its label."""

    text: str
    label: str
    by: By = "human"
    session: str | None = None
    tenant: str = ""
    who: str = ""
    """The person who labelled it, if known."""
    at: int = 0
    """When it was asked, in milliseconds since 1970; 0 if unknown."""
    weight: float = 1.0
    id: str = ""
    where: str = ""
    """`labels.jsonl:7`"""
    count: int = 1
    """How many rows it stands for after duplicates are collapsed."""

    @property
    def belief(self) -> int:
        """The rank of its labeller: 0 is trusted most."""
        return BELIEVED.index(self.by)


class Examples(Struct, frozen=True):
    """Usable rows, remarks for the user, and how many rows were skipped for which reason."""

    rows: tuple[Example, ...] = ()
    remarks: tuple[str, ...] = ()
    skipped: Mapping[str, int] = {}

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def texts(self) -> list[str]:
        return [row.text for row in self.rows]

    @property
    def labels(self) -> list[str]:
        return [row.label for row in self.rows]

    def counts(self) -> dict[str, int]:
        """Rows by label, sorted by name."""
        return dict(sorted(Counter(row.label for row in self.rows).items()))

    def by(self) -> dict[str, int]:
        """Rows by who labelled them, the most trusted first."""
        counts = Counter(row.by for row in self.rows)
        return {by: counts[by] for by in BELIEVED if counts[by]}


def folded(text: str) -> str:
    """The text as rows are compared: folded, with every run of white space as one space."""
    return " ".join(fold(text).text.split())


def hash_text(text: str) -> bytes:
    """Eight bytes that depend on the text alone, the same on every machine."""
    return hashlib.blake2b(text.encode(errors="replace"), digest_size=8).digest()


def row_key(row: Example) -> str:
    """A key of 64 bits: the same question with the same label has the same key."""
    return hash_text(f"{folded(row.text)}\0{row.label}").hex()


def in_order(label: str) -> str:
    """The label with its routes sorted: several routes are the same answer in any order."""
    return JOIN.join(sorted(label.split(JOIN)))


def hash_examples(rows: Iterable[Example]) -> str:
    """A hash of texts, labels, labellers and weights; the order of the rows does not matter."""
    each = sorted(
        hashlib.blake2b(f"{row_key(row)}\0{row.by}\0{row.weight!r}".encode(), digest_size=16).digest() for row in rows
    )
    return hashlib.sha256(b"".join(each)).hexdigest()


# --- reading


def read_examples(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    routes: Sequence[str] | None = None,
    profile: str | None = None,
    by: By = "human",
    text: str = "text",
    label: str = "label",
) -> Examples:
    """The examples of one file or several; raises BadExamples with every mistake in them.

    `routes` are the allowed labels, None for any. Rows of `turnout export` from a profile other than `profile` are
    skipped. `by` is the labeller of rows that name none. `text` and `label` are the names of their columns.
    """
    files = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    collector = _Collector(routes, profile, by)
    form = f'{{"{text}": "…", "{label}": "…"}}'

    def take(where: str, row: Mapping[str, Any]) -> None:
        for name in (text, label):
            if name not in row:
                near = suggest(name, row) or f" (it has: {', '.join(map(str, list(row)[:8])) or 'none'})"
                raise BadRow(f"no field {name!r}{near}")
        collector.take(where, {**row, "text": row[text], "label": row[label]})

    problems = [
        problem
        for path in map(File, files)
        for problem in read_file(path, (text, label), take, form, (*_TEXTS, "id", text, label))
    ]
    if problems:
        raise BadExamples(problems, SHOWN)
    return collector.examples()


def read_seeds(profile: str, routes: Sequence[str] | None = None) -> Examples:
    """The examples that ship with a profile; empty if there are none."""
    if not profile.replace("-", "").isalnum():  # a path, say; no shipped profile has such a name
        return Examples()
    path = File(str(resources.files("turnout.profiles"))) / "seeds" / f"{profile}.jsonl"
    return read_examples(path, routes=routes, by="seed") if path.is_file() else Examples()


def read_log(
    records: Records, *, profile: str, routes: Sequence[str] | None = None, span: TimeSpan = ALWAYS
) -> Examples:
    """The labelled decisions of one tenant's log. Unusable rows count as skipped, since a log cannot be edited."""
    collector = _Collector(routes, profile, "teacher")
    for label in records.labels(span=span, profile=profile):
        row: dict[str, Any] = {name: getattr(label, name) for name in ("text", "human", "human_by", "teacher")}
        row |= {"id": label.id, "label": label.label, "session": label.session, "tenant": records.tenant}
        collector.seen += 1
        # A snippet of the maximum length is most likely cut.
        if label.kept == "snippet" and label.text is not None and len(label.text) >= SNIPPET_CHARACTERS:
            collector.skipped["only the beginning of the text was kept"] += 1
        elif label.label is not None and routes is not None and label.label not in routes:
            collector.skipped[f"the label {label.label[:QUOTED]!r} is not a route of {profile!r} any more"] += 1
        else:
            try:
                collector.keep(f"log {label.id}", row, label.created_ms)
            except BadRow as wrong:
                collector.skipped[str(wrong)] += 1
    return collector.examples()


def read_for(
    profile: Profile, files: Sequence[str], *, seeds: bool = True, text: str = "text", label: str = "label"
) -> Examples:
    """The training rows of a profile: these files, and its own seeds or, if they fit its routes, those of the profile
    it extends."""
    own = read_examples(files, routes=profile.routes, profile=profile.name, text=text, label=label)
    for name in (profile.name, profile.resolved.get("extends")) if seeds else ():
        found = read_seeds(current_name(name)) if isinstance(name, str) else Examples()
        if found.rows and {*found.labels} <= {*profile.routes, OUT_OF_SCOPE}:
            return gather(found, own)
    return own


def read_logs(store: StoreReader, profile: Profile, *, tenant: str | None = None, span: TimeSpan = ALWAYS) -> Examples:
    """The labelled decisions of one tenant's log, or of all tenants."""
    names = [tenant] if tenant is not None else store.tenants()
    logs = [read_log(store.records(name), profile=profile.name, routes=profile.routes, span=span) for name in names]
    return gather(*logs)


def gather(*sources: Examples) -> Examples:
    """Several sets of examples as one."""
    skipped: Counter[str] = Counter()
    for source in sources:
        skipped.update(source.skipped)
    rows = tuple(row for source in sources for row in source.rows)
    return Examples(rows, tuple(dict.fromkeys(remark for source in sources for remark in source.remarks)), skipped)


class _Collector:
    """The rows read so far, and the counts for the remarks."""

    def __init__(self, routes: Sequence[str] | None, profile: str | None, by: By) -> None:
        self.routes, self.profile, self.by = routes, profile, by
        self.rows: list[Example] = []
        self.skipped: Counter[str] = Counter()
        self.seen = 0
        # Rows that both a person and a model have labelled, and those where they agree.
        self.both = self.agreed = 0

    def take(self, where: str, row: Mapping[str, Any]) -> None:
        self.seen += 1
        self.keep(where, row, _milliseconds(row.get("created_at")))

    def keep(self, where: str, row: Mapping[str, Any], at: int) -> None:
        for name in _TEXTS:
            if not isinstance(value := row.get(name), str | None):
                raise BadRow(f"{name!r} must be text, found {type(value).__name__} {quote(value)}")
        if self.profile is not None and current_name(row.get("profile") or self.profile) != self.profile:
            self.skipped["of another profile"] += 1
            return
        label, human, teacher = (row.get(name) or None for name in ("label", "human", "teacher"))
        if label is None:
            # A row of an export may have no label; in a hand-written file that is a mistake.
            if not row.keys() & {"label_by", "human", "teacher"}:
                raise BadRow("the label is empty: name a route, or take the row out")
            self.skipped["it has no label"] += 1
            return
        by = _labeller(row, label, self.by)
        if row["text"] is None:
            self.skipped["its text was not kept"] += 1
            return
        text: str = row["text"]
        if not text.strip():
            raise BadRow("the text is empty")
        if len(text) > MAX_CHARACTERS:
            raise BadRow(f"the text has {len(text):,} characters, at most {MAX_CHARACTERS:,} are routed")
        if self.routes is not None and label not in (*self.routes, OUT_OF_SCOPE):
            near = (
                suggest(label, self.routes) or f" (routes: {', '.join(self.routes)}; {OUT_OF_SCOPE} for none of them)"
            )
            raise BadRow(f"{quote(label)} is not a route{near}")
        if human is not None and teacher is not None:
            self.both += 1
            self.agreed += human == teacher
        self.rows.append(
            Example(
                text=text,
                label=label,
                by=by,
                session=row.get("session") or None,
                tenant=row.get("tenant") or "",
                who=(row.get("human_by") or "") if by == "human" else "",
                at=at,
                weight=WEIGHTS[by],
                id=str(row.get("id") or ""),
                where=where,
            )
        )

    def examples(self) -> Examples:
        remarks = [f"{count:,} of {self.seen:,} rows skipped: {why}" for why, count in self.skipped.most_common()]
        if self.skipped["its text was not kept"]:
            remarks.append('text = "full" in [store] of turnout.toml keeps it from now on')
        if self.both:
            remarks.append(f"teacher and human agree on {self.agreed:,} of {self.both:,} rows that both have labelled")
        return Examples(tuple(self.rows), tuple(remarks), self.skipped)


def _labeller(row: Mapping[str, Any], label: str, default: By) -> By:
    by: By | None = row.get("label_by") or None
    if by is None and (row.get("human") or row.get("teacher")):
        return "human" if row.get("human") == label else "teacher"
    if by is not None and by not in BELIEVED:
        raise BadRow(f"label_by {quote(by)}{suggest(by, BELIEVED)}: it may be {', '.join(BELIEVED)}")
    return by or default


def _milliseconds(created_at: object) -> int:
    if not isinstance(created_at, str) or not created_at:
        return 0
    try:
        when = datetime.datetime.fromisoformat(created_at)
        return int(when.replace(tzinfo=when.tzinfo or datetime.UTC).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise BadRow(f"created_at {quote(created_at)} is not a time such as 2026-11-01T08:30:00Z") from None
