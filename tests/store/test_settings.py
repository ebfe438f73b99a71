"""Where the store is and how it keeps things: the table `[store]`, the environment, and what is on the disk."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from stored_decisions import ask
from turnout import load_profile
from turnout.config.settings import FromEnv, StoreSettings, data_folder, holds_password, store_settings, store_url
from turnout.core.errors import ConfigError
from turnout.store import open_store
from turnout.store.postgres import Postgres, identity, without_password
from turnout.store.sqlite import Sqlite
from turnout.store.store import connect

Write = Callable[[str], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes `turnout.toml`; its path."""

    def written(text: str) -> str:
        path = tmp_path / "turnout.toml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return written


def problems(act: Callable[[], object]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        act()
    return [str(problem) for problem in caught.value.problems]


class Key(NamedTuple):
    name: str
    default: Any
    told: str
    """As TOML."""
    value: Any
    wrong: str
    message: str


KEYS = [
    Key("url", None, "'x.db'", "x.db", "5", "must be a string or a table, found 5"),
    Key("durability", "batched", "'strict'", "strict", "'strickt'", "'strickt' is not allowed, did you mean 'strict'?"),
    Key("text", None, "'hash'", "hash", "'none'", "'none' is not allowed (one of 'full', 'hash', 'off', 'snippet')"),
    Key("keep_days", 0, "30", 30, "-1", "-1 is below 0, the least it may be"),
    Key("text_days", 0, "7", 7, "1.5", "must be a whole number, found 1.5"),
    Key("spool_bytes", 256 * 1024 * 1024, "65536", 65536, "65535", "65535 is below 65536, the least it may be"),
    Key("log_commands", True, "false", False, "'no'", "must be true or false, found 'no'"),
]


class TestTable:
    def test_every_key_is_here(self) -> None:
        assert [key.name for key in KEYS] == list(StoreSettings.__struct_fields__)

    @pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
    def test_each_key(self, write: Write, key: Key) -> None:
        assert getattr(StoreSettings(), key.name) == key.default
        found = store_settings(write(f"[study]\n[store]\n{key.name} = {key.told}\n"))
        assert getattr(found, key.name) == key.value
        assert found == StoreSettings(**{key.name: key.value})

    @pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
    def test_each_key_wrong(self, write: Write, key: Key) -> None:
        config = write(f"[study]\n\n[store]\n# so\n{key.name} = {key.wrong}\n")
        (problem,) = problems(lambda: store_settings(config))
        assert problem.startswith(f"turnout.toml:5 store.{key.name}: {key.message}")

    def test_a_secret_is_named_not_said(self, write: Write) -> None:
        found = store_settings(write('[store]\nurl = { env = "MY_DB" }\n'))
        assert found.url == FromEnv("MY_DB")

    def test_no_file_and_no_table(self, write: Write) -> None:
        assert store_settings("") == store_settings() == store_settings(write("[study]\n")) == StoreSettings()

    class Wrong(NamedTuple):
        id: str
        source: str
        found: list[str]

    WRONG = (
        Wrong(
            "unknown key", "[store]\n\ntxt = 'off'\n", ["turnout.toml:3 store.txt: unknown key, did you mean 'text'?"]
        ),
        Wrong("unlike any", "[store]\nzebra = 1\n", ["turnout.toml:2 store.zebra: unknown key (known: durability, "]),
        Wrong(
            "all at once",
            "[store]\nzebra = 1\ntext = 5\nkeep_days = 'x'\n",
            ["turnout.toml:2 store.zebra: ", "turnout.toml:3 store.text: ", "turnout.toml:4 store.keep_days: "],
        ),
        Wrong("no table", "store = 5\n", ["turnout.toml:1 store: must be a table, found 5"]),
        Wrong("a list of tables", "[[store]]\n", ["turnout.toml:1 store: must be a table"]),
        Wrong("env misspelt", "[store]\nurl = { enw = 'X' }\n", ["turnout.toml:2 store.url"]),
        Wrong(
            "a password",
            "[store]\nurl = 'postgresql://me:hush@db/x'\n",
            ['turnout.toml:2 store.url: a password does not belong in a file: url = { env = "DATABASE_URL" }'],
        ),
        Wrong(
            "a password among the options",
            "[store]\nurl = 'postgresql://db/x?a=b&password=hush'\n",
            ["turnout.toml:2 store.url: a password does not belong"],
        ),
        Wrong("not TOML", "[store\n", ["turnout.toml:1: not valid TOML"]),
        Wrong(
            "nearly the name",
            "[study]\n[stroe]\ndurability = 'strict'\n",
            ["turnout.toml:2 stroe: no such table, did you mean 'store'?"],
        ),
        Wrong(
            "nearly, and twice",
            "[stores]\nurl = 'x'\n[store]\ntxt = 'off'\n",
            ["turnout.toml:1 stores: no such table", "turnout.toml:4 store.txt: unknown key"],
        ),
    )

    @pytest.mark.parametrize("case", WRONG, ids=lambda case: case.id)
    def test_mistakes(self, write: Write, case: Wrong) -> None:
        config = write(case.source)
        found = problems(lambda: store_settings(config))
        assert len(found) == len(case.found), found
        for problem, expected in zip(found, case.found, strict=True):
            assert problem.startswith(expected)
        assert not any("hush" in problem for problem in found)
        assert problems(lambda: open_store(config=config)) == found

    def test_a_table_that_is_a_profiles_is_left_to_it(self, write: Write) -> None:
        """`storm` may be a profile of the user's own: only what speaks of the store's things is taken for a slip."""
        assert store_settings(write("[storm]\nthunder_ms = 7\n")) == StoreSettings()

    @pytest.mark.parametrize("table", ["[store]\ntext = 'off'\n", "[stroe]\ntext = 'off'\n", "[store]\nzebra = 1\n"])
    def test_a_profile_does_not_take_it_for_its_own(self, write: Write, table: str) -> None:
        """`store` is not far from `sources`: a user with a store must be able to load a profile."""
        assert load_profile("study", config=write(table)).hash == load_profile("study", config="").hash

    def test_a_profile_called_store(self, write: Write, tmp_path: Path) -> None:
        profile = tmp_path / "store.toml"
        profile.write_text("extends = 'study'\nname = 'store'\n")
        assert load_profile(profile, config=write("[store]\ntext = 'off'\n")).name == "store"

    def test_what_is_set_is_done(self, write: Write, tmp_path: Path) -> None:
        url = f"{tmp_path}/mine.db"
        config = write(f"[store]\nurl = '{url}'\ndurability = 'strict'\ntext = 'hash'\nspool_bytes = 70000\n")
        with open_store(config=config) as store:
            assert repr(store) == f"Store({url!r}, strict, text=hash)"
            assert store.journal.spool.limit_bytes == 70_000
        with open_store(config=config, durability="batched", text="off") as store:
            assert repr(store) == f"Store({url!r}, batched, text=off)"


class TestWhere:
    class Case(NamedTuple):
        id: str
        url: str | None
        turnout_db: str | None
        settings: Any
        expected: str

    CASES = (
        Case("the caller first", "a.db", "b.db", "c.db", "a.db"),
        Case("then TURNOUT_DB", None, "b.db", "c.db", "b.db"),
        Case("an empty caller says nothing", "", "b.db", "c.db", "b.db"),
        Case("then the settings", None, None, "c.db", "c.db"),
        Case("an empty TURNOUT_DB says nothing", None, "", "c.db", "c.db"),
        Case("the settings' variable", None, None, FromEnv("MINE"), "postgresql://me:pw@h/d"),
        Case("a variable that is empty", None, None, FromEnv("EMPTY"), ""),
        Case("a variable that is not there", None, None, FromEnv("NOWHERE"), ""),
        Case("TURNOUT_DB before the settings' variable", None, "b.db", FromEnv("EMPTY"), "b.db"),
    )

    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
    def test_precedence(self, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MINE", "postgresql://me:pw@h/d")
        monkeypatch.setenv("EMPTY", "")
        if case.turnout_db is not None:
            monkeypatch.setenv("TURNOUT_DB", case.turnout_db)
        assert store_url(case.url, StoreSettings(url=case.settings)) == case.expected

    def test_the_users_own_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sys.platform", "linux")
        assert store_url() == str(tmp_path / "data" / "turnout" / "turnout.db")
        monkeypatch.setenv("XDG_DATA_HOME", "")
        monkeypatch.setenv("HOME", "/home/ann")
        assert data_folder() == Path("/home/ann/.local/share/turnout")
        monkeypatch.setattr("sys.platform", "darwin")
        assert data_folder() == Path("/home/ann/Library/Application Support/turnout")

    def test_a_variable_that_is_empty_is_said(self, write: Write) -> None:
        config = write('[store]\nurl = { env = "NOWHERE" }\n')
        (problem,) = problems(lambda: open_store(config=config))
        assert problem == "store.url: the environment variable it names is empty: set it, or name a path"

    def test_by_default_a_store_is_made(self, tmp_path: Path) -> None:
        with open_store() as store:
            store.record(ask())
        assert (data_folder() / "turnout.db").is_file()


class TestUrls:
    class Case(NamedTuple):
        url: str
        path: str

    CASES = (
        Case("rel.db", "{cwd}/rel.db"),
        Case("/abs/x.db", "/abs/x.db"),
        Case("~/x.db", "{home}/x.db"),
        Case("sqlite:///rel.db", "{cwd}/rel.db"),
        Case("sqlite:///rel/x.db", "{cwd}/rel/x.db"),
        Case("sqlite:////abs/x.db", "/abs/x.db"),
        Case("sqlite:///~/x.db", "{home}/x.db"),
        Case("sqlite:////with%20space/%25.db", "/with space/%.db"),
        Case("with space/?.db", "{cwd}/with space/?.db"),
    )

    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.url)
    def test_paths(self, case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("HOME", "/home/ann")
        backend, spool = connect(case.url)
        assert isinstance(backend, Sqlite)
        expected = case.path.format(cwd=tmp_path, home="/home/ann")
        assert str(backend.path.absolute()) == expected
        assert str(spool) == f"{expected}-spool"
        assert list(tmp_path.iterdir()) == [], "nothing is touched yet"

    @pytest.mark.parametrize("name", ["x.db", "a b.db", "q?m.db", "ha#sh.db", "100%.db", "é.db", "-x.db"])
    def test_any_name_will_do(self, tmp_path: Path, name: str) -> None:
        with open_store(f"{tmp_path}/{name}") as store:
            store.record(ask())
            store.flush()
            assert store.records().get("last")
        assert (tmp_path / name).stat().st_size > 0

    class Wrong(NamedTuple):
        url: str
        message: str

    WRONG = (
        Wrong("mysql://h/d", "no store speaks 'mysql': use a path, sqlite:///PATH or postgresql://HOST/DATABASE"),
        Wrong("postgresq://u:hush@h/d", "no store speaks 'postgresq'"),
        Wrong("://x", "no store speaks ''"),
        Wrong(
            "sqlite://", "'sqlite://' names no file: sqlite:///PATH has three slashes, four if the path begins with one"
        ),
        Wrong("sqlite:///", "'sqlite:///' names no file"),
        Wrong("sqlite://rel.db", "'sqlite://rel.db' names no file"),
        Wrong(
            "postgresql://u:hush@[::1/d",
            "this is not the address of a database (Invalid IPv6 URL): postgresql://USER@HOST",
        ),
    )

    @pytest.mark.parametrize("case", WRONG, ids=lambda case: case.url)
    def test_what_names_no_store(self, case: Wrong) -> None:
        (problem,) = problems(lambda: open_store(case.url))
        assert problem.startswith(f"store.url: {case.message}")
        assert "hush" not in problem

    @pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
    def test_postgresql(self, scheme: str, tmp_path: Path) -> None:
        backend, spool = connect(f"{scheme}://me:hush@db.example:5433/log?sslmode=require")
        assert isinstance(backend, Postgres)
        assert backend.where == f"{scheme}://me@db.example:5433/log?sslmode=require"
        assert spool.is_relative_to(tmp_path / "data" / "turnout" / "spool")
        assert "hush" not in repr(backend.where) + str(spool)


class TestPasswords:
    @pytest.mark.parametrize(
        ("url", "shown"),
        [
            ("postgresql://me:hush@h/d", "postgresql://me@h/d"),
            ("postgresql://me:h%40ush@h:1/d", "postgresql://me@h:1/d"),
            ("postgresql://me:h@ush@h/d", "postgresql://me@h/d"),
            ("postgresql://me:h/ush@h/d", "postgresql://me@h/d"),
            ("postgresql://me:h#ush@h/d", "postgresql://me@h/d"),
            ("postgresql://me:h:ush@h/d", "postgresql://me@h/d"),
            ("postgresql://me:h?ush@h/d", "postgresql://…"),
            ("postgresql://:hush@h/d", "postgresql://@h/d"),
            ("postgresql://me@/d?host=/run/pg&password=hush&port=5", "postgresql://me@/d?host=/run/pg&port=5"),
            ("postgresql://me@h/d?sslpassword=hush", "postgresql://me@h/d"),
            ("postgresql://h1:1,h2:2/d?target_session_attrs=any", "postgresql://h1:1,h2:2/d?target_session_attrs=any"),
            ("postgresql://me:hush@h1:1,h2:2/d", "postgresql://me@h1:1,h2:2/d"),
        ],
    )
    def test_are_not_shown(self, url: str, shown: str) -> None:
        assert without_password(url) == shown
        assert holds_password(url) == ("ush" in url)

    def test_one_database_one_spool(self) -> None:
        """However it is connected to; and never the spool of another: its rows would be replayed into the wrong one."""
        same = ("//me:a@h/d", "//me:b@h/d", "//me@h/d?sslmode=require", "//me@h/d?application_name=x&password=y")
        others = (
            "//you@h/d",
            "//me@i/d",
            "//me@h:1/d",
            "//me@h/e",
            "//me@/d?host=/a",
            "//me@/d?host=/b",
            "//me@h/d?port=1",
        )
        found = [identity(f"postgresql:{one}") for one in (*same, *others)]
        assert len(set(found[: len(same)])) == 1
        assert len(set(found)) == 1 + len(others)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_nobody_else_may_read_it() -> None:
    with open_store() as store:
        store.record(ask())
        store.flush()
        folder = data_folder()
        found = {path.relative_to(folder).suffix or "/": mode(path) for path in folder.rglob("*") if path.is_file()}
        assert {*found} == {".db", ".db-wal", ".db-shm", ".spool"}
        assert {*found.values()} == {0o600}
        assert mode(folder) == mode(store.journal.spool.folder) == 0o700


def test_a_folder_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    open_store(str(folder / "x.db")).close()
    assert (mode(folder), mode(folder / "x.db")) == (0o755, 0o600)
