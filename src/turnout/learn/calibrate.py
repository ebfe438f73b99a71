"""Chooses all gates of a profile on labelled questions and writes them as a short profile that extends the old one.

The file says where each number comes from. It is loaded before it replaces anything, and its gates must then be the
proven ones.
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

# More than any layer's margin. A closed gate is written with it, because a confidence can be 1.
NEVER = 1_000_000.0


class Calibration(NamedTuple):
    """The result of a calibration."""

    profile: Profile
    trial: Trial
    choice: GateChoice
    source: str
    data_hash: str
    command: str
    """The command that repeats it."""
    before: Count
    """The results of the old gates on the rows that the new ones were tested on."""
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
    """Choose every gate of a profile on a file of labelled questions. With `out`, proven gates are written as a
    profile, which names `command` as the way to repeat it."""
    if out is not None:
        check_out(out, name)
    profile = load_serving(name, model=model, embedder=embedder, config=config)
    examples = read_labelled(source, [profile])
    trial = try_layers(profile, examples.texts, examples.labels, progress)
    answers = trial.answers()
    choice = choose_gates(answers, max_error=max_error, delta=1 - confidence, seed=seed)
    before = count_tested(answers, trial.gates(), seed)
    calibration = Calibration(
        profile, trial, choice, source, hash_examples(examples.rows), command, before, remarks_of(trial, examples)
    )
    if out is None or choice.gates is None:
        return calibration
    write_gates(out, name, calibration)
    return calibration._replace(written=out)


def changed_gates(profile: Profile, choice: GateChoice) -> dict[str, tuple[float, float]]:
    """The old and the new gate of each layer whose gate makes a difference."""
    if choice.gates is None:
        return {}
    old = {place.id: place.gate.confidence for place in profile.layers}
    new = zip(choice.layers, choice.gates, strict=True)
    return {name: (old[name], gate) for name, gate in new if name in choice.gated}


def write_gates(out: File, base: str, calibration: Calibration) -> None:
    """Write the profile; nothing is left behind if it does not load or does not load with these gates."""

    def check(written: Profile) -> None:
        gates = {place.id: place.gate.confidence for place in written.layers}
        for name, (_, gate) in changed_gates(calibration.profile, calibration.choice).items():
            if gates.get(name) != min(gate, 1.0):
                raise LearnError(f"layer {name!r} has no id in {base}: give every layer one, then its gate can be set")

    write_heir(out, base, lambda extends: compose(extends, calibration), check)


def compose(base: str, calibration: Calibration) -> str:
    """The text of the profile."""
    profile, choice, before = calibration.profile, calibration.choice, calibration.before
    tested, sure = choice.tested, 1 - choice.delta
    foreign = f", {calibration.foreign:,} of them outside every route" if calibration.foreign else ""
    was = f"{before.decided:,} decided, {before.wrong:,} wrong ({before.error:.2%})" if before.decided else ""
    notes = [
        f"Gates chosen by turnout calibrate on {datetime.date.today().isoformat()}, all of them together.",
        f"questions  {File(calibration.source).name}: {len(calibration.trial.labels):,}{foreign}; "
        f"sha256 {calibration.data_hash[:16]}",
        f"promise    of what local layers decide at most {100 * choice.max_error:.6g}% is wrong, "
        f"at {100 * sure:.6g}% confidence; over all of it together, not for each route",
        f"proof      {tested.rows:,} questions that had no say in the gates: {tested.decided:,} decided, "
        f"{tested.wrong:,} wrong, so at most {choice.ceiling:.2%}",
        f"before     {profile.name} {profile.hash}: {was or 'nothing decided'}",
        *(
            f"model      layer {layer} served {digest}: calibrate again for another"
            for layer, digest in models_of(profile).items()
        ),
        f"repeat     {calibration.command}",
    ]
    lines = [*map(toml_comment, notes), f"extends = {toml_text(base)}"]
    for name, (old, gate) in changed_gates(profile, choice).items():
        # The margin's gate stays as it is, except where the gate is closed.
        accept = {"confidence": 1.0, "margin": NEVER} if gate == CLOSED else {"confidence": gate}
        lines += ["", "[[layers]]", f"id = {toml_text(name)}", f"# was {old:g}", f"accept = {toml_value(accept)}"]
    return "\n".join(lines) + "\n"


def spell_settings(profile: Profile, choice: GateChoice) -> list[str]:
    """Lines for turnout.toml, for the gates that the profile has a setting for."""
    settings = profile.resolved.get("settings", {})
    keys = {place: key for key, place in settings.items()} if isinstance(settings, dict) else {}
    lines = []
    for name, (_, gate) in changed_gates(profile, choice).items():
        key = keys.get(f"layers.{name}.accept.confidence")
        if key is not None and not math.isinf(gate):
            lines.append(f"{toml_key(key)} = {toml_value(gate)}")
    return [f"[{toml_key(profile.name)}]", *lines] if lines else []


def overriding(profile: Profile, names: Sequence[str]) -> list[str]:
    """The loader's remarks about user settings that override one of these gates."""
    places = [f"sets layers.{name}.accept.confidence" for name in names]
    return [remark for remark in profile.remarks if any(remark.endswith(place) for place in places)]
