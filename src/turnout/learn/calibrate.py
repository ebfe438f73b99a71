"""All gates of a profile, chosen on labelled questions and written as a short profile that extends the old one.

The file says where each number comes from. It is loaded before it takes its place, and its gates must then be the ones
that were proven.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from pathlib import Path as File
from typing import NamedTuple

from turnout.config.write import toml_comment, toml_key, toml_text, toml_value
from turnout.core.embed import Embeds
from turnout.core.errors import LearnError
from turnout.core.profile import Profile

from .dataset import hash_examples
from .gate import CLOSED, Count, GateChoice, choose_gates, count_tested
from .heir import check_out, write_heir
from .trial import Trial, load_serving, models_of, read_labelled, remarks_of, try_layers

# More than any layer's margin: how a gate that nothing passes is written, for a confidence may well be 1.
NEVER = 1_000_000.0


class Calibration(NamedTuple):
    """What came of it."""

    profile: Profile
    trial: Trial
    choice: GateChoice
    source: str
    data_hash: str
    command: str
    """What would repeat it."""
    before: Count
    """The old gates on the rows the new ones were tested on."""
    remarks: list[str]
    written: File | None = None

    @property
    def foreign(self) -> int:
        """Questions outside every route."""
        return sum(self.trial.foreign.values())


def calibrate(
    name: str,
    source: str,
    *,
    max_error: float = 0.02,
    confidence: float = 0.95,
    seed: int = 0,
    model: str | None = None,
    out: File | None = None,
    command: str = "",
    embedder: Embeds | None = None,
    config: str | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Calibration:
    """Choose every gate of a profile on a file of labelled questions; with `out`, write them as a profile if they are
    proven. `command` is what would repeat it, for that file."""
    if out is not None:
        check_out(out, name)
    profile = load_serving(name, model=model, embedder=embedder, config=config)
    examples = read_labelled(source, [profile])
    trial = try_layers(profile, examples.texts, examples.labels, progress)
    said = trial.said()
    choice = choose_gates(said, max_error=max_error, delta=1 - confidence, seed=seed)
    before = count_tested(said, trial.gates(), seed)
    found = Calibration(
        profile, trial, choice, source, hash_examples(examples.rows), command, before, remarks_of(trial, examples)
    )
    if out is None or choice.gates is None:
        return found
    write_gates(out, name, found)
    return found._replace(written=out)


def changed_gates(profile: Profile, choice: GateChoice) -> dict[str, tuple[float, float]]:
    """Old and new gate of each layer whose gate was up for choice."""
    if choice.gates is None:
        return {}
    old = {place.id: place.gate.confidence for place in profile.layers}
    chosen = zip(choice.layers, choice.gates, strict=True)
    return {name: (old[name], gate) for name, gate in chosen if name in choice.gated}


def write_gates(out: File, base: str, found: Calibration) -> None:
    """Write the profile; what would not load, or not with these gates, is not left behind."""

    def check(written: Profile) -> None:
        gates = {place.id: place.gate.confidence for place in written.layers}
        for name, (_, gate) in changed_gates(found.profile, found.choice).items():
            if gates.get(name) != min(gate, 1.0):
                raise LearnError(f"layer {name!r} has no id in {base}: give every layer one, then its gate can be set")

    write_heir(out, base, lambda beside: compose(beside, found), check)


def compose(base: str, found: Calibration) -> str:
    """The file's text."""
    profile, choice, before = found.profile, found.choice, found.before
    tested, sure = choice.tested, 1 - choice.delta
    foreign = f", {found.foreign:,} of them outside every route" if found.foreign else ""
    was = f"{before.decided:,} decided, {before.wrong:,} wrong ({before.error:.2%})" if before.decided else ""
    notes = [
        f"Gates chosen by turnout calibrate on {datetime.date.today().isoformat()}, all of them together.",
        f"questions  {File(found.source).name}: {len(found.trial.labels):,}{foreign}; sha256 {found.data_hash[:16]}",
        f"promise    of what local layers decide at most {100 * choice.max_error:.6g}% is wrong, "
        f"at {100 * sure:.6g}% confidence; over all of it together, not for each route",
        f"proof      {tested.rows:,} questions that had no say in the gates: {tested.decided:,} decided, "
        f"{tested.wrong:,} wrong, so at most {choice.ceiling:.2%}",
        f"before     {profile.name} {profile.hash}: {was or 'nothing decided'}",
        *(
            f"model      layer {layer} served {digest}: calibrate again for another"
            for layer, digest in models_of(profile).items()
        ),
        f"repeat     {found.command}",
    ]
    lines = [*map(toml_comment, notes), f"extends = {toml_text(base)}"]
    for name, (old, gate) in changed_gates(profile, choice).items():
        # The margin's gate stays as it is, but for a gate that is to let nothing pass.
        accept = {"confidence": 1.0, "margin": NEVER} if gate == CLOSED else {"confidence": gate}
        lines += ["", "[[layers]]", f"id = {toml_text(name)}", f"# was {old:g}", f"accept = {toml_value(accept)}"]
    return "\n".join(lines) + "\n"


def spell_settings(profile: Profile, choice: GateChoice) -> list[str]:
    """Lines for turnout.toml, for the gates that the profile has a setting for."""
    named = profile.resolved.get("settings", {})
    keys = {place: key for key, place in named.items()} if isinstance(named, dict) else {}
    lines = []
    for name, (_, gate) in changed_gates(profile, choice).items():
        key = keys.get(f"layers.{name}.accept.confidence")
        if key is not None and not math.isinf(gate):
            lines.append(f"{toml_key(key)} = {toml_value(gate)}")
    return [f"[{toml_key(profile.name)}]", *lines] if lines else []


def overriding(profile: Profile, names: Sequence[str]) -> list[str]:
    """Remarks of the loader that say the user's settings set one of these gates: they go before any profile."""
    places = [f"sets layers.{name}.accept.confidence" for name in names]
    return [remark for remark in profile.remarks if any(remark.endswith(place) for place in places)]
