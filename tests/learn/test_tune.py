"""Tuning: the shapes decide as the layers do, planted weights are found, noise moves nothing, and what a person wrote
stays: signs, sums, rising edges, overrides."""

import math
import tomllib
from pathlib import Path

import numpy as np
import pytest

import turnout
from toml_router import router_of
from turnout.core.errors import ConfigError, LearnError, TooFewExamples
from turnout.core.query import Query
from turnout.learn.dataset import Example, hash_examples
from turnout.learn.tune import describe, find_signals, look, shape_of, tune, write_profile
from turnout.learn.tune_shape import BandNumbers

WORDS = {"alpha": 1.0, "beta": 1.0, "gamma": -1.0, "delta": 1.0, "noise": 1.0}
BANDS = """
name = "bands"
routes = ["LOW", "MID", "HIGH"]
ordered = true
fallback = { route = "MID" }
[[layers]]
id = "signals"
kind = "signals.v1"
no_signal_confidence = 0.3
[layers.bands]
edges = [0.1, 0.4]
routes = ["LOW", "MID", "HIGH"]
steepness = 12.0
[[layers.overrides]]
id = "always"
route = "LOW"
confidence = 0.9
all = [{ sum = ["override"], at_least = 1 }]
[[layers.signals]]
id = "override"
weight = 0.0
words = ["forceme"]
hidden = true
%s
[policy.LOW]
[policy.MID]
[policy.HIGH]
"""
SIGNAL = '[[layers.signals]]\nid = "%s"\nweight = 0.2\nwords = ["%s"]\nlevels = [{ at_least = 1, score = %s }]\n'
SOURCE = BANDS % "".join(SIGNAL % (word, word, score) for word, score in WORDS.items())
RANKING = """
name = "ranks"
routes = ["red", "blue"]
fallback = { route = "red" }
[[layers]]
id = "local"
kind = "signals.v1"
[layers.ranking.sums]
warm = { fire = 0.5, sun = 0.1, both = 0.3 }
cold = { ice = 0.5, snow = 0.1, both = 0.5 }
[layers.ranking.base]
cold = 0.05
[layers.ranking.routes]
red = [{ add = 1.0, of = "warm" }, { add = 0.1, when = ["fire"] }]
blue = [{ add = 1.0, of = "cold" }, { add = 0.5, of = "cold", above = 0.9 }, { add = -0.1, when_sum = { warm = 0.5 } }]
[policy.red]
[policy.blue]
"""
RANKING += "".join(
    f'[[layers.signals]]\nid = "{word}"\nwords = ["{word}"]\n' for word in ("fire", "sun", "ice", "snow", "both")
)


def labelled(count: int, seed: int = 0, flip: float = 0.05) -> list[tuple[str, str]]:
    """The truth: alpha counts three times as much as beta, gamma against, delta and noise not at all."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        words = [word for word in WORDS if rng.random() < 0.5]
        score = 0.6 * ("alpha" in words) + 0.2 * ("beta" in words) - 0.3 * ("gamma" in words)
        label = "LOW" if score < 0.1 else "MID" if score < 0.5 else "HIGH"
        if rng.random() < flip:
            label = str(rng.choice(["LOW", "MID", "HIGH"]))
        rows.append((f"{' '.join(words)} q{number}", label))
    return rows


def texts(seed: int = 3) -> list[str]:
    rng = np.random.default_rng(seed)
    words = [*WORDS, "forceme", "fire", "sun", "ice", "snow", "both", "other"]
    return [" ".join(rng.choice(words, rng.integers(1, 6))) for _ in range(200)]


@pytest.mark.parametrize("source", [SOURCE, RANKING], ids=["bands", "ranking"])
def test_a_shape_decides_as_its_layer_does(source: str) -> None:
    router = router_of(source)
    place, config = find_signals(router.profile, None)
    shape = shape_of(place, config)
    config_all = (
        config
        if config.no_signal_confidence is None
        else config.__class__(**{**_fields(config), "no_signal_confidence": None})
    )
    rows = [(text, shape.routes[0]) for text in texts()]
    seen = look(router.profile, place.call, config_all, shape, rows, 0)
    said = np.where(seen.decided >= 0, seen.decided, shape.decide(shape.original(), seen.levels))
    layer = [place.call(router.profile.read(Query(text))).routes[0] for text, _ in rows]
    assert [shape.routes[at] for at in said] == layer
    assert len(set(layer)) > 1


def _fields(config):
    return {name: getattr(config, name) for name in config.__struct_fields__}


def test_planted_weights_are_found() -> None:
    profile = router_of(SOURCE).profile
    report = tune(profile, labelled(400))
    assert report.before < 0.7
    assert report.after > 0.88
    assert report.is_better
    assert report.paired.floor > 0.1
    weights = dict(zip(report.signals, report.numbers.weights, strict=True))
    assert weights["alpha"] > 1.8 * weights["beta"]
    assert weights["noise"] < 0.1
    assert weights["delta"] < 0.1
    assert weights["gamma"] > 0.1


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_what_a_person_demanded_stays(seed: int) -> None:
    profile = router_of(SOURCE).profile
    report = tune(profile, labelled(200, seed, flip=0.2), seed=seed)
    numbers = report.numbers
    assert math.fsum(numbers.weights) == pytest.approx(1.0, abs=1e-9)
    assert (numbers.weights >= 0.0).all()
    assert numbers.weights[0] == 0.0, "a weight of nothing stays nothing"
    assert (np.diff(numbers.edges) > 0.0).all()
    assert 0.0 < numbers.steepness <= 1000.0


def test_labels_without_sense_are_not_called_better() -> None:
    rng = np.random.default_rng(0)
    rows = [(text, str(rng.choice(["LOW", "MID", "HIGH"]))) for text, _ in labelled(300)]
    report = tune(router_of(SOURCE).profile, rows)
    assert not report.is_better


def test_a_profile_that_is_right_already_stays_as_it_is() -> None:
    router = router_of(SOURCE)
    place, _ = find_signals(router.profile, None)
    rows = [(text, place.call(router.profile.read(Query(text))).routes[0]) for text, _ in labelled(200)]
    report = tune(router.profile, rows)
    assert report.before == report.after == 1.0
    assert math.isinf(report.strength)
    assert describe(report, find_signals(router.profile, None)[1]) == {}


def test_overrides_decide_whatever_the_weights() -> None:
    rows = [(f"forceme {text}", "HIGH") for text, _ in labelled(100)] + labelled(200)
    report = tune(router_of(SOURCE).profile, rows)
    assert report.after < 0.75


def test_silent_questions_are_counted_apart() -> None:
    rows = labelled(150) + [(f"nothing here {number}", "HIGH") for number in range(40)]
    report = tune(router_of(SOURCE).profile, rows)
    quiet = sum(not any(word in text for word in WORDS) for text, _ in rows)
    assert report.silent == quiet
    assert report.rows == len(rows) - quiet


def test_a_ranking_is_tuned() -> None:
    rng = np.random.default_rng(0)
    rows = []
    for number in range(240):
        words = [word for word in ("fire", "sun", "ice", "snow", "both") if rng.random() < 0.4] or ["sun"]
        # The truth: sun and snow are what counts, "both" is red.
        score = 2.0 * ("sun" in words) - 2.0 * ("snow" in words) + 0.5 * ("both" in words) - 0.1
        rows.append((f"{' '.join(words)} {number}", "red" if score > 0 else "blue"))
    report = tune(router_of(RANKING).profile, rows)
    assert report.is_better
    assert report.after > report.before + 0.1
    assert (np.sign(report.numbers.values) == np.sign(report.shape.original().values)).all()


def test_the_same_seed_tunes_the_same() -> None:
    profile = router_of(SOURCE).profile
    one, two = (tune(profile, labelled(120), seed=5) for _ in range(2))
    assert one.after == two.after
    np.testing.assert_array_equal(one.numbers.weights, two.numbers.weights)


def test_what_cannot_be_tuned_says_why() -> None:
    profile = router_of(SOURCE).profile
    with pytest.raises(TooFewExamples, match="49 rows in which a signal"):
        tune(profile, [row for row in labelled(80) if any(word in row[0] for word in WORDS)][:49])
    with pytest.raises(TooFewExamples, match="of 1 routes"):
        tune(profile, [(text, "LOW") for text, _ in labelled(100)])
    with pytest.raises(LearnError, match=r"no signals\.v1 layer 'signal', did you mean 'signals'"):
        tune(profile, labelled(60), layer="signal")
    with pytest.raises(LearnError, match=r"has no signals\.v1 layer"):
        find_signals(turnout.load_profile("assist", config=""), None)


# --- the file


def make(tmp_path: Path):
    base = tmp_path / "base.toml"
    base.write_text(SOURCE, encoding="utf-8")
    rows = labelled(300)
    return base, rows, tune(turnout.load_profile(base, config=""), rows)


def test_the_file_loads_and_decides_by_the_new_numbers(tmp_path: Path) -> None:
    base, rows, report = make(tmp_path)
    out, cases = write_profile(tmp_path / "sub.toml", str(base), "signals", report, rows, source="labels.jsonl")
    router = turnout.load(out, config="")
    place, config = find_signals(router.profile, None)
    shape = shape_of(place, config)
    written = shape.original()
    assert isinstance(written, BandNumbers)
    np.testing.assert_allclose(written.weights, report.numbers.weights)
    np.testing.assert_allclose(written.edges, report.numbers.edges)
    right = np.mean([place.call(router.profile.read(Query(text))).routes[0] == label for text, label in rows])
    assert right > report.before + 0.1
    assert [layer["id"] for layer in router.profile.resolved["layers"]] == ["signals"]
    assert len(cases.read_text(encoding="utf-8").splitlines()) == 200
    said = out.read_text(encoding="utf-8")
    data_hash = hash_examples([Example(*row) for row in rows])
    for told in (data_hash[:16], "300 rows", "Seed 0", f"{report.after:.1%} after"):
        assert told in said


def test_names_with_any_character(tmp_path: Path) -> None:
    base, rows, report = make(tmp_path)
    odd = base.rename(tmp_path / "b\x7f\u2028\x85.toml")
    source = "labels\x7f\n[x]\u2028.jsonl"
    out, cases = write_profile(tmp_path / "o\x7f.toml", str(odd), "signals", report, rows, source=source)
    found = tomllib.loads(out.read_text(encoding="utf-8"))
    assert (found["extends"], found["name"], found["cases"]) == (odd.name, "o\x7f", cases.name)
    assert turnout.load_profile(out, config="").name == "o\x7f"


def test_a_shipped_profile_is_extended_by_name(tmp_path: Path) -> None:
    profile = turnout.load_profile("tiers", config="")
    words = {"SIMPLE": "define", "MEDIUM": "poem", "COMPLEX": "json", "REASONING": "prove"}
    rows = [(f"{word} item {number}", route) for route, word in words.items() for number in range(30)]
    report = tune(profile, rows)
    out, _ = write_profile(tmp_path / "mine.toml", "tiers", "signals", report, rows, source="x.jsonl")
    loaded = turnout.load_profile(out, config="")
    assert loaded.name == "mine"
    assert 'extends = "tiers"' in out.read_text(encoding="utf-8")
    assert [place.id for place in loaded.layers] == [place.id for place in profile.layers]
    assert report.after > report.before


def test_a_ranking_file_loads(tmp_path: Path) -> None:
    base = tmp_path / "base.toml"
    base.write_text(RANKING, encoding="utf-8")
    rng = np.random.default_rng(0)
    rows = [
        (f"{word} {number}", "red" if word in ("fire", "snow") else "blue")
        for number in range(30)
        for word in rng.permutation(["fire", "sun", "ice", "snow"])
    ]
    report = tune(turnout.load_profile(base, config=""), rows)
    out, _ = write_profile(tmp_path / "mine.toml", str(base), "local", report, rows, source="x.jsonl")
    place, config = find_signals(turnout.load_profile(out, config=""), None)
    written = shape_of(place, config).original().named(config)
    assert written == pytest.approx(report.numbers.named(config))


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("mine.txt", "a profile is a .toml file"),
        ("tiers.toml", "name of a shipped profile"),
        ("base.toml", "is that file"),
    ],
)
def test_a_wrong_place_is_refused(tmp_path: Path, out: str, said: str) -> None:
    base, rows, report = make(tmp_path)
    with pytest.raises(LearnError, match=said):
        write_profile(tmp_path / out, str(base), "signals", report, rows, source="x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["base.toml"]


def test_what_would_not_load_is_not_left_behind(tmp_path: Path) -> None:
    base, rows, report = make(tmp_path)
    wrong = report._replace(numbers=report.numbers._replace(weights=report.numbers.weights * 2))
    with pytest.raises(ConfigError, match="add up to 2"):
        write_profile(tmp_path / "mine.toml", str(base), "signals", wrong, rows, source="x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["base.toml"]
