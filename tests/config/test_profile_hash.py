"""The hash names everything in a profile that can change a decision, and nothing else."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from turnout import load_profile, profile_names

BASE = """\
name = "toy"
description = "a toy"
routes = ["a", "b"]
cases = "toy.jsonl"
deadline_ms = 400
fallback = { route = "a", confidence = 0.5 }

[settings]
wait_ms = "deadline_ms"

[[layers]]
id = "signals"
kind = "signals.v1"
accept = { confidence = 0.7 }

[[layers.signals]]
id = "s"
weight = 0.6
words = ["bee", "wasp"]

[[layers.signals]]
id = "t"
weight = 0.4
words = ["ant"]

[layers.bands]
edges = [0.5]
routes = ["a", "b"]
steepness = 12.0

[policy.a]
model = "small"

[policy.b]
model = "big"
"""


def hashed(source: str, tmp_path: Path, name: str = "toy.toml") -> str:
    path = tmp_path / name
    path.write_text(source)
    return load_profile(path, config="").hash


class Case(NamedTuple):
    id: str
    old: str
    new: str


SAME = [
    Case("nothing", "", ""),
    Case("comments and blank lines", "[policy.a]", "# what a means\n\n[policy.a] # a"),
    Case("spaces", "deadline_ms = 400", "deadline_ms=400"),
    Case("quotes", '"small"', "'small'"),
    Case("inline tables", '[policy.a]\nmodel = "small"\n', 'policy.a = { model = "small" }\n'),
    Case("order of keys", 'id = "s"\nweight = 0.6', 'weight = 0.6\nid = "s"'),
    Case("description", '"a toy"', '"another text"'),
    Case("no description", 'description = "a toy"\n', ""),
    Case("cases", '"toy.jsonl"', '"other.jsonl"'),
    Case("names of settings", "wait_ms", "patience_ms"),
    Case("spelling of a number", "weight = 0.6", "weight = 6e-1"),
    Case("underscores", "deadline_ms = 400", "deadline_ms = 4_00"),
]
OTHER = [
    Case("a weight", "0.6\nwords", "0.6000000001\nwords"),
    Case("a word", '"wasp"', '"wasps"'),
    Case("order of words", '["bee", "wasp"]', '["wasp", "bee"]'),
    Case("a gate", "confidence = 0.7", "confidence = 0.71"),
    Case("a policy", '"small"', '"tiny"'),
    Case("a deadline", "400", "401"),
    Case("the name", 'name = "toy"', 'name = "toys"'),
    Case("the fallback", "confidence = 0.5", "confidence = 0.6"),
    Case("a contract", "[policy.a]", '[[contract]]\nid = "C"\nnever = "image"\n[policy.a]'),
    Case("how text is folded", "[settings]", '[text]\nfold = "javascript"\n[settings]'),
    Case("an optional layer", "[policy.a]", '[[layers]]\nkind = "other.v1"\noptional = true\n[policy.a]'),
]


@pytest.mark.parametrize("case", SAME, ids=lambda case: case.id)
def test_what_decides_nothing_does_not_change_it(case: Case, tmp_path: Path) -> None:
    source = BASE.replace('[policy.a]\nmodel = "small"\n', "") if case.new.startswith("policy.a") else BASE
    changed = f"{case.new}{source}" if case.new.startswith("policy.a") else source.replace(case.old, case.new)
    assert case.old in BASE
    assert hashed(changed, tmp_path) == hashed(BASE, tmp_path)


@pytest.mark.parametrize("case", OTHER, ids=lambda case: case.id)
def test_what_may_decide_changes_it(case: Case, tmp_path: Path) -> None:
    assert BASE.count(case.old) == 1
    assert hashed(BASE.replace(case.old, case.new), tmp_path) != hashed(BASE, tmp_path)


def test_a_profile_written_out_has_the_hash_of_the_one_that_extends(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(BASE)
    over = 'extends = "base.toml"\n[policy.a]\nmodel = "tiny"\n'
    assert hashed(over, tmp_path, "over.toml") == hashed(BASE.replace('"small"', '"tiny"'), tmp_path)


def test_a_setting_is_the_same_as_writing_the_value(tmp_path: Path) -> None:
    (tmp_path / "turnout.toml").write_text("[toy]\nwait_ms = 99\n")
    (tmp_path / "toy.toml").write_text(BASE)
    by_setting = load_profile(tmp_path / "toy.toml", config=tmp_path / "turnout.toml").hash
    assert by_setting == hashed(BASE.replace("400", "99"), tmp_path)


def test_the_files_name_and_place_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    assert hashed(BASE, tmp_path / "sub", "other.toml") == hashed(BASE, tmp_path)


def test_shipped_profiles_differ() -> None:
    hashes = {name: load_profile(name, config="").hash for name in profile_names()}
    assert len(set(hashes.values())) == len(hashes)


def test_it_is_the_same_in_every_process() -> None:
    code = "import turnout; print(*[turnout.load_profile(n, config='').hash for n in turnout.profile_names()])"
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        ).stdout.split()[0]
        for seed in ("0", "1", "4242")
    }
    assert seen == {load_profile(profile_names()[0], config="").hash}
