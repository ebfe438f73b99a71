"""`turnout serve`, `doctor` and `models list` over every file that can be broken: a sentence, never a traceback."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from broken_files import ANYWHERE, IN_A_KEY, IN_JSONL, IN_TOML, BrokenFile, put
from clean_environment import clear_environment
from turnout.config import champion
from turnout.config.load import shipped_file

Run = Callable[..., Any]

PROFILE = """\
name = "mine"
routes = ["first", "second"]
fallback = { route = "second" }
cases = "mine.jsonl"
[[layers]]
kind = "rules.v1"
[[layers.rules]]
id = "word"
route = "first"
when = { any = ["parcel"] }
[policy.first]
[policy.second]
"""
SETTINGS = """\
[server]
profile = "{folder}/mine.toml"
[models.simple]
model = "mine/x"
base_url = "http://127.0.0.1:9/v1"
key = {{ file = "{folder}/key" }}
"""
COMMANDS = ("serve", "doctor", "models list")
# A command that does not need the file goes on without a word.
NEEDS: dict[str, tuple[str, ...]] = {
    "settings": COMMANDS,
    "key": COMMANDS,
    "profile": ("serve", "doctor"),
    "cases": ("serve", "doctor"),
    "pepper": ("serve", "doctor"),
    "embedder": ("serve", "doctor"),
    "champion": ("doctor",),  # of a profile that ships, which this server does not serve
}
EXIT = {"serve": 2, "doctor": 1, "models list": 2}
ABSENT = ("gone", "a-link-to-nothing")
WHERE: dict[str, list[BrokenFile]] = {
    "settings": [*ANYWHERE, *IN_TOML],
    # Without a key a slot is not used, and that is said elsewhere.
    "key": [*(one for one in ANYWHERE if one.id not in ABSENT), *IN_A_KEY],
    "profile": [*ANYWHERE, *IN_TOML],
    "cases": [*ANYWHERE, *IN_JSONL],
    "pepper": [one for one in ANYWHERE if one.id not in ("gone", "utf-16", "nul")],
    "embedder": [one for one in ANYWHERE if one.id not in ABSENT],
    "champion": [one for one in ANYWHERE if one.id not in ABSENT],
}
CASES = [
    pytest.param(command, where, broken, id=f"{command}-{where}-{broken.id}")
    for where, some in WHERE.items()
    for broken in some
    for command in NEEDS[where]
]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    clear_environment(monkeypatch, tmp_path)
    monkeypatch.setenv("TURNOUT_DB", str(tmp_path / "turnout.db"))
    # A server that would start after all must not: it would serve until the end of time.
    monkeypatch.setattr("turnout.cli.commands.serve._run", _refuse_to_run)
    # What doctor says of all that ship is tested elsewhere; here one of them has a champion, and the others take time.
    profiles = tmp_path / "profiles"
    profiles.mkdir()
    for part in ("assist.toml", "cases", "seeds", "students"):
        (profiles / part).symlink_to(shipped_file("assist").with_name(part))
    monkeypatch.setattr("turnout.config.load._folder", lambda: profiles)
    data = tmp_path / "data" / "turnout"
    found = {
        "settings": tmp_path / "turnout.toml",
        "key": tmp_path / "key",
        "profile": tmp_path / "mine.toml",
        "cases": tmp_path / "mine.jsonl",
        "pepper": data / "pepper",
        "embedder": data / "embedders" / "minilm-l6-v2" / "manifest.json",
        "champion": champion.champion_file("assist", "student"),
    }
    for file in found.values():
        file.parent.mkdir(parents=True, exist_ok=True)
    found["settings"].write_text(SETTINGS.format(folder=tmp_path))
    found["profile"].write_text(PROFILE)
    found["cases"].write_text('{"id":"one","text":"parcel","route":"first"}\n')
    found["key"].write_text("sk-canary-sound\n")
    found["pepper"].write_text("0123456789abcdef" * 4)
    return found


def _refuse_to_run(work: Any) -> None:
    work.close()
    raise AssertionError("the server was about to start")


@pytest.mark.alike(5)
@pytest.mark.parametrize(("command", "where", "broken"), CASES)
def test_what_is_wrong_is_said(command: str, where: str, broken: BrokenFile, files: dict[str, Path], run: Run) -> None:
    put(broken, files[where])
    ran = run(*command.split(), "--config", str(files["settings"]))
    said = " ".join((ran.out if command == "doctor" else ran.err).split())
    assert ran.code == EXIT[command], said
    assert "Traceback" not in ran.out + ran.err
    assert "bug in Turnout" not in ran.err
    assert "canary" not in ran.out + ran.err
    # The name of the file, as far as a line of doctor's table leaves it in one piece.
    assert files[where].name in said.replace(" ", "") or broken.id == "no-route", said
    if command != "doctor":
        assert said.startswith("turnout: ")
        assert len(ran.err.splitlines()) <= 12  # every mistake at once
        assert len(max(ran.err.splitlines(), key=len)) < 500


def test_sound_files_are_no_problem(files: dict[str, Path], run: Run) -> None:
    assert run("models", "list", "--config", str(files["settings"])).code == 0
    ran = run("doctor", "--config", str(files["settings"]))
    assert (ran.code, "mine.toml" in "".join(ran.out.split())) == (0, True), ran.out
    with pytest.raises(AssertionError, match="about to start"):
        _serve(files)


def _serve(files: dict[str, Path]) -> None:
    from turnout.cli.commands.serve import serve
    from turnout.cli.option import StoreOptions

    serve(where=StoreOptions(config=str(files["settings"])))


def test_doctor_lists_every_problem(files: dict[str, Path], run: Run) -> None:
    for where in ("profile", "pepper", "embedder", "champion"):
        put(ANYWHERE[0], files[where])
    ran = run("doctor", "--config", str(files["settings"]))
    assert ran.code == 1
    for subject in ("mine.toml", "pepper", "embedder", "assist"):
        assert f"broken  {subject} " in ran.out
    assert "4 broken" in ran.out


# Root may read everything, unless it gives up that right.
DROPPED = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")


@pytest.mark.alike(3)
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("where", ["settings", "key"])
def test_a_file_that_may_not_be_read(command: str, where: str, files: dict[str, Path]) -> None:
    drop = DROPPED if os.getuid() == 0 else ()
    if drop and shutil.which(drop[0]) is None:
        pytest.skip("root can read every file, and there is no setpriv")
    files[where].chmod(0)
    done = subprocess.run(
        [*drop, sys.executable, "-m", "turnout.cli", *command.split(), "--config", str(files["settings"])],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "COLUMNS": "400"},
    )
    assert done.returncode == EXIT[command], done
    assert "Permission denied" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert "canary" not in done.stdout + done.stderr
