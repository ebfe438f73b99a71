"""`turnout route` writes down what it decides; `turnout log` lists it, filters it and follows it."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import turnout
from child import running
from old_rows import backdate, ms
from toml_router import LOCAL, unlearnt
from turnout import Query
from turnout.cli.draw.log import SHORT_ID, DecisionLines
from turnout.cli.draw.screen import PLAIN, Glyphs
from turnout.config.settings import data_folder
from turnout.store import Store, open_store
from turnout.store.follow import OVERLAP_S, Follower
from turnout.store.records import LogFilter

Run = Callable[..., Any]

TIERS, SOURCES = unlearnt("tiers"), unlearnt("sources")


@pytest.fixture
def store() -> Iterator[Store]:
    """The log the commands of a test use, open beside them."""
    with open_store() as store:
        yield store


def logged(run: Run, *filters: str) -> list[dict[str, Any]]:
    ran = run("log", "--json", *filters)
    assert (ran.code, ran.err) == (0, "")
    return [json.loads(line) for line in ran.out.splitlines()]


# --- writing


def test_route_logs_what_it_decides(run: Run) -> None:
    shown = json.loads(run("route", "Define entropy", "-p", "study", "--tenant", "acme", "--json").out)
    (row,) = logged(run, "--tenant", "acme")
    assert row["decision"] == shown
    assert (row["id"], row["question"], row["tenant"]) == (shown["id"], "Define entropy", "acme")
    assert "body" not in row
    assert logged(run) == []


def test_explain_and_plan_draw_and_do_not_log(run: Run) -> None:
    assert run("explain", "hello").code == run("explain", "--plan", "hello").code == 0
    assert not Path(os.environ["TURNOUT_DB"]).exists()


class UnloggedCase(NamedTuple):
    id: str
    argv: tuple[str, ...]
    settings: str = ""


@pytest.mark.parametrize(
    "case",
    [
        UnloggedCase("option", ("--no-log",)),
        UnloggedCase("settings", (), "[store]\nlog_commands = false\n"),
    ],
    ids=lambda case: case.id,
)
def test_logging_can_be_left_out(case: UnloggedCase, run: Run, tmp_path: Path) -> None:
    settings = tmp_path / "turnout" / "turnout.toml"
    settings.parent.mkdir()
    settings.write_text(case.settings)
    ran = run("route", "hello", *case.argv)
    assert (ran.code, ran.err) == (0, "")
    assert not Path(os.environ["TURNOUT_DB"]).exists()


class BrokenCase(NamedTuple):
    id: str
    db: str
    said: str


BROKEN = [
    BrokenCase("no such folder", "/proc/nowhere/x.db", "No such file or directory"),
    BrokenCase("a folder", "{tmp}", "{tmp}"),
    BrokenCase("not a database", "{tmp}/noise.db", "file is not a database"),
    BrokenCase("unknown kind", "mongodb://x", "no store speaks 'mongodb'"),
    BrokenCase("nobody answers", "postgresql://nobody@127.0.0.1:1/x", "127.0.0.1:1/x: "),
    BrokenCase("a newer schema", "{tmp}/newer.db", "upgrade Turnout"),
]


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.id)
def test_a_decision_stands_whatever_the_log_does(
    case: BrokenCase, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if case.db.startswith("postgresql"):
        monkeypatch.setattr(pytest.importorskip("turnout.store.postgres"), "CONNECT_S", 0.2)
    (tmp_path / "noise.db").write_bytes(os.urandom(5000))
    with open_store(str(tmp_path / "newer.db")):
        pass
    with closing(sqlite3.connect(tmp_path / "newer.db")) as connection:
        connection.execute("insert into schema_version values (999, 'later', '', 0)")
        connection.commit()
    ran = run("route", "hello", "--db", case.db.format(tmp=tmp_path))
    assert ran.code == 0
    assert ran.out.startswith("SIMPLE")
    assert ran.err.startswith("turnout: the decision is not logged: ")
    assert case.said.format(tmp=tmp_path) in ran.err
    assert ran.err.count("\n") == 1


def test_a_locked_log_takes_the_decision_later(run: Run, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnout.store.sqlite.BUSY_S", 0.05)
    with closing(sqlite3.connect(os.environ["TURNOUT_DB"], isolation_level=None)) as connection:
        connection.execute("begin immediate")
        ran = run("route", "hello")
        connection.execute("rollback")
    assert (ran.code, ran.out[:6]) == (0, "SIMPLE")
    assert "waits in " in ran.err
    assert ran.err.count("\n") == 1
    assert [row["question"] for row in logged(run)] == ["hello"]


def test_a_session_has_a_name_in_the_log(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    for text in ("hello", "and now?"):
        run("route", text, "--session", str(file))
    run("route", "elsewhere")
    for name in (str(file), os.path.relpath(file)):
        assert [row["question"] for row in logged(run, "--session", name)] == ["hello", "and now?"]
    assert logged(run, "--session", "nobody") == []


def test_the_log_of_a_user_is_private_and_in_the_data_folder(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TURNOUT_DB")
    assert run("route", "hello").err == ""
    file = data_folder() / "turnout.db"
    assert file.stat().st_mode & 0o777 == 0o600


# --- listing


@pytest.fixture
def some(store: Store) -> Store:
    """Eight decisions of some days."""
    backdate(store, TIERS.route_sync("Prove the theorem formally"), ms("2026-11-01T08:00"))
    backdate(store, TIERS.route_sync("hello"), ms("2026-11-02T09:30:15"))
    backdate(store, TIERS.route_sync("zxcv"), ms("2026-11-03T10:00"))
    backdate(store, SOURCES.route_sync("Will it rain, and who won the game?"), ms("2026-11-03T11:00"))
    backdate(store, TIERS.route_sync("Define Wörld"), ms("2026-11-04T10:00"), session="s1")
    backdate(store, TIERS.route_sync("hello\n\x1b[31mworld"), ms("2026-11-04T10:01"), outcome="Lt", decided_by="llm")
    backdate(store, TIERS.route_sync(""), ms("2026-11-04T10:02"))
    backdate(store, TIERS.route_sync(Query("mine", tenant="acme")), ms("2026-11-04T10:03"))
    return store


class Filter(NamedTuple):
    id: str
    argv: tuple[str, ...]
    found: list[str]


RAIN = "Will it rain, and who won the game?"
ALL = ["Prove the theorem formally", "hello", "zxcv", RAIN, "Define Wörld", "hello\n\x1b[31mworld", ""]
FILTERS = [
    Filter("all", (), ALL),
    Filter("limit", ("-n", "2"), ALL[-2:]),
    Filter("limit-none", ("--limit", "0"), []),
    Filter("profile", ("--profile", "sources"), [RAIN]),
    Filter("route", ("--route", "REASONING"), ALL[:1]),
    Filter("route-second", ("--route", "web"), [RAIN]),
    Filter("by", ("--by", "fallback"), ["zxcv"]),
    Filter("outcome", ("--outcome", "Fl"), ["zxcv"]),
    Filter("outcome-any-how", ("--outcome", "L?"), ["hello\n\x1b[31mworld"]),
    Filter("outcome-one-letter", ("--outcome", "L"), ["hello\n\x1b[31mworld"]),
    Filter("outcome-any-who", ("--outcome", "?t"), ["hello\n\x1b[31mworld"]),
    Filter("text", ("--text", "WORLD"), ["hello\n\x1b[31mworld"]),
    Filter("text-folded", ("--text", "dEFINE wÖRLD"), ["Define Wörld"]),
    Filter("session", ("--session", "s1"), ["Define Wörld"]),
    Filter("since", ("--since", "2026-11-04"), ALL[4:]),
    Filter("since-time", ("--since", "2026-11-04T10:01"), ALL[5:]),
    Filter("until", ("--until", "2026-11-02"), ALL[:1]),
    Filter("between", ("--since", "2026-11-02", "--until", "2026-11-03T11:00"), ["hello", "zxcv"]),
    Filter("ago", ("--since", "10w"), ALL),
    Filter("just-now", ("--until", "10w"), []),
    Filter("tenant", ("--tenant", "acme"), ["mine"]),
    Filter("filtered-then-limited", ("--route", "SIMPLE", "-n", "1"), [""]),
    Filter("nothing", ("--route", "nowhere"), []),
]


@pytest.mark.parametrize("case", FILTERS, ids=lambda case: case.id)
def test_filters(case: Filter, some: Store, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    if any("w" in word and word[:-1].isdigit() for word in case.argv):
        monkeypatch.setattr("turnout.cli.option.datetime", _At("2026-11-05T00:00"))
    assert [row["question"] for row in logged(run, *case.argv)] == case.found


class _At:
    """A clock that stands still."""

    def __init__(self, said: str) -> None:
        self.said = said
        self.fromisoformat = datetime.fromisoformat
        self.fromtimestamp = datetime.fromtimestamp

    def now(self) -> datetime:
        return datetime.fromisoformat(self.said)


def test_the_table(some: Store, run: Run) -> None:
    ran = run("log")
    head, *lines = ran.out.splitlines()
    assert head.split() == ["time", "id", "route", "score", "by", "profile", "question"]
    assert len(lines) == 7
    assert re.fullmatch(
        r"11-01 08:00  \w{8}  S-  REASONING +0\.85 +signals +tiers +Prove the theorem formally", lines[0]
    )
    assert "forecast + web" in lines[3]
    assert "Lt  SIMPLE" in lines[5]
    assert lines[5].endswith("hello↵␛[31mworld")
    assert lines[6].endswith("(blank)")
    column = lines[0].index("Prove")
    assert all(line[column - 2 : column] == "  " and line[column] != " " for line in lines)
    assert "\x1b" not in ran.out


def test_an_id_of_the_table_is_enough_for_show(some: Store, run: Run) -> None:
    for line in run("log").out.splitlines()[1:]:
        short = line.split()[2]
        assert len(short) == SHORT_ID
        assert run("show", short).code == 0


def test_today_has_no_date_and_one_profile_no_column(run: Run) -> None:
    run("route", "hello", "-p", LOCAL)
    head, line = run("log").out.splitlines()
    assert "profile" not in head
    assert re.match(r"\d\d:\d\d:\d\d  \w{8}  S-  SIMPLE  0\.91 +signals  hello$", line)


class KeptCase(NamedTuple):
    level: Any
    shown: str


@pytest.mark.parametrize(
    "case",
    [
        KeptCase("hash", r"\(hash [0-9a-f]{8}…\)"),
        KeptCase("off", r"\(not kept\)"),
        KeptCase("snippet", "mail \\[email\\] now"),
    ],
    ids=lambda case: case.level,
)
def test_text_that_was_not_kept(case: KeptCase, run: Run) -> None:
    with open_store(text=case.level) as store:
        store.record(TIERS.route_sync("mail joe@example.org now"))
    assert re.search(rf"  {case.shown}$", run("log").out.splitlines()[1])


@pytest.mark.parametrize("width", [40, 60, 76, 80, 120])
@pytest.mark.parametrize("glyphs", [Glyphs(), PLAIN], ids=["drawn", "ascii"])
def test_a_line_fits_the_screen(width: int, glyphs: Glyphs, some: Store) -> None:
    from rich.cells import cell_len

    backdate(some, TIERS.route_sync("你好" * 200), ms("2026-11-05T10:00"))
    rows = list(some.records().decisions())
    table = DecisionLines(rows, glyphs, width)
    lines = [table.line(row) for row in rows]
    if width >= 60:
        assert max(cell_len(line.plain) for line in lines) <= width
    assert all(row.id[-SHORT_ID:] in line.plain for row, line in zip(rows, lines, strict=True))
    assert lines[0].plain.endswith(glyphs.dots)


# --- nothing to list


def test_there_is_no_log_yet(run: Run) -> None:
    for command in ("log", "stats"):
        ran = run(command)
        assert (ran.code, ran.err) == (0, "")
        assert "no decision log here yet: turnout route" in ran.out
    assert not Path(os.environ["TURNOUT_DB"]).exists()
    assert logged(run) == []


@pytest.mark.usefixtures("store")
def test_an_empty_log_says_what_to_do(run: Run) -> None:
    for command in ("log", "stats"):
        assert run(command).out == "no decisions yet: turnout route 'a question' logs the first one\n"


def test_other_tenants_are_named(run: Run) -> None:
    for tenant in ("acme", "acme", "beta"):
        run("route", "hello", "--tenant", tenant)
    said = "there are decisions of acme (2), beta (1): name one with --tenant"
    for command in ("log", "stats"):
        assert run(command).out == f"no decisions without a tenant; {said}\n"
        assert f"no decisions of tenant 'Acme'; {said}" in run(command, "--tenant", "Acme").out
    run("route", "hello")
    assert "decisions of (none) (1), acme (2), beta (1): " in run("log", "--tenant", "x").out


def test_a_filter_that_leaves_nothing_says_so(some: Store, run: Run) -> None:
    assert run("log", "--route", "nowhere").out == "none of 7 decisions matches: leave out a filter\n"


class Wrong(NamedTuple):
    id: str
    argv: tuple[str, ...]
    said: str


WRONG = [
    Wrong("outcome", ("--outcome", "ZZ"), "--outcome 'ZZ': two letters, who (D R S K E L A C F N) and how"),
    Wrong("outcome-long", ("--outcome", "S--"), "--outcome 'S--': two letters"),
    Wrong("since", ("--since", "yesterday-ish"), "--since 'yesterday-ish' is not a time: write how long ago"),
    Wrong("until", ("--until", "99999999999d"), "--until '99999999999d' is not a time"),
    Wrong("since-huge", ("--since", "999999w"), "--since '999999w' is not a time"),
    Wrong("order", ("--since", "2026-11-02", "--until", "2026-11-01"), "--since 2026-11-02 is not before --until"),
    Wrong("limit", ("-n", "-3"), "--limit -3: a number from 0 up"),
    Wrong("db", ("--db", "mongodb://x"), "no store speaks 'mongodb'"),
]


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.id)
def test_a_mistake_is_a_sentence(case: Wrong, run: Run) -> None:
    ran = run("log", *case.argv)
    assert (ran.code, ran.out) == (2, "")
    assert case.said in ran.err


# --- following


WANTED = LogFilter()


class Clock:
    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


def test_a_follower_sees_each_decision_once(store: Store) -> None:
    clock = Clock()
    store.record(TIERS.route_sync("before"))
    follower = Follower(store.records(), WANTED, print, clock)
    assert follower.poll() == []
    for number in range(5):
        store.record(TIERS.route_sync(f"question {number}"))
        clock.time += 0.5
        assert [row.question for row in follower.poll()] == [f"question {number}"]
        assert follower.poll() == []


def test_a_follower_sees_what_is_committed_out_of_order(store: Store) -> None:
    clock = Clock()
    follower = Follower(store.records(), WANTED, print, clock)
    early, later, too_late = (TIERS.route_sync(text) for text in ("early", "later", "far too late"))
    assert early.id < later.id
    store.record(later)
    assert [row.question for row in follower.poll()] == ["later"]
    clock.time += OVERLAP_S / 2
    store.record(early)
    assert [row.question for row in follower.poll()] == ["early"]
    store.record(TIERS.route_sync("newest"))
    assert [row.question for row in follower.poll()] == ["newest"]
    # What it remembers does not grow: below the newest of a while ago nothing is looked for any more.
    clock.time += 2 * OVERLAP_S
    follower.poll()
    clock.time += 2 * OVERLAP_S
    assert follower.poll() == []
    assert len(follower.seen) <= 1
    store.record(too_late)
    assert follower.poll() == []


def test_a_follower_tells_the_newest_of_a_burst(store: Store) -> None:
    follower = Follower(store.records(), WANTED, print, Clock(), most=3)
    for number in range(10):
        store.record(TIERS.route_sync(f"question {number}"))
    assert [row.question for row in follower.poll()] == [f"question {number}" for number in (7, 8, 9)]
    assert follower.poll() == [], "the others are not told later"


def test_a_follower_of_few_does_not_read_the_many(store: Store) -> None:
    clock = Clock()
    wanted = WANTED._replace(route="REASONING")
    follower = Follower(store.records(), wanted, print, clock)
    for _ in range(3):
        store.record(TIERS.route_sync("hello"))
        clock.time += OVERLAP_S
        assert follower.poll() == []
    newest = store.records().get("last").id
    clock.time += OVERLAP_S
    follower.poll()
    assert follower.above == newest
    store.record(TIERS.route_sync("Prove the theorem formally"))
    assert [row.route for row in follower.poll()] == ["REASONING"]


def test_a_follower_outlasts_a_log_that_is_away(
    store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turnout.store.sqlite.BUSY_S", 0.05)
    store.record(TIERS.route_sync("hello"))
    follower = Follower(store.records(), WANTED, print)
    file = Path(os.environ["TURNOUT_DB"])
    store.flush()
    store.backend.close()
    away = file.rename(file.with_suffix(".away"))
    assert follower.poll() == follower.poll() == []
    said = capsys.readouterr().out
    assert said.count("still trying") == 1
    away.rename(file)
    store.record(TIERS.route_sync("again"))
    assert [row.question for row in follower.poll()] == ["again"]


def test_follow_as_a_process(process: Any, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-m", "turnout.cli", "log", "--follow", "--json"]
    with running(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as ran:
        assert ran.stdout is not None
        assert ran.stderr is not None
        deadline = time.monotonic() + 30
        while not Path(os.environ["TURNOUT_DB"]).exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        for text in ("one", "two"):
            assert process("route", text).returncode == 0
        assert [json.loads(ran.stdout.readline())["question"] for _ in range(2)] == ["one", "two"]
        ran.send_signal(signal.SIGINT)
        assert ran.wait(timeout=10) == 130
        assert ran.stderr.read() == b""


# --- all tenants


@pytest.fixture
def shared() -> list[str]:
    """Decisions without a tenant, of two tenants and of a key of its own; their ids."""
    router = turnout.load("tiers", config="")
    with open_store() as store:
        decisions = [router.route_sync(Query(f"question of {whose}", tenant=whose)) for whose in ("", "a", "b", "k1")]
        for decision in decisions:
            store.record(decision)
    return [decision.id for decision in decisions]


def test_the_log_of_all_tenants(shared: list[str], run: Run) -> None:
    rows = [json.loads(line) for line in run("log", "--all-tenants", "--json").out.splitlines()]
    assert [row["id"] for row in rows] == shared
    out = run("log", "--all-tenants").out
    assert "tenant  question" in out.splitlines()[0]
    assert re.search(r"\(none\)  question of", out)
    assert re.search(r" b +question of b", out)
    assert "Not included" not in out
    assert "question of a" not in run("log").out


def test_a_decision_of_whoever_it_is(shared: list[str], run: Run) -> None:
    assert run("show", shared[1]).code == 2
    ran = run("show", shared[1], "--all-tenants")
    assert (ran.code, "tenant a" in ran.out) == (0, True)
    assert "tenant k1" in run("show", "--all-tenants").out


def test_the_statistics_of_all_tenants(shared: list[str], run: Run) -> None:
    assert json.loads(run("stats", "--all-tenants", "--json").out)["decisions"] == 4
    assert json.loads(run("stats", "--json").out)["decisions"] == 1


@pytest.mark.parametrize("command", ["log", "stats", "show"])
def test_all_of_them_or_one(command: str, run: Run, shared: list[str]) -> None:
    ran = run(command, "--all-tenants", "--tenant", "a")
    assert (ran.code, ran.out) == (2, "")
    assert "--all-tenants cannot be combined with others: leave out --tenant" in ran.err


def test_nothing_in_a_log_of_all_tenants(run: Run, shared: list[str]) -> None:
    assert run("log", "--all-tenants", "-p", "study").out == "none of 4 decisions matches: leave out a filter\n"


# --- a profile that does not exist


@pytest.mark.parametrize("command", ["log", "stats", "export", "contract report"])
@pytest.mark.parametrize("options", [(), ("--since", "1h")])
def test_a_misspelt_profile_is_an_error(command: str, options: tuple[str, ...], run: Run) -> None:
    run("route", "hello")
    ran = run(*command.split(), "-p", "teirs", *options)
    assert (ran.code, ran.out) == (2, "")
    assert "'teirs': no such profile, did you mean 'tiers'?" in ran.err


def test_a_misspelt_profile_is_an_error_by_key_and_as_json(run: Run) -> None:
    run("route", "hello")
    for argv in (("stats", "--by", "key"), ("stats", "--json"), ("log", "--json"), ("log", "--all-tenants")):
        ran = run(*argv, "-p", "teirs")
        assert (ran.code, ran.out) == (2, "")
        assert "did you mean 'tiers'?" in ran.err


def test_a_profile_without_decisions_is_no_error(run: Run, tmp_path: Path) -> None:
    run("route", "hello")
    (tmp_path / "mine.toml").write_text('name = "mine"\nextends = "tiers-seed"\n')
    for profile in ("study", "tiers-local", str(tmp_path / "mine.toml"), str(tmp_path / "mine")):
        ran = run("log", "-p", profile)
        assert (ran.code, ran.out) == (0, "none of 1 decision matches: leave out a filter\n"), profile
    ran = run("log", "-p", str(tmp_path / "mein.toml"))
    assert ran.code == 2
    assert "no such profile" in ran.err


def test_a_profile_is_known_by_its_decisions(run: Run, tmp_path: Path) -> None:
    """Its file may be elsewhere, or gone; its decisions may be another tenant's."""
    (tmp_path / "mine.toml").write_text('name = "warehouse"\nextends = "tiers-seed"\n')
    run("route", "hello")
    assert run("log", "-p", "warehouse").code == 2
    run("route", "hello", "-p", str(tmp_path / "mine.toml"), "--tenant", "acme")
    assert len(logged(run, "-p", "warehouse", "--tenant", "acme")) == 1
    assert run("log", "-p", "warehouse").code == 0
    assert "did you mean 'warehouse'?" in run("log", "-p", "wearhouse").err
