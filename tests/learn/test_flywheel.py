"""The flywheel as a library: train, shadow, promote, look for drift and go back, without the command line."""

from pathlib import Path

import pytest

from assist_questions import chatter
from stub_students import own_home
from turnout import Query, load
from turnout.config.champion import champion_digest
from turnout.config.learning import LearnSettings
from turnout.config.load import load_profile
from turnout.layers.term_head import Terms
from turnout.learn.contest import open_contest, open_serving
from turnout.learn.dataset import Examples
from turnout.learn.drift import measure_drift
from turnout.learn.fit import FitSettings
from turnout.learn.promote import promote
from turnout.learn.registry import rollback
from turnout.learn.shadow import shadow_log
from turnout.learn.train import train
from turnout.store import open_store

PROFILE = """
name = "mine"
routes = ["RETRIEVAL", "CODE_GENERATION", "CONVERSATIONAL", "PLATFORM"]
fallback = { route = "RETRIEVAL" }

[[layers]]
kind = "student.v1"
optional = true
accept = { confidence = 0.85 }

[policy.RETRIEVAL]
[policy.CODE_GENERATION]
[policy.CONVERSATIONAL]
[policy.PLATFORM]
"""
SMALL = FitSettings(terms=Terms(buckets=1 << 14), folds=3)
ASKED = 60
SETTINGS = LearnSettings(shadow_decisions=ASKED, min_accuracy=0.5, max_loss=0.2, max_label_loss=0.5)


def test_round_and_round(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own_home(monkeypatch, tmp_path)
    file = tmp_path / "mine.toml"
    file.write_text(PROFILE)
    profile, rows = load_profile(file, config=""), chatter(400, seed=1)

    first = train(profile, Examples(tuple(rows)), settings=SMALL, share=0.35).manifest.digest
    done = promote(file, settings=LearnSettings(shadow_decisions=0, min_accuracy=0.5), config="")
    assert done.promoted, str(done)
    assert champion_digest("mine", "student") == first

    second = train(profile, Examples((*rows, *chatter(150, seed=2))), settings=SMALL, share=0.35).manifest.digest
    refused = promote(file, settings=SETTINGS, config="")
    assert [check.check for check in refused.failed] == ["shadow decisions"]
    router = load(file, config="")
    with open_store() as store:
        for row in chatter(ASKED, seed=9):
            store.record(router.route_sync(Query(row.text)))
        store.flush()
        found = shadow_log(open_contest(file, config=""), store)
        drift, since = measure_drift(open_serving(file, config=""), store)
    assert (found.shadow.champion, found.shadow.challenger) == (first, second)
    assert found.shadow.decisions == ASKED
    assert (drift.recent, drift.drifted) == (ASKED, ())
    assert since > 0

    assert promote(file, settings=SETTINGS, check=True, config="").passed
    assert champion_digest("mine", "student") == first, "only looked at"
    assert promote(file, settings=SETTINGS, who="ana", config="").promoted
    assert champion_digest("mine", "student") == second
    assert rollback("mine", "student").to == first
