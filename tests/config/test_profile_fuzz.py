"""Three hundred damaged profiles: each loads, or says what is wrong with it; none does anything else.

The damage is done to the shipped profiles as data: keys deleted, renamed or moved, values replaced by others of every
type, whole branches grafted elsewhere. What loads must also decide.
"""

import copy
import datetime
import functools
import random
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from turnout import ConfigError, Profile, Router, load, load_profile
from turnout.config.document import Document, from_source
from turnout.config.load import shipped, shipped_file
from turnout.config.resolve import build

Tree = Any
SEEDS = 500
# A profile that is damaged and still loads must decide these.
QUESTIONS = ("", "Define entropy on this page", "prove the theorem step by step", "\ud800\0🙂 λόγος")

VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    3.5,
    -0.0,
    1e308,
    float("nan"),
    float("inf"),
    2**63,
    10**400,
    "",
    " ",
    "a",
    "SIMPLE",
    "study",
    "rules.v1",
    "signals.v1",
    "declared.v1",
    "(?=x)",
    "x" * 2000,
    "\u202e\0",
    "{n}",
    "layers[0].kind",
    [],
    [[]],
    ["a", "b"],
    [1, "a", None],
    [{}],
    [{"id": "a"}],
    {},
    {"drop": True},
    {"route": "MEDIUM"},
    {"id": "x", "kind": "rules.v1"},
    {"env": "HOME"},
    datetime.date(2020, 2, 29),
    datetime.datetime(2020, 2, 29, 1, 2, 3, tzinfo=datetime.UTC),
    datetime.time(7, 32),
]


def places(tree: Tree, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def at(tree: Tree, path: tuple[Any, ...]) -> Tree:
    for key in path:
        tree = tree[key]
    return tree


def delete(tree: Tree, path: tuple[Any, ...], chance: random.Random) -> None:
    del at(tree, path[:-1])[path[-1]]


def replace(tree: Tree, path: tuple[Any, ...], chance: random.Random) -> None:
    at(tree, path[:-1])[path[-1]] = copy.deepcopy(chance.choice(VALUES))


def rename(tree: Tree, path: tuple[Any, ...], chance: random.Random) -> None:
    parent = at(tree, path[:-1])
    if isinstance(parent, dict):
        name = str(path[-1])
        parent[chance.choice([name[:-1], name + "s", name.upper(), "drop", "id", "kind", ""])] = parent.pop(path[-1])
    else:
        chance.shuffle(parent)


def retarget(tree: Tree, path: tuple[Any, ...], chance: random.Random) -> None:
    """The value of one place at another."""
    other = chance.choice(list(places(tree)))
    at(tree, path[:-1])[path[-1]] = copy.deepcopy(at(tree, other))


def double(tree: Tree, path: tuple[Any, ...], chance: random.Random) -> None:
    parent = at(tree, path[:-1])
    if isinstance(parent, list):
        parent.append(copy.deepcopy(parent[path[-1]]))
    else:
        parent[f"{path[-1]}_"] = copy.deepcopy(parent[path[-1]])


def nudge(tree: Tree, path: tuple[Any, ...], chance: random.Random) -> None:
    value = at(tree, path)
    if isinstance(value, bool):
        value = not value
    elif isinstance(value, int | float):
        value = chance.choice([-value, value * 1000, value + 1, value / 2, 0])
    elif isinstance(value, str):
        value = chance.choice([value + " ", value[1:], value.upper(), value + "|", f"{value}.{value}"])
    at(tree, path[:-1])[path[-1]] = value


DAMAGE: list[Callable[[Tree, tuple[Any, ...], random.Random], None]] = [
    delete,
    replace,
    rename,
    retarget,
    double,
    nudge,
    nudge,
]


def damaged(seed: int) -> Document:
    """A shipped profile, damaged in one to three places; small wounds are more telling than large ones."""
    chance = random.Random(seed)
    name = chance.choice(shipped())
    # Its base as well, so that everything can be hit: the tree is merged by hand, as data.
    source = shipped_file(name).read_text(encoding="utf-8")
    tree: Tree = tomllib.loads(source)
    while "extends" in tree:
        base = tomllib.loads(shipped_file(tree.pop("extends")).read_text(encoding="utf-8"))
        tree = {**base, **{key: value for key, value in tree.items() if key not in ("layers", "blank")}}
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        path = chance.choice(list(places(tree)))
        chance.choice(DAMAGE)(tree, path, chance)
    return Document(tree, {}, f"seed{seed}.toml")


def attempt(make: Callable[[], Profile], seed: object) -> Profile | None:
    """The profile, or None where loading it was refused in the one way it may be."""
    try:
        return make()
    except ConfigError as error:
        if error.problems and all(problem.message for problem in error.problems):
            return None
        pytest.fail(f"seed {seed}: refused without saying why")
    except Exception as error:  # the one thing that must not happen; the seed makes it a bug report
        pytest.fail(f"seed {seed}: {type(error).__name__}: {error}")


def check_decides(profile: Profile, seed: object) -> None:
    router = Router(profile)
    for text in QUESTIONS:
        decision = router.route_sync(text)
        assert decision.route in profile.routes, seed
        assert decision.json(), seed


@pytest.mark.alike(3)
@pytest.mark.parametrize("start", range(0, SEEDS, 30))
def test_a_damaged_profile_loads_or_says_what_is_wrong(start: int) -> None:
    loaded = []
    for seed in range(start, start + 30):
        profile = attempt(functools.partial(build, damaged(seed)), seed)
        if profile is not None:
            check_decides(profile, seed)
            loaded.append(seed)
    assert 0 < len(loaded) < 30, "the damage is neither harmless nor always fatal"


def cut(source: str, chance: random.Random) -> str:
    """Damage to the text itself: TOML that is broken, or means something else."""
    lines = source.splitlines()
    for _ in range(chance.randint(1, 3)):
        i = chance.randrange(len(lines))
        match chance.randrange(6):
            case 0:
                del lines[i]
            case 1:
                lines.insert(i, lines[chance.randrange(len(lines))])
            case 2:
                lines[i] = lines[i][: chance.randrange(len(lines[i]) + 1)]
            case 3:
                lines[i] = lines[i].replace("=", chance.choice([".", "", "==", ":"]), 1)
            case 4:
                lines[i] = lines[i].translate(str.maketrans("[]{}\"'", chance.choice(["{}[]'\"", "()()``", '[[]]""'])))
            case _:
                lines[i] = f"{chance.choice(['drop', 'id', 'extends', 'settings'])} = {lines[i].partition('=')[2]}"
        if not lines:
            break
    return "\n".join(lines)


@pytest.mark.parametrize("start", range(0, 100, 25))
def test_a_damaged_file_loads_or_says_what_is_wrong(start: int, tmp_path: Path) -> None:
    path, settings = tmp_path / "damaged.toml", tmp_path / "turnout.toml"
    settings.write_text("[study]\nrouter_timeout_ms = 9\n[tiers]\nband_edges = [0.1, 0.2, 0.3]\n")
    for seed in range(start, start + 25):
        chance = random.Random(f"text {seed}")
        source = shipped_file(chance.choice(shipped())).read_text(encoding="utf-8")
        path.write_text(cut(source, chance), encoding="utf-8")
        profile = attempt(lambda: load_profile(path, config=settings), seed)
        if profile is not None:
            check_decides(profile, seed)


NASTY = {
    "settings of another type": "settings = 5",
    "contract of another type": "contract = true",
    "an array of arrays": "layers = [[], [[]]]",
    "a table for everything": "[name]\n[routes]\n[layers]\n[fallback]\n[policy]\n[text]\n[adjust]\n[contract]",
    "numbers for everything": "name = 1\nroutes = 1\nlayers = 1\nfallback = 1\npolicy = 1\nadjust = 1",
    "dates": "name = 2020-01-01\nroutes = [2020-01-01]\nlayers = [{ kind = 07:00:00 }]",
    "odd keys": "'' = 1\n'a.b' = 2\n'[0]' = 3\n\"\\u0000\" = 4",
    "one thousand layers": "\n".join(["[[layers]]\nkind = 'x.v1'"] * 1000),
    "ten thousand routes": f"routes = [{', '.join(repr(f'r{i}') for i in range(10_000))}]",
    "drop everything": "extends = 'study'\nlayers = { drop = true }\nroutes = { drop = true }\nname = { drop = true }",
    "extends itself by name": "extends = 'tiers'\nextends_ = 1",
}


@pytest.mark.parametrize("source", NASTY.values(), ids=NASTY.keys())
def test_nasty_files_are_config_errors(source: str, tmp_path: Path) -> None:
    path = tmp_path / "nasty.toml"
    path.write_text(source)
    (tmp_path / "turnout.toml").write_text("[study]\nrouter_timeout_ms = 9\n")
    with pytest.raises(ConfigError):
        load(path, config=tmp_path / "turnout.toml")


def test_many_mistakes_are_reported_in_good_time() -> None:
    tree = from_source("\n".join(f"[[layers]]\nkind = 'x{i}.v1'" for i in range(300)), "x.toml")
    with pytest.raises(ConfigError) as caught:
        build(tree)
    assert len(caught.value.problems) >= 300
