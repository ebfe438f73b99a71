"""Outcomes to gains: rows are read or refused with their line, gains are found where they were planted, thresholds do
what was asked, and what is written is what is served."""

import json
import math
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

import turnout
from page import check
from turnout.core.errors import ArtefactUnreadable, BadExamples, LearnError, TooFewExamples
from turnout.core.query import Query
from turnout.layers.artefact import Embedder
from turnout.layers.gain import Gain, GainConfig
from turnout.layers.gain_model import GainModel, read_gains
from turnout.learn.frontier import Aim, aim_for, apgr, centre, choose, find_point, trace
from turnout.learn.gain import (
    find_gain_layer,
    fit_confidence,
    fit_gains,
    mix_heads,
    price_tiers,
    read_inputs,
    train_gains,
)
from turnout.learn.outcome import Outcomes, read_outcomes
from turnout.learn.registry import write_artefact

PROFILE = turnout.load_profile("tiers", config="")
HARD = ("integral", "theorem", "eigenvalue", "topology")
EASY = ("weather", "capital", "colour", "birthday")
FILLER = ("tell", "me", "about", "the", "one", "we", "spoke", "of", "today", "please", "friend", "again")


def planted(count: int, seed: int = 0) -> list[dict]:
    """Hard words: SIMPLE is mostly wrong and COMPLEX right. Easy ones: both right. A tenth of it is noise."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        hard = bool(rng.random() < 0.5)
        words = [str(word) for word in rng.choice(FILLER, 5)]
        words.insert(2, str(rng.choice(HARD if hard else EASY)))
        simple = (0.1 if hard else 0.9) > rng.random()
        rows.append(
            {
                "text": f"{' '.join(words)} {number}",
                "outcomes": {"SIMPLE": int(simple), "COMPLEX": int(rng.random() < 0.9)},
            }
        )
    return rows


def write(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def as_outcomes(rows: list[dict]) -> Outcomes:
    quality = np.array([[row["outcomes"].get(tier, math.nan) for tier in ("SIMPLE", "COMPLEX")] for row in rows])
    return Outcomes(tuple(row["text"] for row in rows), ("SIMPLE", "COMPLEX"), quality, np.full(quality.shape, np.nan))


# --- rows


class Bad(NamedTuple):
    id: str
    row: str
    said: str


BAD = [
    Bad("no-json", "{", "not JSON"),
    Bad("no-object", "[1]", "not a JSON object"),
    Bad("no-text", '{"txt": "a", "outcomes": {"SIMPLE": 1, "COMPLEX": 0}}', "no field 'text'"),
    Bad("blank", '{"text": "  ", "outcomes": {"SIMPLE": 1, "COMPLEX": 0}}', "the text is empty"),
    Bad("number-text", '{"text": 3, "outcomes": {"SIMPLE": 1, "COMPLEX": 0}}', "must be text"),
    Bad("no-outcomes", '{"text": "a", "outcome": {"SIMPLE": 1}}', "did you mean 'outcome'"),
    Bad("one-tier", '{"text": "a", "outcomes": {"SIMPLE": 1}}', "at least two routes"),
    Bad("unknown", '{"text": "a", "outcomes": {"SIMPLE": 1, "COMPLEXX": 0}}', "did you mean 'COMPLEX'"),
    Bad("above-one", '{"text": "a", "outcomes": {"SIMPLE": 1, "COMPLEX": 7}}', "from 0 to 1"),
    Bad("negative", '{"text": "a", "outcomes": {"SIMPLE": 1, "COMPLEX": -1}}', "from 0 to 1"),
    Bad("words", '{"text": "a", "outcomes": {"SIMPLE": 1, "COMPLEX": "good"}}', "must be a number"),
    Bad("cost", '{"text": "a", "outcomes": {"SIMPLE": 1, "COMPLEX": 0}, "costs": {"SIMPLE": -2}}', "from 0 up"),
    Bad("costs", '{"text": "a", "outcomes": {"SIMPLE": 1, "COMPLEX": 0}, "costs": 3}', "'costs' must be"),
    Bad("twice", '{"text": "a", "outcomes": {"SIMPLE": 1, "simple": 0, "COMPLEX": 1}}', "another number already"),
]


def test_every_bad_row_is_reported_at_once_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "o.jsonl"
    path.write_text("\n".join(bad.row for bad in BAD) + "\n", encoding="utf-8")
    with pytest.raises(BadExamples) as raised:
        read_outcomes(path, PROFILE)
    problems = raised.value.problems
    assert [problem.where for problem in problems] == [f"{path}:{line}" for line in range(1, len(BAD) + 1)]
    for bad, problem in zip(BAD, problems, strict=True):
        assert bad.said in problem.message, bad.id


@pytest.mark.parametrize(("name", "content"), [("o.jsonl", ""), ("o.csv", "text,SIMPLE,COMPLEX\n")])
def test_a_file_without_rows_says_what_a_row_is(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(BadExamples, match="no rows in it"):
        read_outcomes(path, PROFILE)


def test_slots_partial_rows_and_costs_are_understood(tmp_path: Path) -> None:
    rows = [
        {"text": "a", "outcomes": {"complex": 1, "simple": 0}, "costs": {"simple": 1, "complex": 3}},
        {"text": "b", "outcomes": {"REASONING": 0.5, "SIMPLE": 1}, "costs": {"SIMPLE": 2}},
        {"text": "c", "outcomes": {"SIMPLE": True, "COMPLEX": False, "REASONING": None}},
    ]
    found = read_outcomes(write(tmp_path / "o.jsonl", rows), PROFILE)
    assert found.tiers == ("SIMPLE", "COMPLEX", "REASONING")
    np.testing.assert_array_equal(found.quality, [[0, 1, np.nan], [1, np.nan, 0.5], [1, 0, np.nan]])
    np.testing.assert_array_equal(found.costs[:, 0], [1, 2, np.nan])
    assert found.complete.tolist() == [False, False, False]
    assert found.counts() == {"SIMPLE": 3, "COMPLEX": 2, "REASONING": 1}
    assert "3 of 3 rows lack some tier" in found.remarks[0]


def test_csv_says_the_same_as_jsonl(tmp_path: Path) -> None:
    rows = [{"text": 'a, "b"\nc', "outcomes": {"SIMPLE": 0, "COMPLEX": 1}, "costs": {"SIMPLE": 0.5}}]
    path = tmp_path / "o.csv"
    path.write_text('text,SIMPLE,COMPLEX,cost.SIMPLE\n"a, ""b""\nc",0,1,0.5\n', encoding="utf-8")
    one, other = read_outcomes(path, PROFILE), read_outcomes(write(tmp_path / "o.jsonl", rows), PROFILE)
    assert one.texts == other.texts
    assert one.digest() == other.digest()
    path.write_text("text,SIMPLE,COMPLEX\na,0,1\nb,x,1\n", encoding="utf-8")
    with pytest.raises(BadExamples, match=r"o\.csv:3: column 'SIMPLE': 'x' is not a number"):
        read_outcomes(path, PROFILE)


def test_the_digest_knows_content_not_order(tmp_path: Path) -> None:
    rows = planted(20)
    one = read_outcomes(write(tmp_path / "a.jsonl", rows), PROFILE).digest()
    assert read_outcomes(write(tmp_path / "b.jsonl", rows[::-1]), PROFILE).digest() == one
    rows[3]["outcomes"]["SIMPLE"] = 1 - rows[3]["outcomes"]["SIMPLE"]
    assert read_outcomes(write(tmp_path / "c.jsonl", rows), PROFILE).digest() != one


# --- the curve


def test_apgr_of_known_scores() -> None:
    weak = np.array([0.0, 0.0, 1.0, 1.0] * 25)
    strong = np.ones(100)
    knows = 1.0 - weak + np.linspace(0, 0.1, 100)
    # Every gain is in the upper half of the scores: up to half the calls recover all, in a straight line.
    assert apgr(knows, weak, strong) == pytest.approx(0.75, abs=0.01)
    assert apgr(-knows, weak, strong) == pytest.approx(0.25, abs=0.01)
    coins = [apgr(np.random.default_rng(seed).random(100), weak, strong) for seed in range(200)]
    assert np.mean(coins) == pytest.approx(0.5, abs=0.01)
    assert apgr(np.zeros(100), weak, strong) == pytest.approx(0.5)


def test_prices_sweep_from_cheapest_to_most_expensive() -> None:
    rng = np.random.default_rng(0)
    quality = (rng.random((400, 3)) < [0.4, 0.6, 0.8]).astype(float)
    gains = (quality - quality[:, :1]) * 0.3 + rng.normal(0, 0.1, (400, 3)) + [0.0, 0.2, 0.4]
    gains -= gains[:, :1]
    curve = trace(gains, quality, np.array([1.0, 2.0, 5.0]))
    assert curve[0].shares == (1.0, 0.0, 0.0)
    assert curve[-1].shares == (0.0, 0.0, 1.0)
    costs = [point.cost for point in curve]
    assert costs == sorted(costs)
    assert (curve[0].kept, curve[-1].kept) == (0.0, 1.0)


class WantedCase(NamedTuple):
    id: str
    aim: Aim


AIMS = [
    WantedCase("keep-90", Aim("keep_quality", 0.9)),
    WantedCase("keep-50", Aim("keep_quality", 0.5)),
    WantedCase("budget-50", Aim("budget", 0.5)),
    WantedCase("budget-0", Aim("budget", 0.0)),
    WantedCase("max-cost", Aim("max_cost", 1.25)),
]


@pytest.mark.parametrize("case", AIMS, ids=lambda case: case.id)
def test_thresholds_do_what_was_asked(case: WantedCase) -> None:
    rng = np.random.default_rng(1)
    quality = (rng.random((500, 2)) < [0.5, 0.9]).astype(float)
    gains = np.column_stack([np.zeros(500), (quality[:, 1] - quality[:, 0]) * 0.5 + rng.normal(0, 0.2, 500) + 0.3])
    curve = trace(gains, quality, np.array([1.0, 2.0]))
    point, remark = find_point(curve, case.aim)
    assert not remark
    others = [other for other in curve if other.price >= 0.0]
    if case.aim.by == "keep_quality":
        assert point.kept >= case.aim.value
        assert point.cost == min(other.cost for other in others if other.kept >= case.aim.value)
    else:
        most = case.aim.value if case.aim.by == "max_cost" else 1.0 + case.aim.value
        assert point.cost <= most + 1e-9
        assert point.quality == max(other.quality for other in others if other.cost <= most + 1e-9)


def test_an_aim_that_cannot_be_served_says_so() -> None:
    quality = np.column_stack([np.ones(100), np.zeros(100)])
    gains = np.column_stack([np.zeros(100), np.linspace(-1, 0.5, 100)])
    point, remark = find_point(trace(gains, quality, np.array([1.0, 2.0])), Aim())
    assert point.shares == (1.0, 0.0)
    assert "answers no better than the cheapest" in remark
    _, remark = find_point(trace(gains, quality, np.array([1.0, 2.0])), Aim("max_cost", 0.5))
    assert "even the cheapest tier costs 1" in remark


def test_tiers_of_one_price_at_either_end() -> None:
    rng = np.random.default_rng(0)
    quality = (rng.random((300, 4)) < [0.4, 0.3, 0.9, 0.8]).astype(float)
    gains = rng.normal(0.0, 0.3, (300, 4))
    gains -= gains[:, :1]
    curve = trace(gains, quality, np.array([1.0, 1.0, 5.0, 5.0]))
    assert (curve[0].shares[0], curve[-1].shares[3]) == (1.0, 1.0)
    assert curve[-1].kept == 1.0
    point, _ = find_point(curve, Aim("keep_quality", 1.0))
    assert point.kept >= 1.0
    with pytest.raises(LearnError, match="every tier costs the same"):
        trace(gains, quality, np.ones(4))


def test_a_price_keeps_away_from_the_rows_it_parts() -> None:
    gains = np.column_stack([np.zeros(6), [0.0, 0.02, 0.04, 0.8, 0.9, 1.0]])
    for price in (0.04, 0.3, 0.79):
        assert centre(price, gains, [0.0, 1.0]) == pytest.approx(0.42)
    assert centre(0.0, gains, [0.0, 1.0]) == 0.0
    assert centre(math.inf, gains, [0.0, 1.0]) == math.inf
    before, after = choose(gains, [0.0, 1.0], 0.85), choose(gains, [0.0, 1.0], centre(0.85, gains, [0.0, 1.0]))
    assert before.tolist() == after.tolist() == [0, 0, 0, 0, 1, 1]


def test_one_aim_at_a_time() -> None:
    assert aim_for() == Aim("keep_quality", 0.95)
    assert aim_for(budget=0.5) == Aim("budget", 0.5)
    with pytest.raises(LearnError, match="--keep-quality and --budget: state one aim"):
        aim_for(keep_quality=0.9, budget=0.5)
    for wrong in ({"keep_quality": 1.5}, {"budget": -0.1}, {"max_cost": math.nan}):
        with pytest.raises(LearnError, match="it must be"):
            aim_for(**wrong)


def test_equal_worth_goes_to_the_cheapest() -> None:
    assert choose(np.array([[0.0, 0.5, 1.0]]), [0.0, 0.5, 1.0], 1.0).tolist() == [0]


# --- the fit


def test_planted_gains_are_found_on_rows_not_seen() -> None:
    rows, test = planted(600), planted(400, seed=1)
    outcomes = as_outcomes(rows)
    fitted = fit_gains(outcomes, read_inputs([row["text"] for row in rows]))
    model = GainModel(fitted.draft, fitted.weights)
    unseen = np.array([model.weigh(row["text"]).gains[1] for row in test])
    quality = as_outcomes(test).quality
    hard = np.array([any(word in row["text"] for word in HARD) for row in test])
    assert unseen[hard].mean() > 0.5
    assert abs(unseen[~hard].mean()) < 0.15
    assert apgr(unseen, quality[:, 0], quality[:, 1]) > 0.7
    # The mixed gain is calibrated: on the whole it is what really is gained.
    assert unseen.mean() == pytest.approx((quality[:, 1] - quality[:, 0]).mean(), abs=0.08)
    metrics = fitted.text.metrics
    assert metrics["kept"] >= 0.95
    assert metrics["cost_share"] < 0.75
    assert metrics["ece"] < 0.08


def test_what_both_get_wrong_is_no_gain() -> None:
    """The dear model's price buys nothing where it fails as well: not how hard a question is, but what it gains."""
    rows = planted(600)
    for row in rows:
        if any(word in row["text"] for word in ("integral", "theorem")):
            row["outcomes"] = {"SIMPLE": 0, "COMPLEX": 0}
    fitted = fit_gains(as_outcomes(rows), read_inputs([row["text"] for row in rows]))
    gains = fitted.text.gains[:, 1]
    hopeless = np.array([any(word in row["text"] for word in ("integral", "theorem")) for row in rows])
    useful = np.array([any(word in row["text"] for word in ("eigenvalue", "topology")) for row in rows])
    assert gains[useful].mean() > gains[hopeless].mean() + 0.4


def test_noise_teaches_nothing_and_says_little() -> None:
    rng = np.random.default_rng(0)
    rows = planted(400)
    for row in rows:
        row["outcomes"] = {"SIMPLE": int(rng.random() < 0.5), "COMPLEX": int(rng.random() < 0.8)}
    fitted = fit_gains(as_outcomes(rows), read_inputs([row["text"] for row in rows]))
    assert np.std(fitted.text.gains[:, 1]) < 0.1
    assert fitted.text.metrics["apgr"] == pytest.approx(0.5, abs=0.12)


def test_partial_rows_teach() -> None:
    """Half of the rows never asked SIMPLE: their word about COMPLEX and REASONING still counts."""
    rows = planted(600)
    rng = np.random.default_rng(0)
    quality = np.full((600, 3), np.nan)
    for at, row in enumerate(rows):
        hard = any(word in row["text"] for word in HARD)
        quality[at] = [not hard, 1.0 if not hard else 0.5, 1.0]
    quality[rng.random(600) < 0.5, 0] = np.nan
    outcomes = Outcomes(
        tuple(row["text"] for row in rows), ("SIMPLE", "COMPLEX", "REASONING"), quality, np.full((600, 3), np.nan)
    )
    fitted = fit_gains(outcomes, read_inputs(outcomes.texts))
    hard = np.array([any(word in text for word in HARD) for text in outcomes.texts])
    gains = fitted.text.gains
    assert gains[hard, 1].mean() == pytest.approx(0.5, abs=0.1)
    assert gains[hard, 2].mean() == pytest.approx(1.0, abs=0.15)
    assert np.abs(gains[~hard]).mean() < 0.1


def test_the_same_rows_and_seed_fit_the_same() -> None:
    rows = planted(200)
    one, two = (fit_gains(as_outcomes(rows), read_inputs([row["text"] for row in rows]), seed=3) for _ in range(2))
    assert one.text.setting == two.text.setting
    np.testing.assert_array_equal(one.weights["ngram"], two.weights["ngram"])


def test_too_few_complete_rows_are_refused() -> None:
    rows = planted(99)
    with pytest.raises(TooFewExamples, match="99 rows with an outcome for each of SIMPLE, COMPLEX"):
        fit_gains(as_outcomes(rows), read_inputs([row["text"] for row in rows]))


def test_costs_come_from_rows_then_profile_then_steps() -> None:
    nobody = as_outcomes(planted(4))
    assert price_tiers(nobody, None)[0] == (0.0, 1.0)
    assert price_tiers(nobody, {"SIMPLE": 2.0, "COMPLEX": 9.0})[0] == (2.0, 9.0)
    said = nobody._replace(costs=np.array([[1.0, 5.0], [3.0, np.nan], [np.nan, 7.0], [2.0, 6.0]]))
    assert price_tiers(said, {"SIMPLE": 2.0, "COMPLEX": 9.0}) == ((2.0, 6.0), "")


def test_a_head_that_knows_gets_the_weight() -> None:
    rng = np.random.default_rng(0)
    quality = np.column_stack([np.zeros(500), rng.random(500)])
    knows = np.column_stack([np.zeros(500), quality[:, 1] * 2.0])
    guesses = np.column_stack([np.zeros(500), rng.random(500)])
    contrary = np.column_stack([np.zeros(500), -quality[:, 1]])
    heads, _ = mix_heads({"ngram": knows, "shape": guesses}, quality)
    assert heads["ngram"] == pytest.approx(0.5, abs=0.02)
    assert heads["shape"] < 0.05
    assert mix_heads({"vector": contrary}, quality)[0] == {"vector": 0.0}


def test_confidence_falls_with_what_is_lost() -> None:
    rng = np.random.default_rng(0)
    gain = rng.random(2000)
    quality = np.column_stack([np.zeros(2000), (rng.random(2000) < gain).astype(float)])
    curve = fit_confidence(np.column_stack([np.zeros(2000), gain]), quality, 0)
    for regret in (0.2, 0.5, 0.8):
        assert curve.at(regret) == pytest.approx(1.0 - regret, abs=0.08)
    never = fit_confidence(np.column_stack([np.zeros(50), np.ones(50)]), np.ones((50, 2)), 0)
    assert 0.9 < never.at(1.0) < 1.0


# --- the artefact


class Letters:
    """An embedder for tests: which of the words occur."""

    name, width = "letters-1", len(HARD + EASY)

    def embed(self, texts: list[str], /) -> np.ndarray:
        found = np.array([[float(word in text) for word in HARD + EASY] for text in texts], dtype=np.float32)
        return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("gain")
    path = write(folder / "o.jsonl", planted(400))
    return train_gains(PROFILE, path, out=folder / "artefact", embedder=Letters(), aim=Aim("keep_quality", 0.9))


def test_what_is_written_is_what_was_fitted(trained) -> None:
    gains = read_gains(trained.folder)
    assert gains.manifest == trained.manifest
    assert gains.manifest.kind == "gain"
    assert gains.manifest.tiers == ("SIMPLE", "COMPLEX")
    assert gains.manifest.costs == (0.85, 6.0)
    fitted = GainModel(trained.manifest, trained.fitted.weights)
    texts = [row["text"] for row in planted(50, seed=2)]
    vectors = Letters().embed(texts)
    for tuned, with_vector in ((trained.fitted.text, False), (trained.fitted.vector, True)):
        for text, vector in zip(texts, vectors, strict=True):
            found = gains.weigh(text, vector if with_vector else None)
            assert found == fitted.weigh(text, vector if with_vector else None)
            assert found.with_vector is with_vector
            assert found.chosen == choose(np.array([found.gains]), gains.manifest.costs, tuned.setting.price)[0]


def test_what_is_unlike_the_training_rows_is_told_from_what_is_like_them(trained) -> None:
    gains = read_gains(trained.folder)
    like = [row["text"] for row in planted(200, seed=5)]
    unlike = ["hi", "thanks!", "你好", "x" * 5000, "def f(x):\n    return x\n" * 40, "ключ на старт"]
    for texts, vectors in ((like, Letters().embed(like)), (like, [None] * len(like))):
        found = [gains.is_unlike(text, vector) for text, vector in zip(texts, vectors, strict=True)]
        # Three limits of one in 200 each, and what 200 rows may be off by.
        assert np.mean(found) <= 0.05
    for text in unlike:
        assert gains.is_unlike(text), text
        assert gains.is_unlike(text, Letters().embed([text])[0]), text
    assert 0.0 <= trained.manifest.metrics["passed"] <= 0.015


def test_a_vector_alone_can_be_unlike(trained) -> None:
    gains = read_gains(trained.folder)
    text = next(row["text"] for row in planted(50, seed=6) if not gains.is_unlike(row["text"]))
    assert not gains.is_unlike(text, Letters().embed([text])[0])
    assert gains.is_unlike(text, -Letters().embed([text])[0])


def test_a_model_that_does_not_say_what_its_rows_were_like_judges_everything(trained, tmp_path: Path) -> None:
    """As one of an earlier version does; its manifest is written as it was then, so its digest holds."""
    weights = {name: array for name, array in trained.fitted.weights.items() if not name.startswith("scope_")}
    write_artefact(tmp_path, replace(trained.manifest, scope=msgspec.UNSET), weights)
    assert b"scope" not in (tmp_path / "manifest.json").read_bytes()
    gains = read_gains(tmp_path)
    assert not gains.is_unlike("hi")
    assert Gain(GainConfig(), gains)(PROFILE.read(Query("hi"))) is not None
    assert Gain(GainConfig(), read_gains(trained.folder))(PROFILE.read(Query("hi"))) is None


def test_a_model_of_the_version_before_is_read_with_todays_names(trained, tmp_path: Path) -> None:
    """Its digest covers the names its metrics had, so that the file stays as it is."""
    named = {name.replace("_most_expensive", "_dearest"): value for name, value in trained.manifest.metrics.items()}
    assert {"quality_dearest", "cost_dearest"} <= set(named)
    before = write_artefact(tmp_path, replace(trained.manifest, metrics=named), trained.fitted.weights)
    assert before.digest != trained.manifest.digest
    found = read_gains(tmp_path).manifest
    assert found.digest == before.digest
    assert found.metrics == trained.manifest.metrics


def test_the_card_is_one_page_with_its_curve(trained) -> None:
    card = (trained.folder / "card.html").read_text(encoding="utf-8")
    assert trained.manifest.digest in card
    page = check(card)
    assert [attributes.get("aria-label") for tag, attributes in page.tags if tag == "svg"] == ["Cost and quality"]
    assert "of the quality gap" in page.text
    assert "always SIMPLE" in page.text


def test_the_digest_names_data_and_seed(trained, tmp_path: Path) -> None:
    path = write(tmp_path / "o.jsonl", planted(400))
    again = train_gains(PROFILE, path, out=tmp_path / "a", embedder=Letters(), aim=Aim("keep_quality", 0.9))
    assert again.manifest.digest == trained.manifest.digest
    other = train_gains(PROFILE, path, out=tmp_path / "b", aim=Aim("keep_quality", 0.9))
    assert other.manifest.digest != trained.manifest.digest


class BrokenCase(NamedTuple):
    id: str
    said: str


BROKEN = [
    BrokenCase("no-weights", "cannot be read"),
    BrokenCase("changed-weights", "not the file its manifest was written for"),
    BrokenCase("changed-price", "it was changed after it was written"),
    BrokenCase("other-format", "format 9"),
    BrokenCase("a-student", "not the manifest of a model of gains"),
    BrokenCase("no-json", "not the manifest of a model of gains"),
]


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.id)
def test_a_damaged_artefact_is_refused(trained, tmp_path: Path, case: BrokenCase) -> None:
    for name in ("manifest.json", "weights.npz"):
        (tmp_path / name).write_bytes((trained.folder / name).read_bytes())
    manifest = json.loads((tmp_path / "manifest.json").read_bytes())
    match case.id:
        case "no-weights":
            (tmp_path / "weights.npz").unlink()
        case "changed-weights":
            (tmp_path / "weights.npz").write_bytes((tmp_path / "weights.npz").read_bytes() + b" ")
        case "changed-price":
            manifest["text"]["price"] = 0.0
        case "other-format":
            manifest["format"] = 9
        case "a-student":
            manifest["kind"] = "student"
    content = b"{" if case.id == "no-json" else msgspec.json.encode(manifest)
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(ArtefactUnreadable, match=case.said):
        read_gains(tmp_path)


def test_a_profile_without_a_gain_layer_is_told(tmp_path: Path) -> None:
    with pytest.raises(LearnError, match=r"profile 'tiers-seed' has no gain\.v1 layer"):
        train_gains(turnout.load_profile("tiers-seed", config=""), tmp_path / "o.jsonl", out=tmp_path / "a")
    with pytest.raises(LearnError, match=r"no gain\.v1 layer 'other'"):
        find_gain_layer(PROFILE, "other")


def test_vectors_of_a_named_embedder(trained) -> None:
    assert trained.manifest.embedder == Embedder("letters-1", 8)
    assert trained.manifest.vector is not None
