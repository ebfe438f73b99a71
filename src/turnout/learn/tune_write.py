"""Tunes a layer to a file of labels, and writes the numbers as a profile that extends the one they were tuned from.

The file says where its numbers come from: which labels, how many, which seed, and what they were worth on questions
they had not seen. It is checked by loading it before anybody is told that it is there.
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path as File
from typing import NamedTuple

import msgspec

from turnout.config.load import read_chain
from turnout.config.write import toml_comment, toml_key, toml_text, toml_value
from turnout.core.errors import LearnError
from turnout.core.profile import Profile
from turnout.text.control import escape_json

from .dataset import read_examples
from .heir import write_heir
from .tune import TuneReport, describe, find_signals, tune
from .tune_band import BandNumbers
from .tune_rank import RankNumbers

# Measured cases written beside the profile: enough to see a change, short enough to read.
CASES = 200


class Tuning(NamedTuple):
    """What came of it."""

    layer: str
    report: TuneReport
    moved: Mapping[str, tuple[float, float]]
    """Each number that moved, its old and its new value."""
    data_hash: str
    written: File | None


def tune_file(
    profile: Profile,
    base: str,
    source: str,
    *,
    layer: str | None = None,
    seed: int = 0,
    out: File | None = None,
    force: bool = False,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Tuning:
    """Fit a signals layer of a profile to a file of labelled questions; with `out`, write a profile that extends `base`
    if that is shown to be better, or `force` says so."""
    place, config = find_signals(profile, layer)
    examples = read_examples(source, routes=profile.routes, profile=profile.name)
    rows = list(dict.fromkeys((example.text, example.label) for example in examples.rows))
    report = tune(profile, rows, layer=place.id, seed=seed, progress=progress)
    written = out is not None and (report.is_better or force)
    if out is not None and written:
        write_profile(out, base, place.id, report, rows, source=source)
    return Tuning(place.id, report, describe(report, config), hash_labels(rows), out if written else None)


def hash_labels(rows: Iterable[tuple[str, str]]) -> str:
    """What the labels say, whatever order they come in."""
    each = sorted(hashlib.sha256(msgspec.json.encode(row)).digest() for row in rows)
    return hashlib.sha256(b"".join(each)).hexdigest()


def write_profile(
    out: File, base: str, layer: str, report: TuneReport, rows: Sequence[tuple[str, str]], *, source: str
) -> tuple[File, File]:
    """The new profile and its cases. What would not load is not left behind."""
    layers = read_chain(base).document.tree.get("layers", ())
    unnamed = [entry for entry in layers if not isinstance(entry.get("id"), str)]
    if unnamed:
        raise LearnError(f"a layer of {base} ({unnamed[0].get('kind')}) has no id: give every layer one, to extend it")
    cases = out.with_name(f"{out.stem}.cases.jsonl")
    write_heir(
        out,
        base,
        lambda beside: compose(out.stem, beside, layer, report, rows, source=source, cases=cases.name),
        lambda _: cases.write_bytes(_cases(out.stem, rows)),
    )
    return out, cases


def compose(
    name: str, base: str, layer: str, report: TuneReport, rows: Sequence[tuple[str, str]], *, source: str, cases: str
) -> str:
    """The file's text."""
    low, high = report.after_bounds
    notes = [
        f"The numbers of layer {layer!r} of {base}, fitted by turnout tune on {datetime.date.today().isoformat()}.",
        f"labels: {File(source).name}, {len(rows):,} rows, sha256 {hash_labels(rows)[:16]}; {report.rows:,} of them",
        f"have a signal. Seed {report.seed}, held at the old numbers with strength {report.strength:g}.",
        f"accuracy of the layer on those, cross-validated: {report.before:.1%} before, {report.after:.1%} after",
        f"(95 % interval {low:.1%} to {high:.1%}; {report.paired.wins} won, {report.paired.losses} lost, better by at"
        f" least {report.paired.floor:+.1%}).",
    ]
    lines = [
        *map(toml_comment, notes),
        f"extends = {toml_text(base)}",
        f"name = {toml_text(name)}",
        f"description = {toml_text(f'{File(base).stem} with weights fitted to {File(source).name}')}",
        f"cases = {toml_text(cases)}",
        "",
        "[[layers]]",
        f"id = {toml_text(layer)}",
        'kind = "signals.v1"',
    ]
    numbers = report.numbers
    if isinstance(numbers, BandNumbers):
        edges = ", ".join(_number(edge) for edge in numbers.edges)
        lines += ["", "[layers.bands]", f"edges = [{edges}]", f"steepness = {_number(numbers.steepness)}"]
        for signal, weight in zip(report.signals, numbers.weights, strict=True):
            lines += ["", "[[layers.signals]]", f"id = {toml_text(signal)}", f"weight = {_number(weight)}"]
    elif isinstance(numbers, RankNumbers):
        for (total, signal), value in sorted(zip(numbers.names, numbers.values, strict=True)):
            key = f"layers.ranking.sums.{toml_key(total)}" if signal else "layers.ranking.base"
            if f"[{key}]" not in lines:
                lines += ["", f"[{key}]"]
            lines.append(f"{toml_key(signal or total)} = {_number(value)}")
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    """With its decimals and no more; adding 0.0 turns a minus zero into zero."""
    return toml_value(round(float(value), 6) + 0.0)


def _cases(name: str, rows: Sequence[tuple[str, str]]) -> bytes:
    """Some of the labels as measured cases: the old profile's own hold its old numbers."""
    some = min(len(rows), CASES)
    chosen = [rows[at * len(rows) // some] for at in range(some)]
    told = [
        {"id": f"{name}-{at}", "text": text, "route": label, "must": False} for at, (text, label) in enumerate(chosen)
    ]
    return b"".join(escape_json(msgspec.json.encode(case)) + b"\n" for case in told)
