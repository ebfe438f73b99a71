"""Finding profiles, extending them, and laying the user's settings over them."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from turnout import ConfigError, Profile, Router, UnknownProfile, load, load_profile, profile_names
from turnout.config.settings import settings_file

TOY = """\
name = "toy"
routes = ["a", "b"]
fallback = { route = "a" }

[[layers]]
id = "rules"
kind = "rules.v1"

[[layers.rules]]
id = "one"
route = "b"
when = { any = ["bee"] }

[policy.a]

[policy.b]
"""

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(name: str, source: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
        return path

    return write_file


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TURNOUT_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "nowhere"))


def problems(load: Callable[[], Any]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load()
    return [str(problem) for problem in caught.value.problems]


class TestFinding:
    def test_shipped_profiles_load_by_name(self) -> None:
        assert {"study", "study-seed", "tiers", "tiers-seed", "sources", "claims", "assist"} == set(profile_names())
        for name in profile_names():
            profile = load_profile(name)
            assert (profile.name, len(profile.hash)) == (name, 16)
            assert profile.description

    @pytest.mark.parametrize("kind", [str, Path, os.fspath], ids=["string", "path", "fspath"])
    def test_a_path_loads(self, write: Write, kind: Callable[[Any], Any]) -> None:
        assert load_profile(kind(write("toy.toml", TOY))).name == "toy"

    def test_a_file_may_have_another_ending(self, write: Write) -> None:
        assert load_profile(write("toy.conf", TOY)).name == "toy"

    def test_a_shipped_name_wins_over_a_file_of_that_name(self, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(write("study", TOY).parent)
        assert load_profile("study").name == "study"
        assert load_profile("./study").name == "toy"

    class Unknown(NamedTuple):
        name: str
        parts: tuple[str, ...]

    UNKNOWN = (
        Unknown("studdy", ("'studdy'", "did you mean 'study'?", "known: assist, ", "path of a .toml file")),
        Unknown("TIERS", ("did you mean 'tiers'?",)),
        Unknown("", ("no such profile",)),
        Unknown("a\0b", ("no such profile",)),
        Unknown("a\0b.toml", ("no such profile",)),
        Unknown("x" * 5000, ("no such profile",)),
        Unknown("../study", ("no such profile",)),
    )

    @pytest.mark.parametrize("case", UNKNOWN, ids=lambda case: ascii(case.name[:10]))
    def test_an_unknown_name_is_a_config_error_with_a_suggestion(self, case: Unknown) -> None:
        with pytest.raises(UnknownProfile) as caught:
            load_profile(case.name)
        assert isinstance(caught.value, ConfigError)
        for part in case.parts:
            assert part in str(caught.value)

    def test_a_missing_file_says_so(self, tmp_path: Path) -> None:
        assert problems(lambda: load_profile(tmp_path / "gone.toml")) == [
            f"{tmp_path}/gone.toml: cannot be read: No such file or directory"
        ]

    def test_a_directory_says_so(self, tmp_path: Path) -> None:
        (tmp_path / "dir.toml").mkdir()
        assert "Is a directory" in problems(lambda: load_profile(tmp_path / "dir.toml"))[0]
        with pytest.raises(UnknownProfile):
            load_profile(tmp_path)

    def test_an_empty_file_lists_what_is_missing(self, write: Write) -> None:
        assert problems(lambda: load_profile(write("empty.toml", ""))) == [
            f"empty.toml: {name!r} is missing" for name in ("name", "routes", "layers", "fallback", "policy")
        ]

    def test_load_gives_a_router(self, write: Write) -> None:
        router = load(write("toy.toml", TOY))
        assert isinstance(router, Router)
        assert (router.route_sync("a bee").route, router.route_sync("a wasp").route) == ("b", "a")


class TestExtends:
    def test_what_is_not_said_is_inherited(self, write: Write) -> None:
        write("base.toml", TOY)
        profile = load_profile(write("over.toml", 'extends = "base.toml"\nname = "over"\ndeadline_ms = 50'))
        assert (profile.name, profile.deadline_ms, profile.routes) == ("over", 50, ("a", "b"))
        assert profile.resolved["layers"][0]["rules"][0]["id"] == "one"

    def test_relative_paths_start_at_the_file(self, write: Write) -> None:
        write("deep/base.toml", TOY)
        write("deep/middle.toml", 'extends = "base.toml"\nname = "middle"')
        assert load_profile(write("top.toml", 'extends = "deep/middle.toml"')).name == "middle"

    def test_a_shipped_profile_can_be_extended(self, write: Write) -> None:
        path = write("mine.toml", 'extends = "tiers"\nname = "mine"\n[policy.SIMPLE]\nmodel = "tiny"')
        profile = load_profile(path)
        assert (profile.policies["SIMPLE"].model, profile.policies["MEDIUM"].model) == ("tiny", "medium")
        assert profile.hash != load_profile("tiers").hash

    def test_a_rule_is_changed_added_and_dropped_by_id(self, write: Write) -> None:
        write("base.toml", TOY)
        over = """\
extends = "base.toml"
name = "over"
[[layers]]
id = "rules"
[[layers.rules]]
id = "two"
route = "b"
when = { any = ["wasp"] }
"""
        added = load(write("added.toml", over))
        assert [added.route_sync(text).route for text in ("bee", "wasp", "fly")] == ["b", "b", "a"]
        dropped = load(write("dropped.toml", over + '[[layers.rules]]\nid = "one"\ndrop = true\n'))
        assert [dropped.route_sync(text).route for text in ("bee", "wasp", "fly")] == ["a", "b", "a"]

    def test_lines_are_right_through_extends(self, write: Write) -> None:
        write("base.toml", TOY.replace('"bee"', "3"))
        over = write("over.toml", 'extends = "base.toml"\n\n\n[policy.a]\nimage = "no"\n')
        assert sorted(problems(lambda: load_profile(over))) == [
            "base.toml:12 layers[0].rules[0].when.any[0]: must be a string, found 3",
            "over.toml:5 policy.a.image: must be true or false, found 'no'",
        ]

    class Circle(NamedTuple):
        id: str
        files: dict[str, str]
        problem: str

    CIRCLES = (
        Circle(
            "itself", {"a.toml": "a.toml"}, "a.toml:1 extends: 'a.toml' extends this file in turn: break the circle"
        ),
        Circle("two", {"a.toml": "b.toml", "b.toml": "a.toml"}, "b.toml:1 extends: 'a.toml' extends this file in turn"),
        Circle(
            "three",
            {"a.toml": "b.toml", "b.toml": "./c.toml", "c.toml": "../{dir}/a.toml"},
            "c.toml:1 extends: '../{dir}/a.toml' extends this file in turn",
        ),
    )

    @pytest.mark.parametrize("case", CIRCLES, ids=lambda case: case.id)
    def test_a_circle_is_reported(self, case: Circle, write: Write, tmp_path: Path) -> None:
        for name, base in case.files.items():
            write(name, f'extends = "{base.replace("{dir}", tmp_path.name)}"')
        (problem,) = problems(lambda: load_profile(tmp_path / "a.toml"))
        assert problem.startswith(case.problem.replace("{dir}", tmp_path.name))

    @pytest.mark.parametrize(
        ("extends", "message"),
        [
            ('"studdy"', "p.toml:2 extends: 'studdy': no such profile, did you mean 'study'?"),
            ('"gone.toml"', "gone.toml: cannot be read: No such file"),
            ("3", "p.toml:2 extends: must be the name of a profile, found 3"),
            ('["study"]', "p.toml:2 extends: must be the name of a profile"),
            ('"a\\u0000.toml"', "p.toml:2 extends: "),
            (f'"{"x" * 5000}"', "p.toml:2 extends: "),
        ],
        ids=["unknown", "missing", "number", "list", "NUL", "too long"],
    )
    def test_a_base_that_cannot_be_found(self, extends: str, message: str, write: Write) -> None:
        path = write("p.toml", f'name = "p"\nextends = {extends}\n')
        assert message in problems(lambda: load_profile(path))[0]


class Setting(NamedTuple):
    name: str
    value: Any
    find: Callable[[Profile], Any]
    default: Any


def layer(profile: Profile, id: str) -> Any:
    return next(item for item in profile.resolved["layers"] if item["id"] == id)


def gate(profile: Profile, id: str) -> Any:
    return next(place.gate for place in profile.layers if place.id == id)


STUDY_SETTINGS = [
    Setting("enable_query_router", False, lambda p: p.off is None, True),
    Setting("router_local_confidence_threshold", 0.5, lambda p: gate(p, "local").confidence, 0.75),
    Setting("router_local_margin_threshold", 0.05, lambda p: gate(p, "local").margin, 0.2),
    Setting("router_model", "tiny", lambda p: layer(p, "llm").get("model"), None),
    Setting("router_timeout_ms", 120, lambda p: next(i.deadline_ms for i in p.layers if i.id == "llm"), 350),
    Setting("router_max_tokens", 40, lambda p: layer(p, "llm")["max_tokens"], 80),
    Setting("router_llm_confidence_threshold", 0.9, lambda p: gate(p, "llm").confidence, 0.7),
    Setting("router_fallback_mode", "standalone_definition", lambda p: p.fallback.route, "general_contextual"),
]


def toml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


class TestSettings:
    @pytest.mark.parametrize("case", STUDY_SETTINGS, ids=lambda case: case.name)
    def test_each_setting_of_study(self, case: Setting, write: Write) -> None:
        assert case.find(load_profile("study")) == case.default
        config = write("turnout.toml", f"[study]\n{case.name} = {toml(case.value)}\n")
        profile = load_profile("study", config=config)
        assert case.find(profile) == case.value
        assert profile.hash != load_profile("study").hash
        (remark,) = [remark for remark in profile.remarks if case.name in remark]
        assert f"setting {case.name} = {case.value!r} (turnout.toml:2) sets " in remark

    def test_all_settings_are_known_and_no_other(self) -> None:
        names = [case.name for case in STUDY_SETTINGS]
        assert list(load_profile("study").resolved["settings"]) == names

    def test_the_resolved_profile_shows_the_result(self, write: Write) -> None:
        lines = "".join(f"{case.name} = {toml(case.value)}\n" for case in STUDY_SETTINGS)
        profile = load_profile("study", config=write("turnout.toml", f"[study]\n{lines}"))
        assert profile.resolved["enabled"] is False
        assert layer(profile, "local")["accept"] == {"confidence": 0.5, "margin": 0.05}
        assert layer(profile, "llm")["accept"] == {"confidence": 0.9}
        assert (layer(profile, "llm")["deadline_ms"], layer(profile, "llm")["model"]) == (120, "tiny")
        assert profile.resolved["fallback"]["route"] == "standalone_definition"

    def test_they_change_what_is_decided(self, write: Write) -> None:
        text = "What is complexity in this context?"
        assert load("study-seed").route_sync(text).by == "fallback"
        low = "[study-seed]\nrouter_local_confidence_threshold = 0.5\nrouter_local_margin_threshold = 0.0\n"
        assert load("study-seed", config=write("low.toml", low)).route_sync(text).by == "local"
        off = load("study", config=write("off.toml", "[study]\nenable_query_router = false\n"))
        assert (off.route_sync(text).route, off.route_sync(text).outcome) == ("general_contextual", "N-")

    def test_tiers_has_settings_of_its_own(self, write: Write) -> None:
        source = '[tiers]\naccept_confidence = 0.1\nband_edges = [0.1, 0.2, 0.3]\nfallback_tier = "SIMPLE"\n'
        profile = load_profile("tiers", config=write("turnout.toml", source))
        assert gate(profile, "signals").confidence == 0.1
        assert layer(profile, "signals")["bands"]["edges"] == [0.1, 0.2, 0.3]
        assert profile.fallback.route == "SIMPLE"

    def test_an_heir_inherits_and_what_has_no_effect_is_said(self, write: Write) -> None:
        config = write("turnout.toml", "[study]\nrouter_local_margin_threshold = 0.01\nrouter_timeout_ms = 10\n")
        heir = write("mine.toml", 'extends = "study"\nname = "mine"\n[[layers]]\nid = "llm"\ndrop = true\n')
        profile = load_profile(heir, config=config)
        assert gate(profile, "local").margin == 0.01
        assert any("router_timeout_ms has no effect" in remark for remark in profile.remarks)
        assert not any(place.id == "llm" for place in profile.layers)

    def test_a_profiles_own_table_wins_over_its_bases(self, write: Write) -> None:
        name = "router_local_margin_threshold"
        config = write("turnout.toml", f"[study]\n{name} = 0.3\n[study-seed]\n{name} = 0.1\n")
        assert gate(load_profile("study", config=config), "local").margin == 0.3
        assert gate(load_profile("study-seed", config=config), "local").margin == 0.1

    def test_another_profiles_table_changes_nothing(self, write: Write) -> None:
        config = write("turnout.toml", "[tiers]\naccept_confidence = 0.1\n")
        assert load_profile("study", config=config).hash == load_profile("study").hash

    class Wrong(NamedTuple):
        id: str
        settings: str
        problems: list[str]
        profile: str = "study"

    WRONG = (
        Wrong(
            "unknown setting",
            "[study]\n\nrouter_timeout = 5\n",
            ["turnout.toml:3 study.router_timeout: profile 'study' has no such setting, did you mean 'router_"],
        ),
        Wrong(
            "nothing like it", "[study]\nzebra = 5\n", ["turnout.toml:2 study.zebra: profile 'study' has no such setti"]
        ),
        Wrong(
            "unknown profile", "[studdy]\nx = 1\n", ["turnout.toml:1 studdy: no such profile, did you mean 'study'?"]
        ),
        Wrong("not a table", "study = 5\n", ["turnout.toml:1 study: must be a table"]),
        Wrong(
            "two at once",
            "[study]\nzebra = 5\nrouter_timeout = 5\n",
            ["turnout.toml:2 study.zebra", "turnout.toml:3 study.router_timeout"],
        ),
        Wrong(
            "wrong type",
            "[study]\n# slow\nrouter_timeout_ms = 'long'\n",
            ["turnout.toml:3 layers[3].deadline_ms: must be a number, found 'long'"],
        ),
        Wrong(
            "out of range",
            "[study]\nrouter_local_confidence_threshold = 75\n",
            ["turnout.toml:2 layers[2].accept.confidence: 75 is above 1, the most it may be"],
        ),
        Wrong(
            "unknown route",
            "[study]\nrouter_fallback_mode = 'standalone_defintion'\n",
            ["turnout.toml:2 fallback.route: 'standalone_defintion' is not a route, did you mean 'standalone_def"],
        ),
        Wrong(
            "a word for yes", "[study]\nenable_query_router = 'no'\n", ["turnout.toml:2 enabled: must be true or false"]
        ),
        Wrong(
            "a table", "[study.router_timeout_ms]\nx = 1\n", ["turnout.toml:1 layers[3].deadline_ms: must be a number"]
        ),
        Wrong(
            "inside a list",
            "[tiers]\nband_edges = ['low', 0.1, 0.2]\n",
            ["turnout.toml:2 layers[4].bands.edges[0]: must be a number, found 'low'"],
            "tiers",
        ),
        Wrong(
            "edges that fall",
            "[tiers]\nband_edges = [0.3, 0.2, 0.1]\n",
            ["turnout.toml:2 layers[4].bands.edges: [0.3, 0.2, 0.1] must rise"],
            "tiers",
        ),
        Wrong("not TOML", "[study\n", ["turnout.toml:1: not valid TOML"]),
    )

    @pytest.mark.parametrize("case", WRONG, ids=lambda case: case.id)
    def test_a_mistake_is_reported_at_the_settings_files_line(self, case: Wrong, write: Write) -> None:
        config = write("turnout.toml", case.settings)
        found = problems(lambda: load_profile(case.profile, config=config))
        assert len(found) == len(case.problems)
        for problem, expected in zip(found, case.problems, strict=True):
            assert problem.startswith(expected)

    @pytest.mark.parametrize(
        "settings", ["settings = 5", "settings = { a = 5 }", "settings = []", "settings = { a = '' }"]
    )
    def test_a_profile_whose_own_settings_are_wrong(self, settings: str, write: Write) -> None:
        path = write("toy.toml", f"{settings}\n{TOY}")
        assert problems(lambda: load_profile(path, config=write("turnout.toml", "[toy]\na = 1\n")))

    def test_one_file_serves_all_profiles_of_a_user(self, write: Write) -> None:
        toy = write("toy.toml", TOY + '[settings]\nwait_ms = "deadline_ms"\n')
        config = write("turnout.toml", "[toy]\nwait_ms = 77\n[study]\nrouter_timeout_ms = 99\n")
        assert load_profile(toy, config=config).deadline_ms == 77
        assert load_profile("study", config=config).layers[3].deadline_ms == 99


class TestWhereSettingsAre:
    SETTINGS = "[study]\nrouter_timeout_ms = 99\n"

    def timeout(self, **more: Any) -> float:
        return next(place.deadline_ms for place in load_profile("study", **more).layers if place.id == "llm")

    def test_none(self) -> None:
        assert settings_file() is None
        assert self.timeout() == 350

    def test_the_users_configuration_directory(
        self, write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        write("conf/turnout/turnout.toml", self.SETTINGS)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "conf"))
        assert settings_file() == tmp_path / "conf" / "turnout" / "turnout.toml"
        assert self.timeout() == 99

    def test_the_home_directory(self, write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        write("home/.config/turnout/turnout.toml", self.SETTINGS)
        monkeypatch.delenv("XDG_CONFIG_HOME")
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        assert self.timeout() == 99

    def test_turnout_config_wins(self, write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        write("conf/turnout/turnout.toml", "[study]\nrouter_timeout_ms = 11\n")
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "conf"))
        monkeypatch.setenv("TURNOUT_CONFIG", str(write("mine.toml", self.SETTINGS)))
        assert self.timeout() == 99

    def test_a_missing_turnout_config_is_an_error(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("TURNOUT_CONFIG", str(tmp_path / "gone.toml"))
        assert "gone.toml: cannot be read" in problems(lambda: load_profile("study"))[0]

    def test_an_argument_wins_over_everything(self, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TURNOUT_CONFIG", str(write("env.toml", "[study]\nrouter_timeout_ms = 11\n")))
        assert self.timeout(config=write("mine.toml", self.SETTINGS)) == 99
        assert self.timeout(config="") == 350
        assert self.timeout() == 11

    def test_the_working_directory_is_not_asked(self, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(write("turnout.toml", self.SETTINGS).parent)
        assert self.timeout() == 350


def test_a_missing_kind_is_remarked_and_passes() -> None:
    profile = load_profile("study-seed")
    if any(place.call is None for place in profile.layers):
        assert any(remark.startswith("layer 'llm' passes: no model fills") for remark in profile.remarks)
        decision = load("study-seed").route_sync("What is complexity in this context?")
        assert decision.steps[-1].ended == "passed"
        assert decision.reasons[0].text == "fallback:low_conf(local=0.59,llm=na)"
