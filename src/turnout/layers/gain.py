"""`gain.v1`: the cheapest route that no more expensive one beats by as much as it costs more.

A model fitted on outcomes says how much better each more expensive route is expected to answer. A step up is taken
where that gain reaches what the step must bring; the price of a gain was chosen on the cost-quality curve when the
model was trained, or is set here. Without a trained model the layer passes, and the profile says so; it also passes on
a question that is unlike every row it was trained on, since what words tell about gains does not carry over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Annotated, Any

from msgspec import Meta, Struct

from turnout.core.embed import Embeds
from turnout.core.errors import ConfigError, Problem, suggest
from turnout.core.layer import Absent, Layer
from turnout.core.query import Reading
from turnout.core.registry import Supplies, kind
from turnout.core.verdict import Reason, Verdict

from .artefact import MANIFEST
from .gain_model import EMBEDDED_CHARACTERS, GainModel, TierChoice, read_gains
from .student import find_folder

# What rounds to no gain at all.
LEAST_GAIN = 0.005

Amount = Annotated[float, Meta(ge=0.0)]


class GainConfig(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    model: str | None = None
    """The folder of what was learnt, instead of the champion; a relative one is looked for beside the profile."""
    artefact: str | None = None
    """The digest of the only one that will do. A profile that has been built names it."""
    price: Amount | None = None
    """The gain that one unit of cost must bring, instead of the one chosen in training: 0 buys the best, more saves."""
    costs: Mapping[str, Amount] = {}
    """What an answer of each route costs, in any unit, for training on outcomes that do not say."""

    def faults(self, routes: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        for route in self.costs:
            if route not in routes:
                yield f"costs.{route}", f"{route!r} is not a route{suggest(route, routes)}"
        if self.costs and len(set(self.costs.values())) == 1 and len(self.costs) > 1:
            yield "costs", "are all the same: nothing could be saved"


class Gain(Layer):
    """Serves one trained model."""

    def __init__(self, config: GainConfig, gains: GainModel, embedder: Embeds | None = None) -> None:
        self.gains = gains
        self.price = config.price
        wanted = gains.manifest.embedder
        # Vectors of another embedder do not compare, and one that waits for a server would keep a local layer waiting:
        # then the setting without vectors decides.
        fits = embedder is not None and wanted is not None and embedder.name == wanted.name
        self.embedder = embedder if fits and not hasattr(embedder, "fetch") else None
        self.tiers = gains.manifest.tiers
        self.artefact = gains.manifest.digest

    def __call__(self, reading: Reading) -> Verdict | None:
        folded = reading.folded
        if not folded:
            return None
        vector: Any = None
        if self.embedder is not None:
            vector = self.embedder.embed([folded[:EMBEDDED_CHARACTERS]])[0]
        if self.gains.is_unlike(folded, vector):
            return None
        found = self.gains.weigh(folded, vector, self.price)
        return Verdict(
            (self.tiers[found.chosen],),
            found.confidence,
            found.margin,
            dict(zip(self.tiers, found.gains, strict=True)),
            evidence=tuple(found),
            calibrated=True,
        )

    def explain(self, verdict: Verdict) -> tuple[Reason, ...]:
        """Why not more expensive, and why not cheaper."""
        found = TierChoice(*verdict.evidence)  # type: ignore[arg-type]
        chosen, tiers = found.chosen, self.tiers
        reasons = []
        if chosen:
            gain, need = found.gains[chosen], found.needed[chosen]
            reasons.append(
                Reason("gain.pays", f"{tiers[chosen]} would gain {_say(gain)} over {tiers[0]}, {_say(need)} pays")
            )
        above = range(chosen + 1, len(tiers))
        if above:
            # The one that comes nearest to paying.
            steps = {
                tier: (found.gains[tier] - found.gains[chosen], found.needed[tier] - found.needed[chosen])
                for tier in above
            }
            nearest = min(steps, key=lambda tier: steps[tier][1] - steps[tier][0])
            gain, need = steps[nearest]
            told = f"would gain {_say(gain)}, less than the {_say(need)} that pays"
            if gain < LEAST_GAIN:
                told = f"would gain nothing, and {_say(need)} pays"
            reasons.append(Reason("gain.step_up", f"stepping up to {tiers[nearest]} {told}"))
        sure = f"no other tier would have done better: {found.confidence:.0%}"
        reasons.append(Reason("gain.as_good", sure))
        if self.gains.manifest.embedder is not None and not found.with_vector:
            name = self.gains.manifest.embedder.name
            reasons.append(Reason("gain.no_vectors", f"judged without vectors: the embedder {name} is not here"))
        return tuple(reasons)


def _say(share: float) -> str:
    """`.04`: gains are shares of an answer's quality."""
    return f"{share:.2f}".replace("0.", ".", 1)


@kind("gain.v1", cost="cpu", who="E")
def gain(config: GainConfig, supplies: Supplies) -> Gain | Absent:
    folder = find_folder(config, supplies)
    name = supplies.profile or "NAME"
    if folder is None:
        pinned = f" of digest {config.artefact}" if config.artefact else ""
        return Absent(f"nothing was learnt from outcomes yet{pinned} (turnout train -p {name} --outcomes FILE)")
    if find_spec("numpy") is None:
        return Absent("what was learnt is served with NumPy, which is not installed (pip install 'turnout[student]')")
    gains = read_gains(folder)
    manifest = gains.manifest
    if config.artefact and manifest.digest != config.artefact:
        return Absent(f"the model in {folder} is {manifest.digest}, not {config.artefact} (turnout student promote)")
    unknown = [tier for tier in manifest.tiers if tier not in supplies.routes]
    if unknown:
        said = (
            f"it was trained for other routes: {', '.join(map(repr, unknown[:3]))} not of this profile "
            f"({', '.join(supplies.routes)}): turnout train -p {name} --outcomes FILE"
        )
        raise ConfigError([Problem(str(folder / MANIFEST), said)])
    return Gain(config, gains, supplies.embedder)
