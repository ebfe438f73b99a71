"""Asking the layers one by one says what the router says: same gates, same questions, same decisions."""

import pytest

import turnout
from turnout.config.cases import read_cases
from turnout.config.load import read_chain
from turnout.core.errors import LearnError
from turnout.core.query import Query, Reading
from turnout.core.verdict import Verdict
from turnout.learn.evaluate import evaluate
from turnout.learn.trial import decide_local, local_layers, try_layers
from turnout.testing import make_router, place


@pytest.mark.parametrize("name", ["tiers", "tiers-seed", "study", "sources", "assist", "claims"])
def test_the_cascade_is_the_routers(name: str) -> None:
    router = turnout.load(name, config="")
    cases = [case for case in read_cases(read_chain(name).cases) if case.text and not case.declared]  # type: ignore[arg-type]
    trial = try_layers(router.profile, [case.text for case in cases], [case.route for case in cases])
    assert len(trial.texts) + sum(trial.skipped.values()) == len(cases)
    answers, _, decided, _ = decide_local(trial, trial.gates())
    layers = {place.id for place in local_layers(router.profile)}
    assert decided.any()
    for text, answer, here in zip(trial.texts, answers, decided, strict=True):
        decision = router.route_sync(text)
        # A held verdict that the fallback uses was decided by nobody.
        by_layer = decision.by in layers and not decision.outcome.endswith("h")
        assert by_layer == here, text
        if here and not decision.outcome.endswith("k"):
            assert answer == " + ".join(decision.routes), text
    figures = evaluate(trial).cascade
    assert (figures.rows, figures.decided) == (len(trial.texts), int(decided.sum()))


def says(route: str, sure: float, *, decisive: bool = False) -> object:
    def judge(reading: Reading) -> Verdict:
        return Verdict((route,), sure, decisive=decisive)

    return judge


def test_every_layer_is_asked_and_failures_are_counted() -> None:
    def fails(reading: Reading) -> Verdict:
        raise RuntimeError("no")

    layers = [place(says("a", 0.9, decisive=True), "one"), place(fails, "two"), place(says("b", 0.4), "three")]
    profile = make_router(layers, ("a", "b"), name="x").profile
    trial = try_layers(profile, ["q", "r"], ["b", "oos"])
    assert [tried.routes for tried in trial.layers] == [("a", "a"), (None, None), ("b", "b")]
    assert [tried.right.tolist() for tried in trial.layers] == [[False, False], [False, False], [True, False]]
    assert trial.layers[1].faults == {"error: RuntimeError: no": 2}
    assert trial.foreign == {"oos": 1}


def test_behind_the_network_nothing_is_local() -> None:
    async def network(reading: Reading) -> Verdict | None:
        return None

    layers = [place(says("a", 0.9), "one"), place(network, "net", cost="network"), place(says("b", 0.9), "late")]
    profile = make_router(layers, ("a", "b"), name="x").profile
    assert [found.id for found in local_layers(profile)] == ["one"]
    alone = make_router([place(network, "net", cost="network")], ("a", "b"), name="x").profile
    with pytest.raises(LearnError, match="no local layer"):
        try_layers(alone, ["q"], ["a"])


def test_what_has_no_single_label_is_left_out() -> None:
    profile = turnout.load_profile("sources", config="")
    trial = try_layers(profile, ["Will it rain in Paris, and who won the game?", "weather in Rome"], ["a", "b"])
    assert len(trial.texts) == 1
    assert sum(trial.skipped.values()) == 1
    assert profile.read(Query("")).blank
