"""`gain.v1`: chooses the cheapest route that no more expensive one beats by its extra cost.

A model fitted on outcomes predicts how much better each more expensive route would answer. A step up is taken if that
gain reaches the price of the step. The price was chosen on the cost-quality curve in training, or is set here. The
layer is absent without a trained model, and passes on questions unlike all training rows, because its predictions do
not carry over to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Annotated, Any

from msgspec import Meta, Struct

from turnout.core.embed import Embeds
from turnout.core.layer import Layer, MissingLayer
from turnout.core.query import Reading
from turnout.core.registry import Supplies, kind
from turnout.core.verdict import Reason, Verdict

from .check import check_trained_routes, unknown
from .gain_model import EMBEDDED_CHARACTERS, GainModel, TierChoice, read_gains
from .student import find_folder

# A smaller gain rounds to nothing.
LEAST_GAIN = 0.005

Amount = Annotated[float, Meta(ge=0.0)]


class GainConfig(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    model: str | None = None
    """The folder of the model, instead of the champion; a relative path starts from the profile's folder."""
    artefact: str | None = None
    """The digest that the model must have. A built profile always names it."""
    price: Amount | None = None
    """The gain that one unit of cost must bring, instead of the one chosen in training: 0 buys the best, more saves."""
    costs: Mapping[str, Amount] = {}
    """The cost of an answer of each route, in any unit, for training on outcomes without costs."""

    def faults(self, routes: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        for route in self.costs:
            yield from unknown(f"costs.{route}", (route,), routes)
        if self.costs and len(set(self.costs.values())) == 1 and len(self.costs) > 1:
            yield "costs", "are all the same: nothing could be saved"


class Gain(Layer):
    """Serves one trained model."""

    def __init__(self, config: GainConfig, gains: GainModel, embedder: Embeds | None = None) -> None:
        self.gains = gains
        self.price = config.price
        wanted = gains.manifest.embedder
        # The setting without vectors decides if the embedder is another one, whose vectors are not comparable, or a
        # remote one, since this layer is local.
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
        choice = self.gains.weigh(folded, vector, self.price)
        return Verdict(
            (self.tiers[choice.chosen],),
            choice.confidence,
            choice.margin,
            dict(zip(self.tiers, choice.gains, strict=True)),
            evidence=tuple(choice),
            calibrated=True,
        )

    def explain(self, verdict: Verdict) -> tuple[Reason, ...]:
        """Why no more expensive route and no cheaper one was chosen."""
        choice = TierChoice(*verdict.evidence)  # type: ignore[arg-type]
        chosen, tiers = choice.chosen, self.tiers
        reasons = []
        if chosen:
            gain, need = choice.gains[chosen], choice.needed[chosen]
            reasons.append(
                Reason("gain.pays", f"{tiers[chosen]} would gain {_say(gain)} over {tiers[0]}, {_say(need)} pays")
            )
        above = range(chosen + 1, len(tiers))
        if above:
            # The step that comes nearest to paying.
            steps = {
                tier: (choice.gains[tier] - choice.gains[chosen], choice.needed[tier] - choice.needed[chosen])
                for tier in above
            }
            nearest = min(steps, key=lambda tier: steps[tier][1] - steps[tier][0])
            gain, need = steps[nearest]
            why = f"would gain {_say(gain)}, less than the {_say(need)} that pays"
            if gain < LEAST_GAIN:
                why = f"would gain nothing, and {_say(need)} pays"
            reasons.append(Reason("gain.step_up", f"stepping up to {tiers[nearest]} {why}"))
        sure = f"no other tier would have done better: {choice.confidence:.0%}"
        reasons.append(Reason("gain.as_good", sure))
        if self.gains.manifest.embedder is not None and not choice.with_vector:
            name = self.gains.manifest.embedder.name
            reasons.append(Reason("gain.no_vectors", f"judged without vectors: the embedder {name} is not here"))
        return tuple(reasons)


def _say(share: float) -> str:
    """`.04`: gains are shares of an answer's quality."""
    return f"{share:.2f}".replace("0.", ".", 1)


@kind("gain.v1", cost="cpu", who="E")
def gain(config: GainConfig, supplies: Supplies) -> Gain | MissingLayer:
    folder = find_folder(config, supplies)
    name = supplies.profile or "NAME"
    if folder is None:
        pinned = f" of digest {config.artefact}" if config.artefact else ""
        return MissingLayer(f"nothing was learnt from outcomes yet{pinned} (turnout train -p {name} --outcomes FILE)")
    if find_spec("numpy") is None:
        return MissingLayer(
            "what was learnt is served with NumPy, which is not installed (pip install 'turnout[student]')"
        )
    gains = read_gains(folder)
    manifest = gains.manifest
    if config.artefact and manifest.digest != config.artefact:
        return MissingLayer(
            f"the model in {folder} is {manifest.digest}, not {config.artefact} (turnout student promote)"
        )
    check_trained_routes(folder, manifest.tiers, supplies, " --outcomes FILE")
    return Gain(config, gains, supplies.embedder)
