"""`gain.v1`: the cheapest route no more expensive one beats by what it costs, and why; without a model it passes."""

import hashlib
import io
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import pytest

import turnout
from toml_router import router_of
from turnout.core.errors import ConfigError
from turnout.core.query import Query
from turnout.core.registry import Supplies
from turnout.layers.artefact import Embedder, digest_of
from turnout.layers.gain import Gain, GainConfig, gain
from turnout.layers.gain_model import ConfidenceCurve, GainManifest, Setting, read_gains
from turnout.testing import check_layer
from turnout.text.match import Lexicon
from turnout.text.ngram import Ngrams
from turnout.text.shape import NUMBERS, shape_of

TIERS = ("SIMPLE", "MEDIUM", "COMPLEX")
READ = turnout.load_profile("tiers", config="").read


class FixedEmbedder:
    """An embedder whose vector says whether a text mentions topology."""

    name, width = "fixed-1", 2

    def embed(self, texts, /):
        return np.array([[float("topology" in text), float("topology" not in text)] for text in texts], np.float32)


class Remote(FixedEmbedder):
    async def fetch(self, texts, /):
        raise AssertionError("not awaited by a local layer")


def write_model(folder: Path, *, offsets=(0.0, 0.1, 0.3), price=0.1, vector=False, tiers=TIERS, word="zzzq") -> Path:
    """A model in which one word raises what MEDIUM and COMPLEX gain, and a vector what COMPLEX does."""
    ngrams = Ngrams(buckets=1 << 12)
    count = len(tiers)
    weights = {
        "ngram": np.zeros((ngrams.buckets, count), np.float32),
        "ngram_bias": np.zeros(count, np.float32),
        "shape": np.zeros((NUMBERS, count), np.float32),
        "shape_bias": np.zeros(count, np.float32),
        "shape_centre": np.zeros(NUMBERS, np.float32),
        "shape_scale": np.ones(NUMBERS, np.float32),
    }
    indices, values = ngrams.of(word)
    weights["ngram"][indices, count - 1] = np.array(values, np.float32)
    if vector:
        weights["vector"] = np.zeros((2, count), np.float32)
        weights["vector"][0, count - 1] = 1.0
        weights["vector_bias"] = np.zeros(count, np.float32)
    packed = io.BytesIO()
    np.savez_compressed(packed, **weights)
    setting = Setting({"ngram": 1.0, "shape": 1.0}, offsets, price, tuple(ConfidenceCurve(2.0, -4.0) for _ in tiers))
    manifest = GainManifest(
        profile="tiers",
        layer="gain",
        tiers=tiers,
        costs=tuple(float(2 * at) for at in range(count)),
        ngrams=ngrams,
        embedder=Embedder("fixed-1", 2) if vector else None,
        text=setting,
        vector=msgspec.structs.replace(setting, heads={"ngram": 0.0, "shape": 0.0, "vector": 1.0}) if vector else None,
        aim="a test",
        metrics={},
        counts={},
        data_hash="",
        profile_hash="",
        seed=0,
        created="now",
        turnout="0",
        files={"weights.npz": hashlib.sha256(packed.getvalue()).hexdigest()},
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "weights.npz").write_bytes(packed.getvalue())
    manifest = msgspec.structs.replace(manifest, digest=digest_of(manifest))
    (folder / "manifest.json").write_bytes(msgspec.json.encode(manifest))
    return folder


def serve(folder: Path, embedder=None, **config) -> Gain:
    return Gain(GainConfig(**config), read_gains(folder), embedder)


class Case(NamedTuple):
    id: str
    offsets: tuple[float, float, float]
    price: float
    route: str
    code: str
    said: str


# Costs are 0, 2 and 4: at a price of .1 a step must gain .2 and two steps .4.
CASES = [
    Case(
        "nothing-pays",
        (0, 0.05, 0.3),
        0.1,
        "SIMPLE",
        "gain.step_up",
        "stepping up to COMPLEX would gain .30, less than the .40 that pays",
    ),
    Case("one-step", (0, 0.25, 0.3), 0.1, "MEDIUM", "gain.pays", "MEDIUM would gain .25 over SIMPLE, .20 pays"),
    Case(
        "one-step-only",
        (0, 0.25, 0.3),
        0.1,
        "MEDIUM",
        "gain.step_up",
        "COMPLEX would gain .05, less than the .20 that pays",
    ),
    Case("two-steps-jump", (0, 0.1, 0.5), 0.1, "COMPLEX", "gain.pays", "COMPLEX would gain .50 over SIMPLE, .40 pays"),
    Case("equal-worth-goes-to-the-cheaper", (0, 0.25, 0.5), 0.125, "SIMPLE", "gain.step_up", "less than the"),
    Case("loses", (0, -0.1, -0.2), 0.1, "SIMPLE", "gain.step_up", "MEDIUM would gain nothing, and .20 pays"),
    Case("free", (0, 0.01, 0.02), 0.0, "COMPLEX", "gain.pays", "COMPLEX would gain .02 over SIMPLE, .00 pays"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_step_up_must_pay(tmp_path: Path, case: Case) -> None:
    layer = serve(write_model(tmp_path, offsets=tuple(map(float, case.offsets)), price=case.price))
    verdict = layer(READ(Query("pick another mat")))
    assert verdict is not None
    assert verdict.routes == (case.route,)
    reasons = {reason.code: reason.text for reason in layer.explain(verdict)}
    assert case.said in reasons[case.code]
    assert verdict.calibrated
    assert verdict.margin >= 0.0
    assert verdict.scores == pytest.approx(dict(zip(TIERS, case.offsets, strict=True)), abs=1e-6)
    if case.route == "COMPLEX":
        assert "gain.step_up" not in reasons


def test_the_words_decide(tmp_path: Path) -> None:
    layer = serve(write_model(tmp_path, offsets=(0.0, 0.1, 0.1)))
    assert layer(READ(Query("zzzq"))).routes == ("COMPLEX",)
    assert layer(READ(Query("mat"))).routes == ("SIMPLE",)


def test_a_price_in_the_profile_replaces_the_fitted_one(tmp_path: Path) -> None:
    folder = write_model(tmp_path, offsets=(0.0, 0.1, 0.3))
    reading = READ(Query("pick another mat"))
    assert serve(folder)(reading).routes == ("SIMPLE",)
    assert serve(folder, price=0.01)(reading).routes == ("COMPLEX",)
    assert serve(folder, price=0.0)(reading).routes == ("COMPLEX",)
    assert serve(folder, price=99.0)(reading).routes == ("SIMPLE",)


def test_raising_the_price_never_buys_more(tmp_path: Path) -> None:
    folder = write_model(tmp_path, offsets=(0.0, 0.25, 0.3))
    reading = READ(Query("zzzq"))
    chosen = [TIERS.index(serve(folder, price=price)(reading).routes[0]) for price in np.linspace(0, 1, 40)]
    assert chosen == sorted(chosen, reverse=True)
    assert len(set(chosen)) > 1


def test_confidence_is_the_curve_of_what_is_lost(tmp_path: Path) -> None:
    layer = serve(write_model(tmp_path, offsets=(0.0, 0.0, 0.25)))
    verdict = layer(READ(Query("pick another mat")))
    assert verdict.routes == ("SIMPLE",)
    assert verdict.confidence == pytest.approx(1 / (1 + np.exp(-(2.0 - 4.0 * 0.25))), abs=1e-6)


def test_vectors_count_only_from_their_own_embedder(tmp_path: Path) -> None:
    folder = write_model(tmp_path, vector=True)
    reading = READ(Query("some topology"))
    assert serve(folder, FixedEmbedder())(reading).routes == ("COMPLEX",)
    other = FixedEmbedder()
    other.name = "other-1"
    for embedder in (None, other, Remote()):
        layer = serve(folder, embedder)
        verdict = layer(reading)
        assert verdict.routes == ("SIMPLE",)
        assert "gain.no_vectors" in [reason.code for reason in layer.explain(verdict)]


def test_nothing_to_read_passes(tmp_path: Path) -> None:
    assert serve(write_model(tmp_path))(READ(Query("\u200b"))) is None


def test_long_and_odd_texts_are_judged(tmp_path: Path) -> None:
    layer = serve(write_model(tmp_path, vector=True), FixedEmbedder())
    for text in ("x" * 1_000_000, "\ud800 half", "𝔱𝔥𝔢𝔬𝔯𝔢𝔪", "?" * 5000, "1\n" * 3000):
        verdict = layer(READ(Query(text)))
        assert verdict is not None
        assert 0.0 <= verdict.confidence <= 1.0


def test_the_layer_keeps_the_conformance_suite(tmp_path: Path) -> None:
    folder = write_model(tmp_path)
    check_layer(serve(folder), routes=TIERS)


# --- in a profile

PROFILE = """
name = "mine"
routes = ["SIMPLE", "MEDIUM", "COMPLEX"]
ordered = true
fallback = { route = "MEDIUM" }
[[layers]]
kind = "gain.v1"
%s
[policy.SIMPLE]
[policy.MEDIUM]
[policy.COMPLEX]
"""


def test_a_profile_names_the_model_it_serves(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "m")
    one = router_of(PROFILE % f'model = "{folder}"')
    assert one.route_sync("zzzq").outcome == "E-"
    assert one.profile.resolved["layers"][0]["artefact"] == read_gains(folder).manifest.digest
    write_model(folder, price=0.2)
    assert router_of(PROFILE % f'model = "{folder}"').profile.hash != one.profile.hash


def test_without_a_model_the_profile_says_so_and_the_next_layer_decides() -> None:
    router = turnout.load("tiers", config="")
    [remark] = [remark for remark in router.profile.remarks if "'gain'" in remark]
    assert "turnout train -p tiers --outcomes FILE" in remark
    assert router.route_sync("What is 2+2?").route == "SIMPLE"


def test_a_digest_that_is_not_there_passes(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "m")
    router = router_of(PROFILE % f'model = "{folder}"\nartefact = "0123456789abcdef"')
    assert "not 0123456789abcdef" in router.profile.remarks[0]
    assert router.route_sync("zzzq").outcome[0] == "F"


def test_tiers_of_another_profile_are_refused(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "m", tiers=("cheap", "fair", "dear"))
    with pytest.raises(ConfigError, match="trained for other routes: 'cheap', 'fair', 'dear'"):
        router_of(PROFILE % f'model = "{folder}"')


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("costs = { SIMPEL = 1.0 }", "did you mean 'SIMPLE'"),
        ("costs = { SIMPLE = 1.0, COMPLEX = 1.0 }", "are all the same"),
        ("price = -1.0", "below 0"),
        ("prize = 1.0", "did you mean 'price'"),
    ],
)
def test_a_slip_in_the_table_is_found_at_load(written: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        router_of(PROFILE % written)


def test_without_a_house_nothing_is_found() -> None:
    assert "nothing was learnt" in gain(GainConfig(), Supplies(TIERS, Lexicon())).absent


# --- the text's shape


def test_shape_is_finite_bounded_and_as_long_as_it_says() -> None:
    for text in ("", "a", "1" * 100_000, "?!" * 4000, "word " * 9999, "é\n" * 500):
        found = shape_of(text)
        assert len(found) == NUMBERS
        assert all(np.isfinite(found))
        assert max(map(abs, found)) <= 64.0


@pytest.mark.parametrize(
    ("at", "more", "less"),
    [
        (0, "a longer text", "short"),
        (2, "one two three", "onetwothree"),
        (6, "2024 and 1999", "two thousand"),
        (8, "x+y=(z)*2", "x y z"),
        (10, "a\nb\nc", "a b c"),
        (11, "why? how?", "why how"),
        (5, "a b c d", "a a a a"),
    ],
)
def test_shape_counts_what_it_says(at: int, more: str, less: str) -> None:
    assert shape_of(more)[at] > shape_of(less)[at]
