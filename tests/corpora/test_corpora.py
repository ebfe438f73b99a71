"""Every shipped profile against its golden cases: `must` rows hold, measured accuracy does not fall."""

import json
from collections import Counter

import pytest

from corpora.measure import BASELINE, Case, case_file, cases, measure, measured, profiles, render, router
from turnout.config.cases import run_cases

# Accuracy may move this much, in points of a hundred, before it counts as a fall: one or two rows of 300.
SLACK = 0.5
# Below this many rows a point of accuracy is less than a row.
LEAST_MEASURED = {
    **{"study": 300, "tiers": 300},
    **{"sources": 120, "claims": 120, "assist": 120},
}
# Whether a question matches a card is a fact about the cards: no text alone can be labelled so.
NOT_MEASURED = {"claims": {"exact_match"}}

PROFILES = profiles()
WITH_MEASURED = [profile for profile in PROFILES if measured(profile)]
MUST = [pytest.param(profile, case, id=case.id) for profile in PROFILES for case in cases(profile) if case.must]


@pytest.mark.parametrize(("profile", "case"), MUST)
def test_must_row_holds(profile: str, case: Case) -> None:
    [result] = run_cases(router(profile), [case])
    assert not result.misses, case.why


@pytest.mark.parametrize("profile", WITH_MEASURED)
def test_measured_accuracy_does_not_fall(profile: str) -> None:
    score = measure(profile)
    print(render(profile, score))
    recorded = json.loads(BASELINE.read_text(encoding="utf-8"))[profile]
    assert score.rows == recorded["rows"], "the cases changed: run tests/corpora/measure.py --write"
    assert score.accuracy >= recorded["accuracy"] - SLACK


def test_baseline_names_measured_profiles() -> None:
    assert sorted(json.loads(BASELINE.read_text(encoding="utf-8"))) == sorted(WITH_MEASURED)


@pytest.mark.parametrize("profile", PROFILES)
def test_named_file_exists(profile: str) -> None:
    file = case_file(profile)
    assert file is not None
    assert file.is_file()


@pytest.mark.parametrize("profile", PROFILES)
def test_no_question_twice(profile: str) -> None:
    asked = Counter(case.query() for case in cases(profile))
    assert [query for query, times in asked.items() if times > 1] == []


@pytest.mark.parametrize("profile", PROFILES)
def test_ids_name_their_profile(profile: str) -> None:
    assert [case.id for case in cases(profile) if not case.id.startswith(f"{profile}-")] == []


@pytest.mark.parametrize("profile", PROFILES)
def test_wanted_routes_exist(profile: str) -> None:
    routes = router(profile).profile.routes
    wanted = {case.id: {case.route, *case.routes} for case in cases(profile)}
    for case in cases(profile):
        wanted[case.id].update(route for part in case.parts or () for route in part.routes)
    assert [id for id, names in wanted.items() if not names <= set(routes)] == []


@pytest.mark.parametrize(("profile", "least"), LEAST_MEASURED.items())
def test_measured_rows_are_many_and_balanced(profile: str, least: int) -> None:
    wanted = Counter(case.route for case in measured(profile))
    routes = [route for route in router(profile).profile.routes if route not in NOT_MEASURED.get(profile, ())]
    assert wanted.total() >= least
    # No route has less than half its even share.
    assert min(wanted[route] for route in routes) >= wanted.total() / len(routes) / 2


@pytest.mark.parametrize("profile", WITH_MEASURED)
def test_measured_rows_claim_only_routes(profile: str) -> None:
    plain = {case.id: Case(case.id, case.route, case.routes, text=case.text, must=False) for case in measured(profile)}
    assert [case.id for case in measured(profile) if case != plain[case.id]] == []


def phrases(profile: str) -> list[tuple[str, str]]:
    """Each keyword of a profile with its route."""
    lists = [layer["phrases"] for layer in router(profile).profile.resolved["layers"] if "phrases" in layer]
    return [
        (route, word) for words in lists for route in words for phrase in words[route] for word in phrase.split("|")
    ]


@pytest.mark.parametrize("profile", [profile for profile in PROFILES if phrases(profile)])
def test_every_keyword_has_a_must_row(profile: str) -> None:
    shown = {(route, case.text) for case in cases(profile) if case.must for route in case.routes}
    assert [phrase for phrase in phrases(profile) if phrase not in shown] == []
