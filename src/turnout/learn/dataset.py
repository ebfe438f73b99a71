"""Examples to learn from: who says what a question is stays with the label, and no row is lost without a word.

Rows come from files (JSONL, CSV, Parquet, what `turnout export` wrote) and from the decision log itself. A row is used,
or skipped and counted for a reason the user can do nothing about (it has no label, its text was not kept, it is
another profile's), or reported as a mistake; all mistakes of all files at once.
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

from .rows import QUOTED, BadRow, quote, read_file

By = Literal["human", "seed", "teacher", "outcome"]
"""Who says so, the most believed first. A seed is written by people, but is not anyone's traffic."""
BELIEVED: tuple[By, ...] = get_args(By)
# T-RT-7 of the threat model: a model's label never counts more than half of a person's, nor does a guess from what
# happened afterwards.
WEIGHTS: Mapping[By, float] = {"human": 1.0, "seed": 1.0, "teacher": 0.5, "outcome": 0.5}

OUT_OF_SCOPE = "oos"
"""The label of a question that is for none of the routes; it teaches a student when not to answer."""

JOIN = " + "
"""Between the routes of an answer that has several; a label is written the same way."""

# What is shown of a long list of mistakes: about a screen.
SHOWN = 20
_TEXTS = ("text", "label", "label_by", "human", "human_by", "teacher", "session", "tenant", "profile", "created_at")


class Example(Struct, frozen=True):
    """A question and its label."""

    text: str
    label: str
    by: By = "human"
    session: str | None = None
    tenant: str = ""
    who: str = ""
    """The person who labelled it, where that is known."""
    at: int = 0
    """When it was asked, in milliseconds since 1970; 0 where that is unknown."""
    weight: float = 1.0
    id: str = ""
    where: str = ""
    """`labels.jsonl:7`"""
    count: int = 1
    """How many rows it stands for, once duplicates are collapsed."""

    @property
    def belief(self) -> int:
        """The rank of who labelled it: 0 is believed most."""
        return BELIEVED.index(self.by)


class Examples(Struct, frozen=True):
    """Rows that can be learnt from, and what became of the others."""

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
        """Rows by label, in the order of names."""
        return dict(sorted(Counter(row.label for row in self.rows).items()))

    def by(self) -> dict[str, int]:
        """Rows by who labelled them, the most believed first."""
        found = Counter(row.by for row in self.rows)
        return {by: found[by] for by in BELIEVED if found[by]}


def folded(text: str) -> str:
    """The text as two rows are compared by: folded, and every run of space one space."""
    return " ".join(fold(text).text.split())


def row_key(row: Example) -> str:
    """What an example says, in 64 bits: the same question with the same label has the same key."""
    return hashlib.blake2b(f"{folded(row.text)}\0{row.label}".encode(errors="replace"), digest_size=8).hexdigest()


def in_order(label: str) -> str:
    """Several routes are the same answer in any order."""
    return JOIN.join(sorted(label.split(JOIN)))


def hash_examples(rows: Iterable[Example]) -> str:
    """What these examples teach, whatever order they come in: text, label, who says so, how much it counts."""
    each = sorted(
        hashlib.blake2b(f"{row_key(row)}\0{row.by}\0{row.weight!r}".encode(), digest_size=16).digest() for row in rows
    )
    return hashlib.sha256(b"".join(each)).hexdigest()


# --- where rows come from


def read_examples(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    routes: Sequence[str] | None = None,
    profile: str | None = None,
    by: By = "human",
    text: str = "text",
    label: str = "label",
) -> Examples:
    """The examples of one file or several; raises BadExamples with every mistake of all of them.

    `routes` are the labels there may be, any if None. Rows of `turnout export` that are another profile's than
    `profile` are skipped. `by` is who labelled rows that do not say. `text` and `label` are the columns of these.
    """
    files = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    taken = _Collector(routes, profile, by)
    form = f'{{"{text}": "…", "{label}": "…"}}'

    def take(where: str, row: Mapping[str, Any]) -> None:
        for name in (text, label):
            if name not in row:
                near = suggest(name, row) or f" (it has: {', '.join(map(str, list(row)[:8])) or 'none'})"
                raise BadRow(f"no field {name!r}{near}")
        taken.take(where, {**row, "text": row[text], "label": row[label]})

    problems = [
        problem
        for path in map(File, files)
        for problem in read_file(path, (text, label), take, form, (*_TEXTS, "id", text, label))
    ]
    if problems:
        raise BadExamples(problems, SHOWN)
    return taken.examples()


def read_seeds(profile: str, routes: Sequence[str] | None = None) -> Examples:
    """The examples that come with a shipped profile; none for a profile that has none."""
    if not profile.replace("-", "").isalnum():  # a path, say: no shipped profile is called so
        return Examples()
    path = File(str(resources.files("turnout.profiles"))) / "seeds" / f"{profile}.jsonl"
    return read_examples(path, routes=routes, by="seed") if path.is_file() else Examples()


def read_log(
    records: Records, *, profile: str, routes: Sequence[str] | None = None, span: TimeSpan = ALWAYS
) -> Examples:
    """The labelled decisions of one tenant's log. What cannot be used is counted: no one corrects a log."""
    taken = _Collector(routes, profile, "teacher")
    for label in records.labels(span=span, profile=profile):
        row: dict[str, Any] = {name: getattr(label, name) for name in ("text", "human", "human_by", "teacher")}
        row |= {"id": label.id, "label": label.label, "session": label.session, "tenant": records.tenant}
        taken.seen += 1
        # A snippet that is as long as snippets get is most likely the beginning of something longer.
        if label.kept == "snippet" and label.text is not None and len(label.text) >= SNIPPET_CHARACTERS:
            taken.skipped["only the beginning of the text was kept"] += 1
        elif label.label is not None and routes is not None and label.label not in routes:
            taken.skipped[f"the label {label.label[:QUOTED]!r} is no route of {profile!r} any more"] += 1
        else:
            try:
                taken.keep(f"log {label.id}", row, label.created_ms)
            except BadRow as wrong:
                taken.skipped[str(wrong)] += 1
    return taken.examples()


def read_for(
    profile: Profile, files: Sequence[str], *, seeds: bool = True, text: str = "text", label: str = "label"
) -> Examples:
    """What a profile may learn from: these files, and its seeds or those of the profile it extends as long as both have
    the same routes."""
    own = (
        read_examples(files, routes=profile.routes, profile=profile.name, text=text, label=label)
        if files
        else Examples()
    )
    for name in (profile.name, profile.resolved.get("extends")) if seeds else ():
        found = read_seeds(current_name(name)) if isinstance(name, str) else Examples()
        if found.rows and {*found.labels} <= {*profile.routes, OUT_OF_SCOPE}:
            return gather(found, own)
    return own


def read_logs(store: StoreReader, profile: Profile, *, tenant: str | None = None, span: TimeSpan = ALWAYS) -> Examples:
    """The labelled decisions of a tenant's log; of all tenants by default."""
    names = [tenant] if tenant is not None else store.tenants()
    logs = [read_log(store.records(name), profile=profile.name, routes=profile.routes, span=span) for name in names]
    return gather(*logs)


def gather(*sources: Examples) -> Examples:
    """Several as one."""
    skipped: Counter[str] = Counter()
    for source in sources:
        skipped.update(source.skipped)
    rows = tuple(row for source in sources for row in source.rows)
    return Examples(rows, tuple(dict.fromkeys(said for source in sources for said in source.remarks)), skipped)


# --- one row


class _Collector:
    """What has been read so far."""

    def __init__(self, routes: Sequence[str] | None, profile: str | None, by: By) -> None:
        self.routes, self.profile, self.by = routes, profile, by
        self.rows: list[Example] = []
        self.skipped: Counter[str] = Counter()
        self.seen = 0
        self.both = self.agreed = 0

    def take(self, where: str, row: Mapping[str, Any]) -> None:
        self.seen += 1
        self.keep(where, row, _moment(row.get("created_at")))

    def keep(self, where: str, row: Mapping[str, Any], at: int) -> None:
        for name in _TEXTS:
            if not isinstance(value := row.get(name), str | None):
                raise BadRow(f"{name!r} must be text, found {type(value).__name__} {quote(value)}")
        if self.profile is not None and current_name(row.get("profile") or self.profile) != self.profile:
            self.skipped["of another profile"] += 1
            return
        label, human, teacher = (row.get(name) or None for name in ("label", "human", "teacher"))
        if label is None:
            # In an export a row may have no label; in a file written by hand that is a gap.
            if not row.keys() & {"label_by", "human", "teacher"}:
                raise BadRow("the label is empty: name a route, or take the row out")
            self.skipped["it has no label"] += 1
            return
        by = _said_by(row, label, self.by)
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
            raise BadRow(f"{quote(label)} is no route{near}")
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


def _said_by(row: Mapping[str, Any], label: str, default: By) -> By:
    said = row.get("label_by")
    if said in (None, "") and (row.get("human") or row.get("teacher")):
        said = "human" if row.get("human") == label else "teacher"
    if said in (None, ""):
        return default
    if said not in BELIEVED:
        raise BadRow(f"label_by {quote(said)}{suggest(said, BELIEVED)}: it may be {', '.join(BELIEVED)}")
    by: By = said
    return by


def _moment(said: str | int | None) -> int:
    if not isinstance(said, str) or not said:
        return 0
    try:
        when = datetime.datetime.fromisoformat(said)
        return int(when.replace(tzinfo=when.tzinfo or datetime.UTC).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise BadRow(f"created_at {quote(said)} is no time such as 2026-11-01T08:30:00Z") from None
