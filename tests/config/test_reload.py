"""A live router serves one valid profile at a time: no mixture, nothing invalid, nothing that breaks a golden case."""

import asyncio
import os
import random
import threading
import time
from pathlib import Path

import pytest
from msgspec import Struct

from turnout import ConfigError, kind, load_profile
from turnout.config import reload as reload_module
from turnout.config.reload import LiveRouter, Reloaded
from turnout.core import registry

PROFILE = """\
name = "live"
routes = ["A", "B", "C"]
fallback = {{ route = "{fallback}" }}
cases = "live.jsonl"

[[layers]]
kind = "rules.v1"
[[layers.rules]]
id = "word"
route = "{route}"
when = {{ any = ["track"] }}

[[layers.rules]]
id = "other"
route = "{other}"
when = {{ any = ["train"] }}

[policy.A]
[policy.B]
[policy.C]
"""
NEXT = {"A": "B", "B": "C", "C": "A"}


def version(route: str) -> str:
    """A profile that gives three words three different routes, so that a mixture would show."""
    return PROFILE.format(route=route, other=NEXT[route], fallback=NEXT[NEXT[route]])


CASES = '{"id":"wide","text":"tracks","route":"%s"}\n{"id":"soft","text":"track","route":"nowhere","must":false}\n'


def write(folder: Path, route: str, cases: str | None = None) -> Path:
    """A version of the profile whose fallback is pinned by its golden case."""
    file = folder / "live.toml"
    (folder / "live.jsonl").write_text(CASES % NEXT[NEXT[route]] if cases is None else cases)
    file.write_text(version(route))
    return file


@pytest.fixture
def live(tmp_path: Path) -> LiveRouter:
    return LiveRouter(write(tmp_path, "A"), config="")


def test_nothing_new(live: LiveRouter, tmp_path: Path) -> None:
    router = live.router
    assert live.reload() == Reloaded("same", router.profile.hash)
    file = tmp_path / "live.toml"
    file.write_text("# a comment\n" + file.read_text())
    os.utime(file)
    assert live.reload().status == "same"
    assert live.router is router
    assert "live" in repr(live)


def test_swapped(live: LiveRouter, tmp_path: Path) -> None:
    old = live.router
    write(tmp_path, "B")
    done = live.reload()
    assert (done.status, done.held, done.problems) == ("swapped", 1, ())
    assert done.hash == live.router.profile.hash != old.profile.hash
    assert old.route_sync("track").route == "A"
    assert live.router.route_sync("track").route == "B"


def test_same_time_and_length(live: LiveRouter, tmp_path: Path) -> None:
    """What the files say is compared, not when they were changed."""
    file = tmp_path / "live.toml"
    before = file.stat()
    write(tmp_path, "B")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size
    assert live.reload().status == "swapped"


BROKEN = {
    "not-toml": ("name = ", "not valid TOML"),
    "not-utf8": ("\udcff", "not UTF-8"),
    "empty": ("", "is missing"),
    "unknown-key": (version("B").replace("fallback", "falback"), "did you mean 'fallback'?"),
    "unknown-route": (version("B").replace('route = "B"', 'route = "D"'), "is not a route"),
    "unknown-kind": (version("B").replace("rules.v1", "rulez.v1"), "no installed package"),
    "base-gone": ('extends = "base.toml"\nname = "live"\n', "cannot be read"),
    "cases-gone": (version("B").replace("live.jsonl", "gone.jsonl"), "cannot be read"),
    "case-fails": (version("B"), "live.jsonl wide: route is A, expected C"),
}


@pytest.mark.parametrize(("content", "said"), BROKEN.values(), ids=BROKEN)
def test_kept(content: str, said: str, live: LiveRouter, tmp_path: Path) -> None:
    router, file = live.router, tmp_path / "live.toml"
    file.write_bytes(content.encode("utf-8", "surrogateescape"))
    for _ in range(2):
        done = live.reload()
        assert (done.status, done.hash) == ("kept", router.profile.hash)
        assert said in "\n".join(map(str, done.problems))
        assert live.router is router
    file.unlink()
    assert live.reload().status == "kept"
    write(tmp_path, "C")
    assert live.reload().status == "swapped"


def test_cases_are_content_and_the_gate(live: LiveRouter, tmp_path: Path) -> None:
    cases = tmp_path / "live.jsonl"
    cases.write_text('{"id":"new","text":"train","route":"A"}\n')
    done = live.reload()
    assert done.status == "kept"
    assert str(done.problems[0]) == "live.jsonl new: route is B, expected A"
    cases.write_text('{"id":"declared","text":"train","route":"A","declared":"A"}\n')
    assert "refused: declared route 'A'" in str(live.reload().problems[0])
    cases.write_text('{"id":"new","text":"train","route":"B"}\n')
    assert (done := live.reload()).status == "swapped"
    assert done.held == 1
    cases.write_text("nonsense\n")
    assert live.reload().status == "kept"


def test_the_first_load_has_the_same_gate(tmp_path: Path) -> None:
    file = write(tmp_path, "A", '{"id":"no","text":"track","route":"B"}\n')
    with pytest.raises(ConfigError, match="route is A, expected B"):
        LiveRouter(file)
    with pytest.raises(ConfigError, match="cannot be read"):
        LiveRouter(tmp_path / "none.toml")


def test_a_profile_without_cases(tmp_path: Path) -> None:
    file = tmp_path / "live.toml"
    file.write_text(version("A").replace('cases = "live.jsonl"\n', ""))
    live = LiveRouter(file)
    file.write_text(version("B").replace('cases = "live.jsonl"\n', ""))
    assert live.reload() == Reloaded("swapped", live.router.profile.hash)
    assert LiveRouter("study", config="").reload().status == "same"


def test_the_base_and_the_settings_are_followed(tmp_path: Path) -> None:
    write(tmp_path, "A")
    settings = tmp_path / "turnout.toml"
    settings.write_text("")
    base = tmp_path / "live.toml"
    base.write_text(version("A") + '\n[settings]\nsentences = "policy.C.max_sentences"\n')
    heir = tmp_path / "heir.toml"
    heir.write_text('extends = "live.toml"\nname = "heir"\ncases = "none.jsonl"\n')
    (tmp_path / "none.jsonl").write_text("")
    live = LiveRouter(heir, config=settings)
    settings.write_text("[live]\nsentences = 2\n")
    assert live.reload().status == "swapped"
    assert live.router.route_sync("zxcv").policy.max_sentences == 2
    base.write_text(base.read_text().replace('when = { any = ["track"] }', 'when = { any = ["rail"] }'))
    assert live.reload().status == "swapped"
    assert live.router.route_sync("rail").route == "A"
    settings.write_text("[live]\nsentence = 1\n")
    assert "did you mean 'sentences'?" in str(live.reload().problems[0])


def test_a_plug_in_that_fails_to_build_is_a_problem(
    live: LiveRouter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_kinds", dict(registry.kinds()))

    @kind("fragile.v1")
    def fragile(config: Struct) -> object:
        raise ZeroDivisionError("boom")

    file = tmp_path / "live.toml"
    file.write_text(version("B").replace("[policy.A]", '[[layers]]\nkind = "fragile.v1"\n\n[policy.A]'))
    done = live.reload()
    assert done.status == "kept"
    assert "cannot be built: ZeroDivisionError: boom" in str(done.problems[0])


def test_poll_looks_before_it_reads(live: LiveRouter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[object] = []
    read = LiveRouter._read
    monkeypatch.setattr(LiveRouter, "_read", lambda self: (reads.append(1), read(self))[1])
    assert (live.poll(), live.poll()) == (None, None)
    assert len(reads) == 2, "files this young may change unseen, so they are read"
    for file in tmp_path.iterdir():
        os.utime(file, (1, 1))
    assert (live.poll(), live.poll()) == (None, None)
    assert len(reads) == 3
    write(tmp_path, "B")
    assert (done := live.poll()) is not None
    assert done.status == "swapped"
    (tmp_path / "live.toml").write_text("name = ")
    assert (done := live.poll()) is not None
    assert done.status == "kept"
    assert live.poll() is None, "the same problems are told once"
    (tmp_path / "live.toml").unlink()
    assert live.poll() is not None
    write(tmp_path, "B")
    assert live.poll() is None, "what is served is on the disk again"


def test_watch(live: LiveRouter, tmp_path: Path) -> None:
    async def follow() -> list[str]:
        seen = []
        async for done in live.watch(0.001):
            # The golden case belongs to the version: whoever looks between the two writes keeps the old one.
            if "live.jsonl" not in "".join(map(str, done.problems)):
                seen.append(done.status)
                if len(seen) == 3:
                    break
                (tmp_path / "live.toml").write_text("name = ") if len(seen) == 1 else write(tmp_path, "C")
        return seen

    write(tmp_path, "B")
    assert asyncio.run(asyncio.wait_for(follow(), 10)) == ["swapped", "kept", "swapped"]


def test_a_thousand_reloads_under_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each decision comes from one valid profile and is what that profile gives; nothing invalid is ever served."""
    monkeypatch.setattr(reload_module, "SETTLED_S", 0.0)
    live = LiveRouter(write(tmp_path, "A"), config="")
    expected: dict[str, dict[str, str]] = {}
    for route in "ABC":
        profile = load_profile(write(tmp_path, route), config="")
        expected[profile.hash] = {"track": route, "train": NEXT[route], "zxcv": NEXT[NEXT[route]]}
    stop = threading.Event()
    served: set[str] = set()
    wrong: list[tuple[str, str, str]] = []
    count = [0, 0]

    def ask(number: int) -> None:
        while not stop.is_set():
            for text in ("track", "train", "zxcv"):
                decision = live.router.route_sync(text)
                known = expected.get(decision.profile.hash, {})
                if known.get(text) != decision.route or decision.to_dict()["profile_hash"] not in expected:
                    wrong.append((text, decision.route, decision.profile.hash))
                served.add(decision.profile.hash)
                count[number] += 1
            time.sleep(0.001)  # or the two would leave the reloading thread no turn

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    rng = random.Random(7)
    broken = [content for content, _ in BROKEN.values()]
    now, statuses = live.router.profile.hash, []
    try:
        for number in range(1000):
            if number % 10 == 3:
                text = rng.choice(broken)
                if text == version("B"):
                    write(tmp_path, "B", CASES % "B")
                else:
                    (tmp_path / "live.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
                done = live.reload()
                assert (done.status, done.hash) == ("kept", now)
            else:
                write(tmp_path, rng.choice("ABC"))
                done = live.reload()
                assert done.status in ("swapped", "same"), done
                now = done.hash
            statuses.append(done.status)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert wrong == []
    assert served == set(expected)
    assert statuses.count("kept") == 100
    assert statuses.count("swapped") > 400
    assert min(count) > 100


def test_reloads_from_many_threads(tmp_path: Path) -> None:
    """One at a time: whoever comes second finds the work done."""
    live = LiveRouter(write(tmp_path, "A"), config="")
    write(tmp_path, "B")
    found: list[Reloaded] = []
    threads = [threading.Thread(target=lambda: found.append(live.reload())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done.status for done in found) == ["same"] * 7 + ["swapped"]
    assert live.router.route_sync("track").route == "B"
