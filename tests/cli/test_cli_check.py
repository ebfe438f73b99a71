"""`turnout check`: every problem at once with its place; golden cases, what they measure and what they never reach."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from turnout.config.load import read_chain, shipped

Run = Callable[..., Any]

PROFILE = """\
name = "mini"
routes = ["YES", "NO"]
fallback = { route = "NO" }
cases = "mini.jsonl"

[[layers]]
kind = "rules.v1"
[[layers.rules]]
id = "greeting"
route = "YES"
when = { any = ["hello", "hi"] }
[[layers.rules]]
id = "farewell"
route = "NO"
when = { any = ["bye"] }

[policy.YES]
[policy.NO]
"""

GOOD = '{"id":"a","text":"hello you","route":"YES","by":"rules"}\n{"id":"b","text":"zxcv","route":"NO","must":false}\n'


@pytest.fixture
def mini(tmp_path: Path) -> Path:
    file = tmp_path / "mini.toml"
    file.write_text(PROFILE)
    (tmp_path / "mini.jsonl").write_text(GOOD)
    return file


def test_fine(mini: Path, run: Run) -> None:
    ran = run("check", str(mini))
    assert ran.code == 0
    assert "mini is fine  mini.toml" in ran.out
    assert "patterns  3  3 phrase" in ran.out
    assert "remarks" not in ran.out


@pytest.mark.parametrize("name", shipped())
def test_shipped_profiles_are_fine(name: str, run: Run) -> None:
    ran = run("check", name)
    assert ran.code == 0
    assert f"{name} is fine" in ran.out


def test_every_problem_is_printed(mini: Path, run: Run) -> None:
    mini.write_text(PROFILE.replace("fallback =", "falback =").replace('route = "YES"', 'route = "YSE"'))
    ran = run("check", str(mini))
    assert ran.code == 1
    assert "mini.toml:3 falback: unknown key, did you mean 'fallback'?" in ran.out
    assert "mini.toml:10 layers[0].rules[0].route: 'YSE' is not a route" in ran.out
    assert ran.out.rstrip().splitlines()[-1].endswith("problems")
    assert ran.err == ""


def test_not_toml(mini: Path, run: Run) -> None:
    mini.write_text("name = \n")
    ran = run("check", str(mini))
    assert ran.code == 1
    assert "mini.toml:1: not valid TOML" in ran.out
    mini.write_bytes(b"\xff\xfe")
    assert "not UTF-8 text" in run("check", str(mini)).out


def test_nothing_to_check(run: Run) -> None:
    assert "there is no such file" in run("check", "nope.toml").err
    ran = run("check", "tires")
    assert ran.code == 2
    assert "did you mean 'tiers'?" in ran.err


def test_cases_hold(mini: Path, run: Run) -> None:
    ran = run("check", str(mini), "--cases")
    assert ran.code == 0
    assert "must      1 of 1 hold" in ran.out
    assert "measured  1 of 1 right, 100.0%" in ran.out
    assert "coverage  1 of 2 signals and rules fired" in ran.out
    assert "never     rule.farewell" in ran.out


def test_a_must_case_breaks(mini: Path, run: Run) -> None:
    mine = mini.with_name("mine.jsonl")
    mine.write_text(
        '{"id":"a","text":"hello","route":"NO","why":"for the test"}\n'
        '{"id":"b","text":"bye","route":"YES","must":false}\n'
        '{"id":"c","text":"x","route":"NO","declared":"YES"}\n'
    )
    ran = run("check", str(mini), "--cases", str(mine))
    assert ran.code == 1
    assert "FAILED  a  hello" in ran.out
    assert "route is YES, expected NO" in ran.out
    assert "(for the test)" in ran.out
    assert "takes none" in ran.out
    assert "must      0 of 2 hold" in ran.out
    assert "measured  0 of 1 right, 0.0%" in ran.out
    assert "1  YES → NO" in ran.out
    assert "missed  b" not in ran.out
    assert "missed  b  bye" in run("check", str(mini), "--cases", str(mine), "--all").out


def test_a_measured_case_does_not_break(mini: Path, run: Run) -> None:
    mini.with_name("mini.jsonl").write_text('{"id":"b","text":"bye","route":"YES","must":false}\n')
    assert run("check", str(mini), "--cases").code == 0


def test_bad_cases_are_problems(mini: Path, run: Run) -> None:
    mini.with_name("mini.jsonl").write_text('{"id":"a"}\nx\n')
    ran = run("check", str(mini), "--cases")
    assert ran.code == 1
    assert "mini.jsonl:1: " in ran.out
    assert "mini.jsonl:2: " in ran.out
    assert "2 problems" in ran.out


def test_cases_that_are_not_there(mini: Path, run: Run) -> None:
    mini.with_name("mini.jsonl").unlink()
    ran = run("check", str(mini))
    assert ran.code == 0
    assert "are not there" in ran.out.replace("\n", " ")
    assert run("check", str(mini), "--cases").code == 1
    mini.write_text(PROFILE.replace('cases = "mini.jsonl"\n', ""))
    ran = run("check", str(mini), "--cases")
    assert ran.code == 2
    assert "names no golden cases" in ran.err


def test_cases_that_cannot_be_read(mini: Path, run: Run) -> None:
    ran = run("check", "tiers", "--cases", "nope.jsonl")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "turnout: nope.jsonl: cannot be read: No such file or directory\n"
    ran = run("check", "tiers", "--cases", str(mini.parent))
    assert ran.code == 2
    assert ran.err == f"turnout: {mini.parent}: cannot be read: Is a directory\n"
    mini.with_name("mini.jsonl").write_bytes(b"\x7fELF\xd0\x00")
    ran = run("check", str(mini), "--cases")
    assert ran.code == 1
    assert "mini.jsonl: not UTF-8 text (byte 4): save it as UTF-8" in ran.out
    assert "codec" not in ran.out
    mini.with_name("mini.jsonl").unlink()
    ran = run("check", str(mini), "--cases")
    assert "mini.jsonl: cannot be read: No such file or directory\n1 problem\n" in ran.out
    assert "Errno" not in ran.out


def test_coverage_counts_adjustments(run: Run) -> None:
    ran = run("check", "sources", "--cases")
    assert ran.code == 0
    assert "framing.added" not in ran.out


def test_cases_are_inherited(mini: Path) -> None:
    heir = mini.with_name("heir.toml")
    heir.write_text('extends = "mini.toml"\nname = "heir"\n')
    assert read_chain(str(heir)).cases == mini.with_name("mini.jsonl")


def test_nothing_is_fine_that_fails(mini: Path, run: Run) -> None:
    (mini.parent / "mini.jsonl").write_text(GOOD.replace('"YES"', '"NO"', 1))
    ran = run("check", str(mini), "--cases")
    assert ran.code == 1
    assert "is fine" not in ran.out
    assert "mini has 1 case that must hold and does not  mini.toml" in ran.out
    assert ran.out.index("FAILED") < ran.out.index("mini has 1 case")


def test_a_layer_may_be_dropped_that_the_fallback_names(run: Run, tmp_path: Path) -> None:
    """What is taken over names it; what is written here must name one there is."""
    file = tmp_path / "heir.toml"
    file.write_text('extends = "tiers"\nname = "heir"\n[[layers]]\nid = "student"\ndrop = true\n')
    assert run("check", str(file)).code == 0
    file.write_text('extends = "tiers"\nname = "heir"\nfallback = { route = "MEDIUM", held_by = ["studnet"] }\n')
    ran = run("check", str(file))
    assert ran.code == 1
    assert "there is no layer 'studnet', did you mean 'student'?" in " ".join(ran.out.split())
