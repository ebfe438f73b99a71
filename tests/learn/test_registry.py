"""The shelf: whoever looks sees the old champion or the new one, whatever happens in between."""

import itertools
import json
import multiprocessing
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from turnout.config import champion
from turnout.core.errors import ChampionChanged, ConfigError, ShelfError, UnknownModel
from turnout.learn import registry

A, B, C = "a" * 16, "b" * 16, "c" * 16


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr("sys.platform", "linux")
    return tmp_path


def trained(folder: Path, digest: str, **more: object) -> Path:
    made = folder / f"made-{digest[:4]}"
    made.mkdir(exist_ok=True)
    (made / "manifest.json").write_text(json.dumps({"digest": digest, "metrics": {"accuracy": 0.9}, **more}))
    (made / "weights.npz").write_bytes(b"w" * 100_000)
    return made


def stand(home: Path, *digests: str) -> None:
    for digest in digests:
        registry.put(trained(home, digest), "mine", "student")


def serving() -> str | None:
    found = champion.find_champion("mine", "student")
    return None if found is None else found.name


def test_nothing_there_is_no_champion(home: Path) -> None:
    assert champion.find_champion("mine", "student") is None
    assert registry.candidates("mine", "student") == []
    assert registry.read_history("mine", "student") == []
    assert not champion.shelves().exists(), "looking must not create"
    with pytest.raises(UnknownModel, match="nothing to go back to"):
        registry.rollback("mine", "student")


def test_a_model_is_named_by_its_digest_and_stands_once(home: Path) -> None:
    made = trained(home, A)
    first = registry.put(made, "mine", "student")
    assert first == champion.shelf_of("mine", "student") / A
    before = (first / "weights.npz").stat().st_mtime_ns
    (made / "weights.npz").write_bytes(b"something else")
    assert registry.put(made, "mine", "student") == first
    assert (first / "weights.npz").stat().st_mtime_ns == before
    assert (first / "weights.npz").read_bytes() == b"w" * 100_000
    assert [one.digest for one in registry.candidates("mine", "student")] == [A]
    assert serving() is None, "standing there does not make a champion"


def test_champions_and_the_way_back(home: Path) -> None:
    stand(home, A, B, C)
    for digest in (A, B, C):
        registry.set_champion("mine", "student", digest, who="ana", why="better", metrics={"accuracy": 0.95})
        assert serving() == digest
    assert [one.champion for one in registry.candidates("mine", "student")] == [False, False, True]
    assert registry.rollback("mine", "student").to == B
    assert registry.rollback("mine", "student").to == A
    registry.set_champion("mine", "student", C)
    assert registry.rollback("mine", "student").to == A
    assert registry.rollback("mine", "student").to == champion.SHIPPED
    assert serving() is None
    with pytest.raises(UnknownModel, match="nothing to go back to"):
        registry.rollback("mine", "student")
    history = registry.read_history("mine", "student")
    assert [(one.kind, one.was[:1], one.to[:1]) for one in history] == [
        ("promote", "s", "a"),
        ("promote", "a", "b"),
        ("promote", "b", "c"),
        ("rollback", "c", "b"),
        ("rollback", "b", "a"),
        ("promote", "a", "c"),
        ("rollback", "c", "a"),
        ("rollback", "a", "s"),
    ]
    assert history[0].who == "ana"
    assert history[0].metrics == {"accuracy": 0.95}


def test_the_shipped_model_is_the_champion_until_another_is(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = home / "package"
    folder = package / "students" / "mine" / "student"
    folder.mkdir(parents=True)
    shutil.copytree(trained(home, A), folder, dirs_exist_ok=True)
    monkeypatch.setattr(champion.resources, "files", lambda _: package)
    assert champion.find_champion("mine", "student") == folder
    stand(home, B)
    registry.set_champion("mine", "student", B)
    assert serving() == B
    assert [(one.digest, one.shipped, one.champion) for one in registry.candidates("mine", "student")] == [
        (A, True, False),
        (B, False, True),
    ]
    registry.rollback("mine", "student")
    assert champion.find_champion("mine", "student") == folder
    # Back to the shipped one by name is a change like any other, and can be undone.
    registry.set_champion("mine", "student", B)
    registry.set_champion("mine", "student", champion.SHIPPED)
    assert champion.find_champion("mine", "student") == folder
    assert registry.rollback("mine", "student").to == B


def test_the_same_champion_again_is_no_change(home: Path) -> None:
    stand(home, A)
    assert registry.set_champion("mine", "student", A) is not None
    assert registry.set_champion("mine", "student", A) is None
    assert len(registry.read_history("mine", "student")) == 1


def test_a_comparison_that_is_out_of_date_changes_nothing(home: Path) -> None:
    stand(home, A, B)
    registry.set_champion("mine", "student", A)
    with pytest.raises(ChampionChanged, match="serves by now"):
        registry.set_champion("mine", "student", B, instead_of=champion.SHIPPED)
    assert serving() == A


BAD_NAMES = [
    "",
    "..",
    ".",
    "../x",
    "a/b",
    "a\\b",
    "/etc",
    "a\0b",
    ".hidden",
    "a..b",
    "x" * 101,
    "ñ",
    "a b",
    "-x",
    "a\n",
]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_lead_nowhere_else(home: Path, name: str) -> None:
    assert champion.find_champion(name, "student") is None
    assert champion.find_champion("mine", name) is None
    for profile, layer in ((name, "student"), ("mine", name)):
        with pytest.raises(ShelfError):
            registry.put(trained(home, A), profile, layer)
        with pytest.raises(ShelfError):
            registry.set_champion(profile, layer, A)
        with pytest.raises(ShelfError):
            registry.candidates(profile, layer)
    assert not champion.shelves().exists()


@pytest.mark.parametrize("digest", ["", "..", "../../x", "A" * 16, "g" * 16, "a" * 7, "a" * 65, "aaaa/bbbb", "shippe"])
def test_digests_lead_nowhere_else(home: Path, digest: str) -> None:
    stand(home, A)
    with pytest.raises(UnknownModel):
        registry.set_champion("mine", "student", digest)
    with pytest.raises(ShelfError, match="digest"):
        registry.put(trained(home / "data", digest), "mine", "student")
    with pytest.raises(UnknownModel):
        registry.note("mine", "student", digest, "shadow", b"{}")


@pytest.mark.parametrize("content", [b"../../../etc", b"", b"\xff\xfe", b"A" * 16, b"a" * 16 + b"\n" + b"b" * 16])
def test_a_tampered_champion_is_refused_and_can_be_mended(home: Path, content: bytes) -> None:
    stand(home, A, B)
    registry.set_champion("mine", "student", A)
    champion.champion_file("mine", "student").write_bytes(content)
    with pytest.raises(ConfigError, match="champion"):
        champion.find_champion("mine", "student")
    registry.set_champion("mine", "student", B)
    assert serving() == B
    assert registry.rollback("mine", "student").to == A


def test_a_champion_that_is_gone_is_not_replaced_by_another(home: Path) -> None:
    stand(home, A, B)
    registry.set_champion("mine", "student", A)
    registry.set_champion("mine", "student", B)
    shutil.rmtree(champion.shelf_of("mine", "student") / B)
    with pytest.raises(ConfigError, match="not on the shelf"):
        champion.find_champion("mine", "student")
    assert registry.rollback("mine", "student").to == A
    assert serving() == A


def test_a_rollback_skips_what_is_gone(home: Path) -> None:
    stand(home, A, B, C)
    for digest in (A, B, C):
        registry.set_champion("mine", "student", digest)
    shutil.rmtree(champion.shelf_of("mine", "student") / B)
    assert registry.rollback("mine", "student").to == A
    assert registry.rollback("mine", "student").to == champion.SHIPPED


@pytest.mark.parametrize("plant", ["link", "folder", "nothing", "no digest", "broken"])
def test_what_is_no_model_is_not_put_there(home: Path, plant: str) -> None:
    made = trained(home, A)
    if plant == "link":
        (made / "card.html").symlink_to("/etc/passwd")
    elif plant == "folder":
        (made / "more").mkdir()
    elif plant == "nothing":
        (made / "manifest.json").unlink()
    elif plant == "no digest":
        (made / "manifest.json").write_text("{}")
    else:
        (made / "manifest.json").write_text('{"digest": "' + A)
    with pytest.raises(ShelfError):
        registry.put(made, "mine", "student")
    assert registry.candidates("mine", "student") == []
    folder = champion.shelf_of("mine", "student")
    assert not folder.exists() or list(folder.iterdir()) == []


class PowerFailure(BaseException):
    """As a power failure: nothing behind it runs but what Python itself unwinds."""


def crash_at(monkeypatch: pytest.MonkeyPatch, name: str, nth: int) -> None:
    calls = [0]
    real: Callable[..., object] = getattr(os, name)

    def stand_in(*args: object, **named: object) -> object:
        calls[0] += 1
        if calls[0] == nth:
            raise PowerFailure
        return real(*args, **named)

    monkeypatch.setattr(os, name, stand_in)


@pytest.mark.parametrize("nth", range(1, 7))
@pytest.mark.parametrize("name", ["replace", "fsync", "rename"])
def test_a_crash_leaves_the_old_champion_or_the_new(
    home: Path, monkeypatch: pytest.MonkeyPatch, name: str, nth: int
) -> None:
    stand(home, A)
    registry.set_champion("mine", "student", A)
    made = trained(home, B)
    with monkeypatch.context() as patched:
        crash_at(patched, name, nth)
        try:
            registry.put(made, "mine", "student")
            registry.set_champion("mine", "student", B)
        except PowerFailure:
            pass
    assert serving() in (A, B)
    for one in registry.candidates("mine", "student"):
        assert (one.folder / "weights.npz").read_bytes() == b"w" * 100_000
    # And whatever was left behind, it goes on from there.
    registry.put(made, "mine", "student")
    registry.set_champion("mine", "student", B)
    assert serving() == B
    assert registry.rollback("mine", "student").to == A
    assert [one.to for one in registry.read_history("mine", "student")][-1] == A


def test_a_line_that_was_written_and_did_not_come_to_pass_is_no_history(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand(home, A, B)
    registry.set_champion("mine", "student", A)
    with monkeypatch.context() as patched:
        crash_at(patched, "replace", 2)
        with pytest.raises(PowerFailure):
            registry.set_champion("mine", "student", B)
    history = champion.shelf_of("mine", "student") / "history.jsonl"
    assert len(history.read_bytes().splitlines()) == 2
    assert [one.to for one in registry.read_history("mine", "student")] == [A]
    with history.open("ab") as file:
        file.write(b'{"at": "torn')
    assert registry.rollback("mine", "student").to == champion.SHIPPED
    assert [one.to for one in registry.read_history("mine", "student")] == [A, champion.SHIPPED]


def _promote_many(digest: str, times: int) -> None:
    for _ in range(times):
        registry.set_champion("mine", "student", digest)


def _put_many(made: str) -> None:
    registry.put(Path(made), "mine", "student")


def test_two_processes_at_once(home: Path) -> None:
    stand(home, A, B)
    context = multiprocessing.get_context("fork")
    made = str(trained(home, C))
    work = [context.Process(target=_promote_many, args=(digest, 50)) for digest in (A, B)]
    work += [context.Process(target=_put_many, args=(made,)) for _ in range(2)]
    for process in work:
        process.start()
    seen = set()
    while any(process.is_alive() for process in work):
        seen.add(serving())
    for process in work:
        process.join()
    assert [process.exitcode for process in work] == [0, 0, 0, 0]
    assert seen <= {None, A, B}
    history = registry.read_history("mine", "student")
    told = (champion.shelf_of("mine", "student") / "history.jsonl").read_bytes().splitlines()
    assert len(history) == len(told) >= 2
    assert all(one.to == two.was for one, two in itertools.pairwise(history))
    assert history[-1].to == serving()
    assert {one.digest for one in registry.candidates("mine", "student")} == {A, B, C}


def test_a_model_is_found_by_a_beginning(home: Path) -> None:
    stand(home, A, B)
    registry.set_champion("mine", "student", B)
    assert registry.find_candidate("mine", "student", "aaaa").digest == A
    assert registry.find_candidate("mine", "student").digest == A, "the newest that does not serve"
    for unknown in ("", "f", "../x"):
        with pytest.raises(UnknownModel):
            registry.find_candidate("mine", "student", unknown)
    registry.set_champion("mine", "student", A)
    stand(home, "a" * 15 + "0")
    with pytest.raises(UnknownModel, match="several"):
        registry.find_candidate("mine", "student", "aaaa")
    with pytest.raises(UnknownModel, match="turnout train"):
        registry.find_candidate("other", "student")


def test_old_models_go_and_the_way_back_stays(home: Path) -> None:
    digests = [f"{number:016x}" for number in range(8)]
    stand(home, *digests)
    for number, digest in enumerate(digests):
        stamp = 1_000_000_000 + number
        os.utime(champion.shelf_of("mine", "student") / digest, (stamp, stamp))
    registry.set_champion("mine", "student", digests[0])
    registry.set_champion("mine", "student", digests[1])
    registry.note("mine", "student", digests[3], "shadow", b"{}")
    registry.note("mine", "student", digests[7], "shadow", b"{}")
    assert registry.discard("mine", "student", keep=2) == digests[2:6]
    assert not registry.note_file("mine", "student", digests[3], "shadow").exists()
    assert registry.note_file("mine", "student", digests[7], "shadow").exists()
    assert [one.digest for one in registry.candidates("mine", "student")] == [*digests[:2], *digests[6:]]
    assert registry.rollback("mine", "student").to == digests[0]


def test_a_note_stands_beside_the_model(home: Path) -> None:
    stand(home, A)
    file = registry.note("mine", "student", A, "shadow", b'{"decisions": 1}')
    registry.note("mine", "student", A, "shadow", b'{"decisions": 2}')
    assert file.read_bytes() == b'{"decisions": 2}'
    assert file.parent == champion.shelf_of("mine", "student")
    assert [one.digest for one in registry.candidates("mine", "student")] == [A]
