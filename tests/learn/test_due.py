"""When training is due: counted once, from the newest model on, and only what can be learnt from."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from stub_students import KNOWN, Pupil, log, made, own_home, with_pupil
from turnout.config.learning import LearnSettings, learn_settings
from turnout.core.errors import ConfigError
from turnout.learn import registry
from turnout.learn.drift import is_due
from turnout.learn.registry import made_ms, trained_ms
from turnout.store import Store, open_store

A, B = "a" * 16, "b" * 16
FEW = LearnSettings(retrain_sessions=5, retrain_corrections=2)


@pytest.fixture(autouse=True)
def _home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own_home(monkeypatch, tmp_path)


@pytest.fixture
def store(tmp_path: Path):  # type: ignore[no-untyped-def]
    with open_store(str(tmp_path / "log.db")) as opened:
        yield opened


def talk(store: Store, *sessions: str | None, tenant: str | None = None) -> list[str]:
    router = with_pupil(Pupil(KNOWN))
    return [ident for session in sessions for ident in log(store, router, "the manual", session=session, tenant=tenant)]


def test_sessions_are_counted_and_not_questions(store: Store) -> None:
    talk(store, "one", "one", "one", "two", "three", "four")
    found = is_due(store, "mine", FEW)
    assert not found
    assert (found.sessions, found.sessions_needed) == (4, 5)
    assert "4 of 5" in str(found)
    talk(store, "five")
    assert is_due(store, "mine", FEW)
    assert not is_due(store, "other", FEW), "another profile's traffic is not this one's"


def test_questions_without_a_session_are_conversations_of_their_own(store: Store) -> None:
    talk(store, *[None] * 5)
    assert is_due(store, "mine", FEW).sessions == 5


def test_every_tenant_counts_and_their_sessions_are_not_mixed_up(store: Store) -> None:
    talk(store, "one", "two", tenant="ana")
    talk(store, "one", "two", tenant="bo")
    assert is_due(store, "mine", FEW).sessions == 4


def test_corrections_make_it_due_and_praise_does_not(store: Store) -> None:
    first, second, third = talk(store, "one", "two", "three")
    records = store.records()
    records.judge(first, "wrong", should_be="code", by="ana")
    records.judge(second, "right", by="ana")
    assert is_due(store, "mine", FEW).corrections == 1
    records.judge(third, "wrong", by="ana")
    found = is_due(store, "mine", FEW)
    assert found.due
    assert "corrections" in str(found)
    assert not is_due(store, "mine", LearnSettings(retrain_sessions=5, retrain_corrections=0))


def test_it_counts_from_the_newest_model_even_if_that_does_not_serve(store: Store, tmp_path: Path) -> None:
    talk(store, *"abcde")
    assert is_due(store, "mine", FEW)
    registry.put(made(tmp_path, A), "mine", "student")
    time.sleep(0.01)
    found = is_due(store, "mine", FEW)
    assert not found.due
    assert found.sessions == 0
    assert found.since_ms > 0
    talk(store, *"fghij")
    assert is_due(store, "mine", FEW)
    # Trained again with the same result: that was a training all the same.
    registry.put(made(tmp_path, A), "mine", "student")
    time.sleep(0.01)
    assert not is_due(store, "mine", FEW)


def test_text_that_was_not_kept_is_said(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "hash.db"), text="hash") as store:
        talk(store, *"abcdef")
        found = is_due(store, "mine", FEW)
        assert not found
        assert found.unread == 6
        assert "[store]" in str(found)


def test_drift_is_asked_about_only_if_nothing_else_is_due(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def drifted(*_: object) -> tuple[str, ...]:
        asked.append(True)
        return ("route mix",)

    monkeypatch.setattr("turnout.learn.drift.find_drift", drifted)
    found = is_due(store, "mine", FEW)
    assert found.due
    assert found.drifted == ("route mix",)
    assert "route mix" in str(found)
    talk(store, *"abcde")
    is_due(store, "mine", FEW)
    assert len(asked) == 1


NOW = datetime.now(UTC)
CREATED = [
    ((NOW + timedelta(days=400)).isoformat(), "a date in the future"),
    ("2020-01-01T00:00:00Z", "before it was put there"),
    (None, "nothing"),
    ("yesterday", "no date"),
    (True, "no number"),
    (1.6e9, "seconds"),
]


@pytest.mark.parametrize(("created", "what"), CREATED, ids=[what for _, what in CREATED])
def test_a_model_is_as_old_as_it_stands_there(tmp_path: Path, created: object, what: str) -> None:
    registry.put(made(tmp_path, A, created=created), "mine", "student")
    (model,) = registry.candidates("mine", "student")
    assert abs(made_ms(model) - time.time() * 1000) < 60_000
    assert trained_ms("mine", "student") == made_ms(model)
    assert trained_ms("mine", "other") == 0


def test_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "turnout.toml"
    file.write_text("[learn]\nretrain_sessions = 20\nauto_promote = true\n")
    assert learn_settings(file) == LearnSettings(retrain_sessions=20, auto_promote=True)
    assert learn_settings("") == LearnSettings()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[learn]\nmin_acuracy = 0.8", "min_accuracy"),
        ("[learn]\nconfidence = 1.0", "confidence"),
        ("[learn]\nretrain_sessions = 0", "retrain_sessions"),
        ("[lern]\nauto_promote = true", "'learn'"),
        ("learn = 3", "learn"),
    ],
)
def test_settings_that_are_wrong(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "turnout.toml"
    file.write_text(text + "\n")
    with pytest.raises(ConfigError, match=said):
        learn_settings(file)
