"""Every command as a user types it: what it prints, where, and its exit code. Nothing ends in a traceback."""

import ast
import json
import re
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import turnout
from toml_router import LOCAL
from turnout.cli import commands
from turnout.cli.app import BUG, guarded, main
from turnout.cli.table import REMOVED, RENAMED
from turnout.config.load import shipped

Run = Callable[..., Any]


class Case(NamedTuple):
    id: str
    argv: tuple[str, ...]
    code: int = 0
    out: tuple[str, ...] = ()
    err: tuple[str, ...] = ()
    stdin: bytes | None = None


CASES = [
    Case("no-arguments", (), out=("Usage: turnout COMMAND", "route", "doctor", "Examples:")),
    Case("help", ("--help",), out=("Decides what happens next",)),
    Case("version", ("--version",), out=(f"turnout {turnout.__version__}\n",)),
    Case("route-help", ("route", "--help"), out=("--profile -p NAME", "TURNOUT_PROFILE", "--session FILE")),
    Case("batch-help", ("batch", "--help"), out=("exactly one row", "--field NAME")),
    Case("misspelt-command", ("rout", "x"), 2, err=('Did you mean "route"?',)),
    Case("misspelt-subcommand", ("profiles", "shwo"), 2, err=("did you mean 'show'?",)),
    Case("misspelt-option", ("route", "x", "--jsno"), 2, err=("Did you mean --json?", "turnout route --help")),
    Case("unquoted", ("route", "two", "words"), 2, err=("'words'", "in quotes")),
    Case("leading-hyphen", ("route", "-3+5"), 2, err=("goes after '--'",)),
    Case("after-hyphens", ("route", "-p", "tiers-seed", "--", "-3+5"), out=("score",)),
    Case("missing-value", ("route", "x", "--profile"), 2, err=("--profile requires an argument",)),
    Case(
        "route",
        ("route", "Define entropy", "-p", "study-seed"),
        out=("standalone_definition  score 0.94  by local  S-",),
    ),
    Case("route-reasons", ("route", "Define entropy", "-p", "study-seed"), out=("  definition (define)",)),
    Case("route-default-profile", ("route", "hello"), out=("SIMPLE  ",)),
    Case("declared", ("route", "x", "--declare", "complex"), out=("COMPLEX", "by declared", "D-")),
    Case("ceiling", ("route", "Prove the theorem", "--ceiling", "SIMPLE"), out=("SIMPLE", "k (")),
    Case("bad-ceiling", ("route", "x", "--ceiling", "SIMPEL"), 2, err=("did you mean 'SIMPLE'?",)),
    Case(
        "bad-declared", ("route", "x", "-p", "study", "--declare", "x"), 2, err=("declared route 'x' is not a route",)
    ),
    Case("unknown-profile", ("route", "x", "-p", "teirs"), 2, err=("'teirs': no such profile, did you mean 'tiers'?",)),
    Case("missing-profile-file", ("route", "x", "-p", "no.toml"), 2, err=("no.toml: cannot be read",)),
    Case("missing-config", ("route", "x", "--config", "/no/such"), 2, err=("/no/such: cannot be read",)),
    Case("piped", ("route",), out=("SIMPLE",), stdin=b"hello\n"),
    Case("dash", ("route", "-", "-p", "tiers"), out=("SIMPLE",), stdin=b"hello\n"),
    Case("no-question", ("route",), 2, err=("no question: give it as TEXT, or pipe it in",)),
    Case("empty", ("route", ""), out=("SIMPLE", "N-", "the question is blank")),
    Case("empty-pipe", ("route",), out=("N-",), stdin=b""),
    Case("emoji", ("route", "🚂", "-p", "tiers-seed"), out=("score",)),
    Case("nul", ("route", "-p", "tiers-seed"), out=("score",), stdin=b"a\0b"),
    Case("not-utf8", ("route", "-p", "tiers-seed"), out=("score",), stdin=b"a\xff\xfeb"),
    Case("surrogates", ("explain", "a\udcff\ud800b"), out=("a\ufffd\ufffdb",)),
    Case("escape-codes", ("explain", "a\x1b[31mb\u202ec"), out=("a␛[31mb\ufffdc",)),
    Case("megabyte", ("explain",), out=("(1,000,000 characters)", "COMPLEX"), stdin=b"x" * 1_000_000),
    Case("too-long", ("route",), 2, err=("16,777,216",), stdin=b"x" * (16 * 1024 * 1024 + 1)),
    Case("explain", ("explain", "Define entropy", "-p", "study-seed"), out=("●─▶ local", "needs 0.75 ✓", "what if")),
    Case("profiles", ("profiles",), out=("name", "study", "declared →")),
    Case("profiles-show", ("profiles", "show", "tiers"), out=("score >= 0.90", "accept_confidence", "chain", "llm.v1")),
    Case("profiles-show-unknown", ("profiles", "show", "stuudy"), 2, err=("did you mean 'study'?",)),
    Case("profiles-show-default", ("profiles", "show"), out=("tiers · ",)),
    Case("check-default", ("check",), out=("tiers is fine",)),
    Case("doctor", ("doctor",), out=("python", "cyclopts", "signals.v1 (free)", "nothing is broken")),
    Case("doctor-broken-settings", ("doctor", "--config", "/no/such"), 1, out=("broken", "/no/such", "\n1 broken\n")),
    Case("misspelt-version", ("--verison",), 2, err=("unknown option '--verison', did you mean '--version'?",)),
    Case("unknown-option", ("-x",), 2, err=("unknown option '-x' (see turnout --help)",)),
    Case("profile-is-a-folder", ("route", "x", "-p", "/"), 2, err=("/ is a directory: name a .toml file",)),
    Case("check-a-folder", ("check", "/"), 2, err=("/ is a directory: name a .toml file",)),
    Case("show-a-folder", ("profiles", "show", "/"), 2, err=("/ is a directory: name a .toml file",)),
    Case("diff-a-folder", ("diff", "tiers", "/", "-"), 2, err=("/ is a directory: name a .toml file",), stdin=b""),
]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nonsense", "not valid TOML"),
        ("[tiers]\nnope = 1\n", "has no such setting"),
        ("[teirs]\n", "no such profile, did you mean 'tiers'?"),
    ],
)
def test_doctor_blames_the_settings_alone(text: str, said: str, tmp_path: Path, run: Run) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(text)
    ran = run("doctor", "--config", str(file))
    told = " ".join(ran.out.split())
    assert ran.code == 1
    assert told.count(said) == 1, ran.out
    assert told.endswith(" 1 broken")
    assert "install Turnout anew" not in told


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_command(case: Case, run: Run) -> None:
    ran = run(*case.argv, stdin=case.stdin)
    assert ran.code == case.code, ran
    for wanted in case.out:
        assert wanted in ran.out
    for wanted in case.err:
        assert wanted in ran.err
    assert bool(ran.err) == (case.code == 2)
    assert "Traceback" not in ran.err
    assert "\x1b" not in ran.out + ran.err


def test_json_is_the_documented_form(run: Run) -> None:
    for command in ("route", "explain"):
        out = run(command, "Define entropy", "-p", "study", "--json").out
        found = json.loads(out)
        expected = turnout.load("study").route_sync("Define entropy").to_dict()
        assert out.count("\n") == 1
        assert found.keys() == expected.keys()
        assert (found["route"], found["reasons"]) == (expected["route"], expected["reasons"])


def test_profile_from_the_environment(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNOUT_PROFILE", "study")
    assert run("route", "Define entropy").out.startswith("standalone_definition")
    assert run("route", "hello", "-p", "tiers").out.startswith("SIMPLE")


def test_settings_file(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[local]\nfallback_tier = 'COMPLEX'\n")
    assert run("route", "zxcv", "-p", LOCAL, "--config", str(file)).out.startswith("COMPLEX")
    shown = run("profiles", "show", LOCAL, "--config", str(file)).out
    assert "setting fallback_tier = 'COMPLEX' (mine.toml:2) sets fallback.route" in shown
    file.write_text("[local]\nfalback_tier = 'COMPLEX'\n")
    assert "did you mean 'fallback_tier'?" in run("route", "zxcv", "-p", LOCAL, "--config", str(file)).err


def test_session_grows(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    assert run("route", "hello", "--session", str(file)).code == 0
    file.write_bytes(file.read_bytes().removesuffix(b"\n"))
    picture = run("explain", "Prove the theorem formally", "--session", str(file)).out
    assert "(after 1 earlier turn)" in picture
    turns = [json.loads(line) for line in file.read_text().splitlines()]
    assert turns == [{"role": "user", "text": "hello"}, {"role": "user", "text": "Prove the theorem formally"}]


def test_session_is_left_alone_when_the_question_is_refused(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    assert run("route", "x", "--ceiling", "NO", "--session", str(file)).code == 2
    assert not file.exists()
    file.write_text('{"role":"user","text":"a"}\nnonsense\n')
    assert f"{file}:2: not a turn" in run("route", "x", "--session", str(file)).err
    assert run("route", "x", "--session", str(tmp_path)).code == 2


class Conversation(NamedTuple):
    id: str
    content: str
    text: tuple[str, ...]
    code: int
    said: str


CONVERSATIONS = [
    Conversation("question-in-file", '[{"role":"user","text":"hello"}]', (), 0, "SIMPLE"),
    Conversation("question-added", '[{"role":"user","text":"zxcv"}]', ("hello",), 0, "SIMPLE"),
    Conversation("no-user", '[{"role":"system","text":"hello"}]', (), 2, "no turn has the role 'user'"),
    Conversation("not-a-list", '{"role":"user"}', (), 2, "not a JSON list of turns"),
    Conversation("not-utf8", '[{"role":"user","text":"\udcff"}]', (), 2, "not a JSON list of turns"),
    Conversation("not-json", "[", (), 2, "not a JSON list of turns"),
    Conversation("deep", "[" * 100_000, (), 2, "not a JSON list of turns"),
]


@pytest.mark.parametrize("case", CONVERSATIONS, ids=lambda case: case.id)
def test_turns(case: Conversation, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "turns.json"
    file.write_bytes(case.content.encode("utf-8", "surrogateescape"))
    ran = run("route", *case.text, "--turns", str(file))
    assert ran.code == case.code
    assert case.said in ran.out + ran.err


def test_turns_and_session_exclude_each_other(run: Run, tmp_path: Path) -> None:
    assert "exclude each other" in run("route", "x", "--turns", "a", "--session", "b").err


def test_profiles_as_json(run: Run) -> None:
    rows = json.loads(run("profiles", "--json").out)
    assert [row["name"] for row in rows] == shipped()
    shown = json.loads(run("profiles", "show", "study", "--json").out)
    assert shown["hash"] == turnout.load_profile("study", config="").hash
    assert shown["profile"]["routes"] == rows[shipped().index("study")]["routes"]


@pytest.mark.parametrize("name", shipped())
def test_every_profile_has_a_page(name: str, run: Run) -> None:
    out = run("profiles", "show", name).out
    profile = turnout.load_profile(name, config="")
    assert profile.hash in out
    assert all(place.kind in out for place in profile.layers)
    assert max(map(len, out.splitlines())) <= 80


def test_a_bug_is_a_sentence_unless_debugging(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> int:
        raise ZeroDivisionError("secret\x1b detail")

    assert guarded(broken) == BUG
    err = capsys.readouterr().err
    assert "this is a bug in Turnout: ZeroDivisionError: secret␛ detail" in err
    assert err.count("\n") == 1
    monkeypatch.setenv("TURNOUT_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        guarded(broken)


def test_interrupt_is_quiet(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("turnout.cli.question.load_profile", interrupted)
    assert main(["route", "x"]) == 130
    assert capsys.readouterr() == ("", "")


def test_doctor_reports_what_is_missing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import metadata

    monkeypatch.setattr(metadata, "requires", lambda _: ["nonesuch>=1", "nowhere>=2; extra == 'far'"])
    ran = run("doctor")
    assert ran.code == 1
    assert "not installed, but required (nonesuch>=1)" in ran.out
    assert "pip install 'turnout[far]'" in ran.out


def test_doctor_reports_a_broken_plug_in(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import metadata

    broken = metadata.EntryPoint("bad", "no_such_module:x", "turnout.layers")
    monkeypatch.setattr(metadata, "entry_points", lambda group: [broken] if group == "turnout.layers" else [])
    ran = run("doctor")
    assert ran.code == 1
    assert "ModuleNotFoundError" in ran.out


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (("plan", "hello"), ("explain", "--plan", "hello")),
        (("replay", "-"), ("diff", "-")),
        (("shadow", "-p", "tiers"), ("student", "shadow", "-p", "tiers")),
        (("promote", "-p", "tiers"), ("student", "promote", "-p", "tiers")),
        (("rollback", "-p", "assist", "--history"), ("student", "rollback", "-p", "assist", "--history")),
        (("drift", "-p", "tiers"), ("student", "drift", "-p", "tiers")),
    ],
    ids=lambda argv: argv[0],
)
def test_an_old_name_works_and_says_the_new_one(old: tuple[str, ...], new: tuple[str, ...], run: Run) -> None:
    assert old[0] in RENAMED
    before, now = run(*old, stdin=b""), run(*new, stdin=b"")
    said, _, rest = before.err.partition("\n")
    now_called = f"turnout {old[0]} is now turnout {' '.join(RENAMED[old[0]])}"
    assert said == f"turnout: {now_called}; the old name will be removed in the next version"
    assert (before.code, before.out, rest) == (now.code, now.out, now.err)


@pytest.mark.parametrize("name", REMOVED)
def test_a_command_that_is_gone_says_what_to_use(name: str, run: Run) -> None:
    ran = run(name, "labels.jsonl", "-p", "tiers")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"turnout: turnout {name} was removed: ")
    assert "turnout train" in ran.err


def test_the_help_has_five_groups(run: Run) -> None:
    help_ = run("--help").out
    titles = re.findall(r"^╭─ (\w+) ", help_, re.MULTILINE)
    assert titles == ["Decide", "Serve", "Log", "Profile", "Learn", "Options"]
    assert not any(f"│ {name} " in help_ for name in (*RENAMED, *REMOVED))


def test_every_command_has_the_same_default_profile() -> None:
    """Where a command has a default at all: those that only filter the log have none."""
    defaults = set()
    for path in Path(commands.__file__).parent.parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            values: list[tuple[ast.expr | None, ast.expr | None]] = []
            if isinstance(node, ast.FunctionDef):
                named = [*node.args.kwonlyargs, *node.args.posonlyargs[::-1]]
                given = [*node.args.kw_defaults, *node.args.defaults[::-1]]
                values = [(one.annotation, value) for one, value in zip_longest(named, given[: len(named)])]
            elif isinstance(node, ast.AnnAssign):
                values = [(node.annotation, node.value)]
            for annotation, default in values:
                if isinstance(annotation, ast.Name) and annotation.id in ("ProfileOption", "ProfileArgument"):
                    assert isinstance(default, ast.Name), path
                    defaults.add(default.id)
    assert defaults == {"DEFAULT_PROFILE"}
