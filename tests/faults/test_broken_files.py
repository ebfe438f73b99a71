"""Whatever stands where a file should, a running server goes on with what it had, says so once, and takes up the mended
file: nothing a disk holds ends its watcher."""

import hashlib
import logging
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from broken_files import ANYWHERE, IN_A_KEY, IN_JSONL, IN_TOML, BrokenFile, damaged, mend, put
from secured_server import call, clean_environment
from serving import RunningServer, serving
from small_student import keep as keep_student
from small_student import teach
from turnout.config import champion
from turnout.config.cases import read_cases
from turnout.config.document import read
from turnout.config.reload import LiveRouter
from turnout.core.errors import ConfigError, Problem
from turnout.layers.artefact import digest_of, read_manifest
from turnout.layers.student_model import StudentManifest, read_student
from turnout.learn import registry
from turnout.models.secret import SecretPlace
from turnout.models.slot import load_slots
from turnout.runtime import runtime as runtime_module

BASE = """\
name = "base"
routes = ["first", "second", "third"]
fallback = { route = "third" }
cases = "mine.jsonl"
[[layers]]
id = "rules"
kind = "rules.v1"
[[layers.rules]]
id = "word"
route = "first"
when = { any = ["parcel"] }
[[layers]]
id = "student"
kind = "student.v1"
accept = { confidence = 0.9 }
[policy.first]
model = "simple"
[policy.second]
model = "simple"
[policy.third]
model = "simple"
"""
MINE = """\
extends = "base.toml"
name = "mine"
[[layers]]
id = "rules"
rules = [{{ id = "word", when = {{ any = ["{}"] }} }}]
"""
CASES = '{"id":"one","text":"something else","route":"third","without":["student"]}\n'
SETTINGS = """\
[server]
profile = "{folder}/mine.toml"
drain_s = 1.0
lag_s = 60.0
[models.simple]
model = "mine/x"
base_url = "http://127.0.0.1:9/v1"
key = {{ file = "{folder}/key" }}
"""


class World(NamedTuple):
    served: RunningServer
    folder: Path
    files: dict[str, Path]
    warnings: list[str]

    @property
    def hash(self) -> str:
        return self.served.server.runtime.router.profile.hash

    def bump(self, word: str) -> None:
        mend(self.files["profile"], MINE.format(word).encode())

    def has(self, word: str) -> bool:
        """Whether the profile written last is the one in use: what was broken may be mended a look before it is."""
        layers = self.served.server.runtime.router.profile.resolved["layers"]
        return bool(layers[0]["rules"][0]["when"]["any"] == [word])

    def until(self, what: Callable[[], bool]) -> None:
        end = time.monotonic() + 20
        while not what():
            assert time.monotonic() < end, (self.warnings, self.served.server._background)
            time.sleep(0.01)

    def is_alive(self) -> bool:
        server = self.served.server
        answered = call(
            self.served.url, "POST", "/v1/route", {"text": "where is it", "profile": server.runtime.profile}
        )
        return answered.status == 200 and not any(task.done() for task in server._background[:2])


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("served")
    warnings: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            warnings.append(self.format(record))

    with pytest.MonkeyPatch.context() as patch:
        clean_environment(patch, folder)
        # By name: the environment changes from test to test, and this server stays.
        for module in ("config.settings", "config.champion", "models.embed"):
            patch.setattr(f"turnout.{module}.data_folder", lambda: folder / "data" / "turnout")
        patch.setattr(runtime_module, "LOOK_S", 0.02)
        patch.setattr(runtime_module, "IDLE_SHARE", 0.0)
        (folder / "base.toml").write_text(BASE)
        (folder / "mine.toml").write_text(MINE.format("zero"))
        (folder / "mine.jsonl").write_text(CASES)
        (folder / "key").write_text("sk-canary-sound\n")
        keep_student(folder / "student", teach(), profile="mine")
        student = registry.put(folder / "student", "mine", "student")
        registry.set_champion("mine", "student", student.name)
        embedder = folder / "data" / "turnout" / "embedders" / "minilm-l6-v2"
        embedder.mkdir(parents=True)
        keep = Keep(logging.WARNING)
        logging.getLogger().addHandler(keep)
        with serving(folder, SETTINGS.format(folder=folder)) as served:
            files = {
                "settings": folder / "turnout.toml",
                "profile": folder / "mine.toml",
                "base": folder / "base.toml",
                "cases": folder / "mine.jsonl",
                "key": folder / "key",
                "champion": champion.champion_file("mine", "student"),
                "manifest": student / "manifest.json",
                "weights": student / "weights.npz",
                "embedder": embedder / "manifest.json",
            }
            yield World(served, folder, files, warnings)
        logging.getLogger().removeHandler(keep)


WHERE: dict[str, list[BrokenFile]] = {
    "settings": [*ANYWHERE, *IN_TOML],
    "profile": [*ANYWHERE, *IN_TOML],
    "base": [*ANYWHERE, *IN_TOML],
    "cases": [*ANYWHERE, *IN_JSONL],
    "key": [*ANYWHERE, *IN_A_KEY],
    # Without the file that names a champion there is none, which is no mistake.
    "champion": [one for one in ANYWHERE if one.id not in ("gone", "a-link-to-nothing")],
    "manifest": [*ANYWHERE, BrokenFile("deep", IN_JSONL[1].make)],
    "weights": ANYWHERE,
    "embedder": [one for one in ANYWHERE if one.id not in ("gone", "a-link-to-nothing")],
}


@pytest.mark.alike(6)
@pytest.mark.parametrize(
    ("where", "broken"), [pytest.param(w, b, id=f"{w}-{b.id}") for w, some in WHERE.items() for b in some]
)
def test_a_broken_file_changes_nothing_and_its_mending_does(world: World, where: str, broken: BrokenFile) -> None:
    file = world.files[where]
    sound = file.read_bytes() if file.exists() else None
    before = world.hash
    world.warnings.clear()
    put(broken, file)
    try:
        if where != "profile":
            world.bump(f"{where}-{broken.id}")
        world.until(lambda: bool(world.warnings))
        time.sleep(0.06)  # three more looks
        assert world.hash == before
        assert world.is_alive()
        assert len(world.warnings) == 1, world.warnings
        assert "canary" not in world.warnings[0]
        assert len(world.warnings[0]) < 1000
    finally:
        # A pipe that stays would keep the next test waiting for ever.
        if sound is None:
            file.unlink()
        else:
            mend(file, sound)
    world.bump(f"{where}-{broken.id}-mended")
    world.until(lambda: world.has(f"{where}-{broken.id}-mended"))
    assert world.hash != before
    assert world.is_alive()
    world.until(lambda: not world.served.server.runtime._live[world.served.server.runtime.profile].problems)


def test_a_mended_key_is_enough(world: World) -> None:
    """The settings file need not be touched again: what is wrong was in a file it names."""
    settings = world.files["settings"].read_bytes()
    world.warnings.clear()
    put(BrokenFile("", lambda path: path.write_bytes("sk-canary".encode("utf-16"))), world.files["key"])
    mend(world.files["settings"], settings + b"# again\n")
    world.until(lambda: bool(world.warnings))
    assert world.served.server.runtime.models.slots.slots["simple"].key is not None
    assert world.served.server.runtime.models.slots.slots["simple"].key.reveal() == "sk-canary-sound"
    mend(world.files["key"], b"sk-canary-other")
    world.until(lambda: _key_of(world) == "sk-canary-other")


def test_the_same_mistake_again_is_said_again(world: World) -> None:
    for _ in range(2):
        world.warnings.clear()
        sound = world.files["base"].read_bytes()
        put(IN_TOML[0], world.files["base"])
        world.until(lambda: len(world.warnings) == 1)
        mend(world.files["base"], sound)
        live = world.served.server.runtime._live[world.served.server.runtime.profile]
        world.until(lambda live=live: not live.problems)  # type: ignore[misc]
        time.sleep(0.1)


@pytest.mark.parametrize("broken", [*ANYWHERE, *IN_TOML], ids=lambda broken: broken.id)
def test_a_reload_that_is_asked_for_says_what_is_wrong(world: World, broken: BrokenFile) -> None:
    file = world.files["settings"]
    sound = file.read_bytes()
    put(broken, file)
    told = call(world.served.admin, "POST", "/admin/reload")
    assert told.status == 200
    assert told.json["status"] == "kept"
    assert all(problem and "\n" not in problem and len(problem) < 500 for problem in told.json["problems"])
    mend(file, sound)
    assert call(world.served.admin, "POST", "/admin/reload").json["status"] == "reloaded"


def test_an_emptied_file_brings_no_demonstration_model(world: World) -> None:
    """An editor may empty a file before it writes it; the models that answer stay the ones there were."""
    file = world.files["settings"]
    sound = file.read_bytes()
    file.write_bytes(b"")
    told = call(world.served.admin, "POST", "/admin/reload").json
    assert told["status"] == "kept"
    assert "no model is configured any more" in told["problems"][0]
    assert not world.served.server.runtime.models.slots.demo
    mend(file, sound)
    assert call(world.served.admin, "POST", "/admin/reload").json["status"] == "reloaded"


def test_a_served_profile_that_is_broken_is_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is loaded when somebody first asks for it: a sentence for the client, and no traceback for the log."""
    clean_environment(monkeypatch, tmp_path)
    warnings: list[str] = []
    monkeypatch.setattr(runtime_module.log, "warning", lambda *said: warnings.append(said[0] % said[1:]))
    name = f"{tmp_path}/other.toml"
    (tmp_path / "other.toml").write_bytes(b"\xff\xfe")
    with serving(tmp_path, f'[server]\nprofile = "tiers"\nprofiles = ["{name}"]\ndrain_s = 1.0\nlag_s = 60.0\n') as s:
        for _ in range(3):
            got = call(s.url, "POST", "/v1/route", {"text": "x", "profile": name})
            assert got.status == 503
            assert "cannot be used" in got.json["error"]["message"]
        assert len(warnings) == 1
        (tmp_path / "other.toml").write_text('extends = "tiers"\nname = "other"\n')
        assert call(s.url, "POST", "/v1/route", {"text": "x", "profile": name}).status == 200


def _key_of(world: World) -> str:
    key = world.served.server.runtime.models.slots.slots["simple"].key
    return key.reveal() if key is not None else ""


# --- each reader by itself, over damaged contents


class Reader(NamedTuple):
    id: str
    name: str
    sound: bytes
    read: Callable[[Path], Any]


READERS = [
    Reader("settings", "turnout.toml", SETTINGS.format(folder="/nowhere").encode(), lambda path: load_slots(str(path))),
    Reader("document", "x.toml", BASE.encode(), read),
    Reader(
        "profile", "x.toml", BASE.replace("mine.jsonl", "/dev/null").encode(), lambda path: LiveRouter(path, config="")
    ),
    Reader("cases", "x.jsonl", CASES.encode() * 3, read_cases),
    Reader("key", "key", b"sk-canary-sound\n", lambda path: SecretPlace(file=str(path)).read("models.x")),
]


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.id)
def test_a_reader_gives_a_value_or_a_sentence(reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clean_environment(monkeypatch, tmp_path)
    file = tmp_path / reader.name
    for number, raw in zip(range(300 if reader.id != "profile" else 100), damaged(reader.sound, seed=1), strict=False):
        file.write_bytes(raw)
        _read(reader.read, file, f"{reader.id} {number}")
    for number in range(100):
        file.write_bytes(os.urandom(number * 7))
        _read(reader.read, file, f"{reader.id} random {number}")


def test_a_damaged_student_is_a_sentence(tmp_path: Path) -> None:
    """Damaged after it was written, which its digest tells; and written damaged, with every digest right."""
    folder = tmp_path / "student"
    keep_student(folder, teach())
    manifest, weights = folder / "manifest.json", folder / "weights.npz"
    sound, packed = manifest.read_bytes(), weights.read_bytes()
    for number, raw in zip(range(200), damaged(sound, seed=2), strict=False):
        manifest.write_bytes(raw)
        _read(lambda path: read_student(path.parent), manifest, f"manifest {number}")
    manifest.write_bytes(sound)
    whole = read_manifest(folder, StudentManifest)
    for number, raw in zip(range(300), damaged(packed, seed=3), strict=False):
        weights.write_bytes(raw)
        files = {**whole.files, "weights.npz": hashlib.sha256(raw).hexdigest()}
        told = msgspec.structs.replace(whole, files=files)
        told = msgspec.structs.replace(told, digest=digest_of(told))
        manifest.write_bytes(msgspec.json.encode(told))
        _read(lambda path: read_student(path.parent), weights, f"weights {number}")


def _read(reads: Callable[[Path], Any], file: Path, what: str) -> None:
    told: tuple[Problem, ...] = (Problem("", "it is sound"),)
    try:
        reads(file)
    except ConfigError as error:
        told = error.problems
    assert told, what
    assert all(problem.message and "canary" not in problem.message for problem in told), what
