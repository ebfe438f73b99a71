"""A profile that was renamed is found by its old name wherever one is named, and says which name to use now."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest

import turnout
from layers.test_gain import write_model
from turnout.config import champion
from turnout.config.load import shipped
from turnout.config.name import RENAMED, OldNameWarning, current_name, old_names
from turnout.learn import registry
from turnout.learn.contest import find_trained
from turnout.learn.dataset import read_examples

OLD = sorted(RENAMED.items())


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr("sys.platform", "linux")
    return tmp_path


def test_old_names_lead_to_profiles_that_ship() -> None:
    assert set(RENAMED.values()) <= set(shipped())
    assert not RENAMED.keys() & set(shipped())
    # The log is asked for two of them.
    assert max(len(old_names(name)) for name in shipped()) <= 2
    assert [current_name(name) for name in ("tiers", "mine", "")] == ["tiers", "mine", ""]


@pytest.mark.parametrize(("old", "new"), OLD)
def test_an_old_name_loads_what_it_has_become_and_warns_once(old: str, new: str) -> None:
    with pytest.warns(OldNameWarning, match=f"the profile '{old}' is now '{new}': use that name") as seen:
        router = turnout.load(old, config="")
    assert len(seen) == 1
    assert seen[0].filename == __file__
    assert (router.profile.name, router.profile.hash) == (new, turnout.load(new, config="").profile.hash)


@pytest.mark.parametrize(("old", "new"), OLD)
def test_a_file_may_extend_an_old_name(old: str, new: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(f'name = "mine"\nextends = "{new}"\n')
    wanted = turnout.load_profile(file, config="")
    file.write_text(f'name = "mine"\nextends = "{old}"\n')
    with pytest.warns(OldNameWarning, match=rf"mine\.toml:2 extends: the profile '{old}' is now '{new}'"):
        found = turnout.load_profile(file, config="")
    assert (found.name, found.hash) == ("mine", wanted.hash)
    assert turnout.LiveRouter(file, config="").router.profile.notices == found.notices


class Settings(NamedTuple):
    id: str
    text: str
    accept: float


SETTINGS = [
    Settings("an old table", "[tiers-local]\naccept_confidence = 0.9\n", 0.9),
    Settings(
        "the profile's own wins", "[tiers]\naccept_confidence = 0.8\n[tiers-learned]\naccept_confidence = 0.9\n", 0.8
    ),
]


@pytest.mark.parametrize("case", SETTINGS, ids=lambda case: case.id)
def test_settings_under_an_old_name_are_applied(case: Settings, tmp_path: Path) -> None:
    config = tmp_path / "turnout.toml"
    config.write_text(case.text)
    with pytest.warns(OldNameWarning, match=r"turnout\.toml:\d \[tiers-.*\]: the profile .* is now 'tiers'"):
        profile = turnout.load_profile("tiers", config=config)
    assert next(place.gate.confidence for place in profile.layers if place.id == "signals") == case.accept
    # Whose table it is not is not told.
    assert turnout.load_profile("study", config=config).notices == ()


def promote_before(home: Path) -> str:
    """A gain model, promoted when its profile was called `tiers-learned`."""
    made = write_model(home / "made", tiers=("SIMPLE", "MEDIUM", "COMPLEX", "REASONING"), offsets=(0.0, 0.0, 0.0, 0.9))
    digest = str(json.loads((made / "manifest.json").read_bytes())["digest"])
    shelf = home / "data/turnout/students/tiers-learned/gain"
    shelf.mkdir(parents=True)
    made.rename(shelf / digest)
    (shelf / "champion").write_text(f"{digest}\n")
    return digest


def test_a_model_promoted_under_an_old_name_serves(home: Path) -> None:
    digest = promote_before(home)
    assert "gain" in [place.id for place in turnout.load_profile("tiers", config="").layers if place.call is not None]
    # It is asked where the student is not sure.
    heir = home / "mine.toml"
    heir.write_text('name = "mine"\nextends = "tiers-learned"\n[[layers]]\nid = "student"\ndrop = true\n')
    with pytest.warns(OldNameWarning):
        assert turnout.load(heir, config="").route_sync("zzzq").by == "gain"
    assert [one.digest for one in registry.candidates("tiers", "gain")] == [digest]
    assert champion.layers_with_models("tiers") == ["gain"]
    # It is what `turnout student` is about where no layer is named.
    layers = turnout.load_profile("tiers", config="").resolved["layers"]
    assert find_trained("tiers", layers)[0] == "gain"


def test_its_shelf_goes_on_under_the_old_name(home: Path) -> None:
    digest = promote_before(home)
    registry.set_champion("tiers", "gain", champion.SHIPPED)
    assert champion.find_champion("tiers", "gain") is None
    registry.set_champion("tiers", "gain", digest)
    found = champion.find_champion("tiers", "gain")
    assert found is not None
    assert found.name == digest
    assert [change.to for change in registry.read_history("tiers-learned", "gain")] == [champion.SHIPPED, digest]
    assert not (home / "data/turnout/students/tiers").exists()


def test_without_models_the_first_layer_is_meant() -> None:
    layers = turnout.load_profile("tiers", config="").resolved["layers"]
    assert find_trained("tiers", layers)[0] == "student"


def test_rows_of_an_old_name_are_examples(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    rows = [{"text": f"{name} asks", "label": "SIMPLE", "profile": name} for name in ("tiers", "tiers-local", "study")]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = read_examples(file, profile="tiers")
    assert [row.text for row in found.rows] == ["tiers asks", "tiers-local asks"]
