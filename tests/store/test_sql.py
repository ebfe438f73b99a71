"""SQL is constant: nothing but other constants of its file is put into a statement, and every read of a tenant's says
whose it is.

Each rule is a function from a file to what is wrong with it; the planted sources at the end show that each can fail.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import turnout
from stored_decisions import Statement, statements
from turnout.search import sql as search_sql
from turnout.store import sql
from turnout.store.postgres import spelled

SOURCE = Path(turnout.__file__).parent
ROOMS = ("store", "search")
SQL_FILES = (
    "store/sql.py",
    "store/sql_search.py",
    "store/sql_cards.py",
    "store/sql_list.py",
    "store/sql_study.py",
    "store/sql_traffic.py",
)
# Cards are for all who may ask here.
WITHOUT_TENANTS = ("store/sql_cards.py",)
RUN = ("execute", "executemany", "executescript")
# What a database runs, and what is only ever a piece of it: neither is glued to anything.
STATEMENT = re.compile(
    r"\s*(?:select\s[\s\S]*\sfrom\b|insert\s+(?:or\s+\w+\s+)?into\b|update\s+\w+\s+set\b|delete\s+from\b|pragma\s+\w"
    r"|with\s+\w+\s+as\s*\(|copy\s+\w+\s+(?:from|to)\b|lock\s+table\b"
    r"|(?:create|alter|drop)\s+(?:or\s+replace\s+|unique\s+|virtual\s+|temp\s+)*(?:table|index|view|trigger|database)\b)",
    re.IGNORECASE,
)
PIECE = re.compile(
    r"\bwhere\s+[\w.]+\s*(?:=|<|>|in\b|like\b|is\b)|\border\s+by\s+\w|\bgroup\s+by\s+\w|\blimit\s+[:?%\d]|\bunion\s+all\b"
    r"|\b(?:and|or)\s+[\w.]+\s*=\s*[:?%']|\bvalues\s*\(",
    re.IGNORECASE,
)


class File(NamedTuple):
    path: str
    """Relative to the package: `store/records.py`."""
    source: str

    @property
    def room(self) -> str:
        return self.path.split("/")[0]


Rule = Callable[[File], Iterator[str]]


def sql_source() -> str:
    return (SOURCE / SQL_FILES[0]).read_text(encoding="utf-8")


def files() -> list[File]:
    found = sorted(path for path in SOURCE.rglob("*.py") if "__pycache__" not in path.parts)
    return [File(path.relative_to(SOURCE).as_posix(), path.read_text(encoding="utf-8")) for path in found]


@cache
def rooms() -> tuple[File, ...]:
    return tuple(file for file in files() if file.room in ROOMS)


# --- no statement is put together from pieces


def flat(node: ast.AST) -> str:
    """The text an expression makes, with `x` for what is not known before it runs."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Constant(value=bytes(data)):
            return data.decode("latin-1")
        case ast.JoinedStr(values=values) | ast.Tuple(elts=values) | ast.List(elts=values):
            return "".join(map(flat, values))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return flat(left) + flat(right)
        case ast.BinOp(left=left, op=ast.Mod()):
            return flat(left)
        case ast.AugAssign(value=value):
            return flat(value)
        case ast.Call(func=ast.Attribute(value=text, attr="join"), args=[parts]):
            return flat(parts) + flat(text)
        case ast.Call(func=ast.Attribute(value=text, attr=name)) if name in CHANGED:
            return flat(text)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[text, *_]) if name in TEMPLATES:
            return flat(text)
        case _:
            return "x"


CHANGED = ("format", "format_map", "replace", "substitute")
TEMPLATES = ("Template", "SQL")


def is_glued(node: ast.AST) -> bool:
    """Whether an expression makes one text of several."""
    match node:
        case ast.JoinedStr(values=values):
            return any(isinstance(value, ast.FormattedValue) for value in values)
        case ast.BinOp(op=ast.Add() | ast.Mod()) | ast.AugAssign(op=ast.Add()):
            return True
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in (*CHANGED, *TEMPLATES, "join")
        case ast.Call(func=ast.Name(id=name)):
            return name in TEMPLATES
        case _:
            return False


def builds_no_statement(file: File) -> Iterator[str]:
    known = FileFacts(file)

    def look(node: ast.AST) -> Iterator[str]:
        if is_glued(node) and not known.is_constant(node):
            text = flat(node)
            if STATEMENT.match(text) or (file.room in ROOMS and PIECE.search(text)):
                yield f"{file.path}:{node.lineno} SQL put together: {ast.unparse(node)[:60]}"
                return
        for child in ast.iter_child_nodes(node):
            yield from look(child)

    yield from look(ast.parse(file.source))


# --- what is run is a constant of sql.py, or was handed in as one


class FileFacts:
    """What is known of one file: where its statements come from."""

    def __init__(self, file: File) -> None:
        self.path = file.path
        self.tree = ast.parse(file.source)
        self.constants = {
            target.id: node.value
            for node in self.tree.body
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        }
        self.imported = {
            each.asname or each.name
            for node in self.tree.body
            if isinstance(node, ast.ImportFrom)
            for each in node.names
        }
        self.classes = {node.name: node for node in self.tree.body if isinstance(node, ast.ClassDef)}

    def is_constant(self, node: ast.AST) -> bool:
        """A text, a constant of this file, or a text with such constants in it."""
        match node:
            case ast.Constant(value=str() | bytes()):
                return True
            case ast.Name(id=name) if name in self.constants:
                return name.isupper() and self.is_constant(self.constants[name])
            case ast.Name(id=name):
                return name.isupper() and name in self.imported
            case ast.JoinedStr(values=values):
                return all(map(self.is_constant, values))
            case ast.FormattedValue(value=value, format_spec=None):
                return self.is_constant(value)
            case _:
                return False

    def is_sound(self, node: ast.expr, inside: ast.AST) -> bool:
        """Whether an expression can only be a constant."""
        if self.is_constant(node):
            return True
        match node:
            case ast.Attribute(value=ast.Name(id="sql"), attr=name):
                return isinstance(getattr(search_sql if self.path.startswith("search/") else sql, name, None), str)
            case ast.Subscript(value=ast.Attribute(value=ast.Name(id="sql"), attr="ALL_TENANTS")):
                return True
            case ast.IfExp(body=body, orelse=orelse):
                return self.is_sound(body, inside) and self.is_sound(orelse, inside)
            case ast.Call(func=ast.Name(id="spelled") | ast.Attribute(attr="spelled"), args=[inner]):
                return self.is_sound(inner, inside)
            case ast.Call(func=ast.Attribute(value=inner, attr="encode"), args=[]):
                return self.is_sound(inner, inside)
            case ast.Name(id="statement"):
                return self._is_bound_soundly(inside)
            case ast.Attribute(attr=field):
                return self._is_sound_field(field)
            case _:
                return False

    def _is_bound_soundly(self, inside: ast.AST) -> bool:
        """`statement` is a parameter, whose arguments are checked where it is called, or takes sound values only."""
        found = [self._is_sound_binding(node, inside) for node in ast.walk(inside)]
        return True in found and False not in found

    def _is_sound_binding(self, node: ast.AST, inside: ast.AST) -> bool | None:
        match node:
            case ast.arg(arg="statement"):
                return True
            case ast.Assign(targets=[ast.Name(id="statement")], value=value):
                return self.is_sound(value, inside)
            case (
                ast.For(target=ast.Name(id="statement"), iter=values)
                | ast.comprehension(target=ast.Name(id="statement"), iter=values)
            ):
                return self._are_sound(values, None, inside)
            case ast.For(target=ast.Tuple(elts=names), iter=values):
                places = [at for at, name in enumerate(names) if isinstance(name, ast.Name) and name.id == "statement"]
                return self._are_sound(values, places[0], inside) if places else None
            case ast.NamedExpr(target=ast.Name(id="statement")) | ast.AugAssign(target=ast.Name(id="statement")):
                return False
            case _:
                return None

    def _are_sound(self, values: ast.expr, place: int | None, inside: ast.AST) -> bool:
        """Whether all of several values are, or what stands at one place in each of them."""
        if isinstance(values, ast.Name) and values.id in self.constants:
            values = self.constants[values.id]
        match values:
            # The steps of the schema are files of ours.
            case ast.Attribute(attr="statements"):
                return True
            case ast.Tuple(elts=elements) | ast.List(elts=elements) if place is None:
                return all(self.is_sound(element, inside) for element in elements)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                return all(
                    isinstance(element, ast.Tuple) and self.is_sound(element.elts[place or 0], inside)
                    for element in elements
                )
            case _:
                return False

    def _is_sound_field(self, field: str) -> bool:
        """A field of a record of this file, which is made with constants wherever it is made."""
        made: list[bool] = []
        for name, node in self.classes.items():
            fields = [
                one.target.id
                for one in node.body
                if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
            ]
            if field not in fields:
                continue
            for call in ast.walk(self.tree):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == name:
                    given = {
                        **dict(zip(fields, call.args, strict=False)),
                        **{one.arg: one.value for one in call.keywords},
                    }
                    made.append(field in given and self.is_sound(given[field], self.tree))
        return bool(made) and all(made)


@cache
def takers(sources: tuple[File, ...]) -> dict[str, int]:
    """Functions that are handed a statement, and at which place."""
    found = dict.fromkeys(RUN, 0)
    for file in sources:
        for node in ast.walk(ast.parse(file.source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                names = [argument.arg for argument in node.args.args if argument.arg != "self"]
                if "statement" in names:
                    found[node.name] = names.index("statement")
    return found


def runs_constants_only(file: File) -> Iterator[str]:
    if file.room not in ROOMS:
        return
    known = FileFacts(file)
    places = takers(rooms()) | takers((file,))
    functions = [node for node in ast.walk(known.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    for inside in (*functions, known.tree):
        for node in own(inside):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            at = places.get(name)
            # `file.read()` has no statement; `file.read(9)` is none of ours.
            if at is None or len(node.args) <= at or isinstance(getattr(node.args[at], "value", ""), int):
                continue
            if not known.is_sound(node.args[at], inside):
                yield f"{file.path}:{node.lineno} {name}({ast.unparse(node.args[at])[:60]}) is no constant of sql.py"


def own(inside: ast.AST) -> Iterator[ast.AST]:
    """What stands in a function itself, not in one within it."""
    for child in ast.iter_child_nodes(inside):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from own(child)


def reaches_for_statements_only_in_the_store(file: File) -> Iterator[str]:
    if file.room in ROOMS:
        return
    for node in ast.walk(ast.parse(file.source)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module or ''}.{name}" for name in names]
        if any(re.search(r"\bstore\.sql(\.|\Z)", name) for name in names):
            yield f"{file.path}:{node.lineno} statements are run by the store, for one tenant"


# --- what sql.py says

TENANT_TABLES = r"(?:decisions|outcomes|feedback|breaches|replies|turns)"


def is_a_list_of_constants(file: File) -> Iterator[str]:
    if file.path not in SQL_FILES:
        return
    constants = Counter(one.name for one in statements(file.source))
    for node in ast.parse(file.source).body:
        fine = isinstance(node, ast.ImportFrom) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in constants:
            fine = True
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "ALL_TENANTS":
            fine = drops_the_tenant_alone(node.value)
        if not fine:
            yield f"{file.path}:{node.lineno} is no constant: {ast.unparse(node)[:60]}"
    for name, count in constants.items():
        if count > 1:
            yield f"{file.path} {name} is written {count} times: the last one wins"


def drops_the_tenant_alone(made: ast.expr) -> bool:
    """Whether this is a dictionary from constants of the file to the same without what ties them to one tenant."""
    match made:
        case ast.DictComp(
            key=ast.Name(id="statement"),
            value=value,
            generators=[ast.comprehension(target=ast.Name(id="statement"), iter=ast.Tuple(elts=names), ifs=[])],
        ):
            changed = "statement.replace('tenant = :tenant', 'tenant is not null')"
            return ast.unparse(value) == changed and all(isinstance(name, ast.Name) for name in names)
        case _:
            return False


def names_the_tenant(file: File) -> Iterator[str]:
    """Each table that is read is tied to the tenant, or to one that is."""
    if file.path not in SQL_FILES:
        return
    found = [one for one in statements(file.source) if one.section == "what a tenant may read"]
    for one in found:
        read = len(re.findall(rf"\b(?:from|join)\s+{TENANT_TABLES}\b", one.text))
        tied = len(re.findall(r"\btenant = (?::tenant|\w+\.tenant)", one.text))
        if "tenant = :tenant" not in one.text or tied < read:
            yield f"{file.path} {one.name}: {read} tables of a tenant's, {tied} of them with `tenant =`"
    if not found and file.path not in WITHOUT_TENANTS:
        yield f"{file.path} has no section `what a tenant may read`"


def reads_with_tenant_statements(file: File) -> Iterator[str]:
    """What a tenant reads with is in the tenants' section; a human's word finds its decision by tenant, too."""
    if file.path not in ("store/records.py", "store/stats.py"):
        return
    sources = [(SOURCE / path).read_text(encoding="utf-8") for path in SQL_FILES]
    found = [one for source in sources for one in statements(source)]
    allowed = {one.name for one in found if one.section == "what a tenant may read"} | {
        "ADD_FEEDBACK",
        "ALL_TENANTS",
    }
    for node in ast.walk(ast.parse(file.source)):
        match node:
            case ast.Attribute(value=ast.Name(id="sql"), attr=name) if name not in allowed:
                yield f"{file.path}:{node.lineno} sql.{name} is not a tenant's"


def asks_for_all_tenants_as_the_operator_alone(file: File) -> Iterator[str]:
    """Reading across tenants is for the command line: nothing that serves a caller's request may come near it."""
    if file.room == "cli":
        return
    tree = ast.parse(file.source)
    allowed: set[int] = set()
    if file.path == "store/records.py":
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "AllRecords"]
        allowed = {id(node) for one in classes for node in ast.walk(one)}
    if file.path == "store/hours.py":  # what counts an hour answers no caller; what reads it names the tenant
        counts = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "_count"]
        allowed = {id(node) for one in counts for node in ast.walk(one)}
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="sql"), attr="ALL_TENANTS") if id(node) not in allowed:
                yield f"{file.path}:{node.lineno} reads the rows of all tenants"
            case ast.Attribute(attr="all_records") | ast.Name(id="AllRecords") if file.room != "store":
                yield f"{file.path}:{node.lineno} reads the rows of all tenants"


RULES: list[Rule] = [
    builds_no_statement,
    runs_constants_only,
    reaches_for_statements_only_in_the_store,
    is_a_list_of_constants,
    names_the_tenant,
    reads_with_tenant_statements,
    asks_for_all_tenants_as_the_operator_alone,
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_source(rule: Rule) -> None:
    assert [problem for file in files() for problem in rule(file)] == []


def test_the_rules_see_something() -> None:
    """Were the files moved or the section renamed, the rules would hold for nothing."""
    source = sql_source()
    tenants = [one for one in statements(source) if one.section == "what a tenant may read"]
    assert len(tenants) >= 20
    places = takers(rooms())
    assert {"execute", "executemany", "read", "change", "many", "_read", "spelled"} <= set(places)


@pytest.mark.parametrize(
    "one",
    [one for path in SQL_FILES for one in statements((SOURCE / path).read_text(encoding="utf-8"))],
    ids=lambda one: one.name,
)
def test_every_statement_can_be_spelled_for_both_databases(one: Statement) -> None:
    """Placeholders are `:name` or `?`, never both; psycopg would take a percent sign for one of its own."""
    text = re.sub(r"'[^']*'", "''", one.text)
    assert "%" not in one.text
    assert ":" not in "".join(re.findall(r"'[^']*'", one.text))
    assert "::" not in text
    named, plain = set(re.findall(r":([a-z_]+)", text)), text.count("?")
    assert not (named and plain)
    said = spelled(one.text).decode()
    assert set(re.findall(r"%\((\w+)\)s", said)) == named
    assert said.count("%s") == plain
    assert ":" not in re.sub(r"'[^']*'", "", said)


class PlantedCase(NamedTuple):
    id: str
    rule: Rule
    path: str
    source: str
    found: int


BUILD, CONSTANT, REACH, LIST, TENANT, SECTION, OPERATOR = RULES
PLANTED = [
    PlantedCase("f-string", BUILD, "store/x.py", "q = f'select * from {table}'", 1),
    PlantedCase("f-string, elsewhere", BUILD, "cli/x.py", "q = f'delete from {table} where 1'", 1),
    PlantedCase("f-string, on an error path", BUILD, "net/x.py", "log(f\"insert into errors values ('{error}')\")", 1),
    PlantedCase("f-string without a value", BUILD, "store/x.py", "q = f'select * from decisions'", 0),
    PlantedCase("plus", BUILD, "store/x.py", "q = 'select * from decisions where id = ' + ident", 1),
    PlantedCase("plus, a piece", BUILD, "store/x.py", "q = start + ' order by id'", 1),
    PlantedCase("plus, a condition", BUILD, "store/x.py", 'q = start + " and tenant = \'" + tenant + "\'"', 1),
    PlantedCase("plus and assign", BUILD, "store/x.py", "q += ' where id = 7'", 1),
    PlantedCase("percent", BUILD, "store/x.py", "q = 'select * from decisions where id = %s' % ident", 1),
    PlantedCase("percent, bytes", BUILD, "store/x.py", "q = b'select * from x where id = %b' % ident", 1),
    PlantedCase(
        "format", BUILD, "apps/x.py", "q = 'update {} set x = 1'.format(table); r = 'update t set x = {}'.format(1)", 1
    ),
    PlantedCase("join", BUILD, "store/x.py", "q = ' and '.join(['select * from x where a = 1', more])", 1),
    PlantedCase("join of columns", BUILD, "store/x.py", "q = 'select ' + ', '.join(columns) + ' from decisions'", 1),
    PlantedCase(
        "join of columns, in an f-string", BUILD, "store/x.py", "q = f'select {\", \".join(c)} from decisions'", 1
    ),
    PlantedCase("replace", BUILD, "store/x.py", "q = 'select * from TABLE'.replace('TABLE', table)", 1),
    PlantedCase("a template", BUILD, "store/x.py", "q = SQL('select * from x where {}')", 1),
    PlantedCase("pragma", BUILD, "store/x.py", "q = f'pragma user_version = {n}'", 1),
    PlantedCase(
        "prose",
        BUILD,
        "store/x.py",
        "t = f'rows come from {where}'; u = f'update {name}: set it'; v = f'select {x}'",
        0,
    ),
    PlantedCase("prose, elsewhere", BUILD, "cli/x.py", "t = f'{a} where b = {c} order by d'", 0),
    PlantedCase("a constant", BUILD, "store/x.py", "q = 'select * from x ' 'where id = :id'", 0),
    PlantedCase("sql.py's", CONSTANT, "store/x.py", "def f(c): c.execute(sql.DECISION, {})", 0),
    PlantedCase("a literal", CONSTANT, "store/x.py", "def f(c): c.execute('begin')", 0),
    PlantedCase("spelled", CONSTANT, "store/x.py", "def f(c): c.execute(spelled(sql.DECISION))", 0),
    PlantedCase("handed in", CONSTANT, "store/x.py", "def f(c, statement): c.execute(statement)", 0),
    PlantedCase(
        "handed on as something else", CONSTANT, "store/x.py", "def f(c, statement): c.execute(statement + x)", 1
    ),
    PlantedCase("under another name", CONSTANT, "store/x.py", "def f(c, query): c.execute(query)", 1),
    PlantedCase("handed in from outside", CONSTANT, "store/x.py", "def f(statement): ...\ndef g(q): f(q)", 1),
    PlantedCase("handed in, a constant", CONSTANT, "store/x.py", "def f(statement): ...\ndef g(): f(sql.DECISION)", 0),
    PlantedCase("no such constant", CONSTANT, "store/x.py", "def f(c): c.execute(sql.DECISSION)", 1),
    PlantedCase("an f-string", CONSTANT, "store/x.py", "def f(c): c.executemany(f'select {x}', ())", 1),
    PlantedCase("a script", CONSTANT, "store/x.py", "def f(c): c.executescript(path.read_text())", 1),
    PlantedCase("one of two", CONSTANT, "store/x.py", "def f(c): c.execute(sql.PARTS if c else sql.DECISION)", 0),
    PlantedCase("one of two is not", CONSTANT, "store/x.py", "def f(c, x): c.execute(sql.PARTS if c else x)", 1),
    PlantedCase(
        "assigned", CONSTANT, "store/x.py", "def f(c):\n    statement = sql.PARTS\n    c.execute(statement)", 0
    ),
    PlantedCase("assigned, not", CONSTANT, "store/x.py", "def f(c):\n    statement = g()\n    c.execute(statement)", 1),
    PlantedCase(
        "changed", CONSTANT, "store/x.py", "def f(c, statement):\n    statement += x\n    c.execute(statement)", 1
    ),
    PlantedCase("from nowhere", CONSTANT, "store/x.py", "def f(c): c.execute(statement)", 1),
    PlantedCase(
        "in turn", CONSTANT, "store/x.py", "def f(c):\n    for statement in (sql.PARTS, 'x'): c.execute(statement)", 0
    ),
    PlantedCase(
        "in turn, from a file", CONSTANT, "store/x.py", "def f(c):\n    for statement in file: c.execute(statement)", 1
    ),
    PlantedCase(
        "pairs",
        CONSTANT,
        "store/x.py",
        "A = ((1, sql.PARTS),)\ndef f(c):\n    for n, statement in A: c.execute(statement)",
        0,
    ),
    PlantedCase(
        "pairs, not",
        CONSTANT,
        "store/x.py",
        "A = ((1, g()),)\ndef f(c):\n    for n, statement in A: c.execute(statement)",
        1,
    ),
    PlantedCase(
        "a step's",
        CONSTANT,
        "store/x.py",
        "def f(c):\n    for statement in step.statements: c.execute(statement.encode())",
        0,
    ),
    PlantedCase(
        "a record's", CONSTANT, "store/x.py", "class T:\n    add: str\nA = T(sql.PARTS)\ndef f(c): c.execute(A.add)", 0
    ),
    PlantedCase(
        "a record's, not", CONSTANT, "store/x.py", "class T:\n    add: str\nA = T(g())\ndef f(c): c.execute(A.add)", 1
    ),
    PlantedCase("a stranger's", CONSTANT, "store/x.py", "def f(c, table): c.execute(table.add)", 1),
    PlantedCase("through the backend", CONSTANT, "store/x.py", "def f(backend): backend.read(f'select {x}', {})", 1),
    PlantedCase("a file", CONSTANT, "store/x.py", "def f(file): file.read(); file.read(9)", 0),
    PlantedCase("elsewhere it is not ours", CONSTANT, "cli/x.py", "def f(c, x): c.execute(x)", 0),
    PlantedCase("imported", REACH, "cli/x.py", "from turnout.store import sql", 1),
    PlantedCase("imported whole", REACH, "apps/x.py", "import turnout.store.sql", 1),
    PlantedCase("one imported", REACH, "apps/x.py", "from turnout.store.sql import DECISION", 1),
    PlantedCase("its neighbour", REACH, "cli/x.py", "from turnout.store.sqlite import Sqlite", 0),
    PlantedCase("twice", LIST, "store/sql.py", "A = 'x'\nB = 'y'\nA = 'z'", 1),
    PlantedCase("made", LIST, "store/sql.py", "A = 'x' + 'y'", 1),
    PlantedCase("a piece of the file's", LIST, "store/sql.py", "_A = 'x'\nB = f'{_A} y'", 0),
    PlantedCase("a piece from elsewhere", LIST, "store/sql.py", "from .x import A\nB = f'{A} y'", 1),
    PlantedCase("a piece that is made", LIST, "store/sql.py", "B = f'{f()} y'", 1),
    PlantedCase("a piece within a piece", LIST, "store/sql.py", "A = f()\nB = f'{A}'\nC = f'{B}'", 3),
    PlantedCase("a function", LIST, "store/sql.py", "def f(): ...", 1),
    PlantedCase(
        "constants", LIST, "store/sql.py", "'''All.'''\nfrom __future__ import annotations\nA = 'x'\nB = 'y'", 0
    ),
    PlantedCase(
        "no tenant",
        TENANT,
        "store/sql.py",
        "# --- what a tenant may read\nA = 'select 1 from decisions where id = :id'",
        1,
    ),
    PlantedCase(
        "tenant",
        TENANT,
        "store/sql.py",
        "# --- what a tenant may read\nA = 'select 1 from decisions where tenant = :tenant'",
        0,
    ),
    PlantedCase(
        "joined without",
        TENANT,
        "store/sql.py",
        "# --- what a tenant may read\n"
        "A = 'select 1 from decisions d join outcomes o on o.decision_id = d.id where d.tenant = :tenant'",
        1,
    ),
    PlantedCase(
        "joined with",
        TENANT,
        "store/sql.py",
        "# --- what a tenant may read\n"
        "A = 'select 1 from decisions d join outcomes o on o.tenant = d.tenant where d.tenant = :tenant'",
        0,
    ),
    PlantedCase(
        "an operator's",
        TENANT,
        "store/sql.py",
        "# --- what a tenant may read\nA = 'tenant = :tenant'\n# --- the rest\nB = 'from decisions'",
        0,
    ),
    PlantedCase(
        "no tenant in its pieces",
        TENANT,
        "store/sql.py",
        "_A = 'from decisions where'\n# --- what a tenant may read\nB = f'select 1 {_A} id = :id'",
        1,
    ),
    PlantedCase(
        "a tenant in one of its pieces",
        TENANT,
        "store/sql.py",
        "_A = 'from decisions where tenant = :tenant'\n# --- what a tenant may read\nB = f'select 1 {_A}'",
        0,
    ),
    PlantedCase("no section", TENANT, "store/sql.py", "A = 'x'", 1),
    PlantedCase("an operator's statement", SECTION, "store/records.py", "rows = read(sql.TENANTS)", 1),
    PlantedCase("a tenant's statement", SECTION, "store/records.py", "rows = read(sql.DECISION)", 0),
    PlantedCase(
        "for all tenants", CONSTANT, "store/x.py", "def f(c, statement): c.execute(sql.ALL_TENANTS[statement])", 0
    ),
    PlantedCase(
        "all tenants",
        LIST,
        "store/sql.py",
        "A = 'x'\nALL_TENANTS = {statement: statement.replace('tenant = :tenant', 'tenant is not null')"
        " for statement in (A,)}",
        0,
    ),
    PlantedCase(
        "all tenants, and more",
        LIST,
        "store/sql.py",
        "A = 'x'\nALL_TENANTS = {statement: statement.replace('tenant = :tenant', x) for statement in (A,)}",
        1,
    ),
    PlantedCase(
        "all tenants, from elsewhere",
        LIST,
        "store/sql.py",
        "ALL_TENANTS = {statement: statement.replace('tenant = :tenant', 'tenant is not null') for statement in x()}",
        1,
    ),
    PlantedCase("a request's", OPERATOR, "server/x.py", "rows = store.all_records().decisions()", 1),
    PlantedCase("an application's", OPERATOR, "apps/gateway/x.py", "rows = AllRecords(backend, settle).stats()", 1),
    PlantedCase("a command's", OPERATOR, "cli/log.py", "rows = store.all_records().decisions()", 0),
    PlantedCase("a tenant's records", OPERATOR, "store/records.py", "class Records:\n    a = sql.ALL_TENANTS", 1),
    PlantedCase(
        "the operator's records", OPERATOR, "store/records.py", "class AllRecords:\n    a = sql.ALL_TENANTS", 0
    ),
    PlantedCase("the operator's file", SECTION, "store/verify.py", "rows = read(sql.TENANTS)", 0),
]


@pytest.mark.parametrize("case", PLANTED, ids=lambda case: f"{case.rule.__name__}-{case.id}")
def test_every_rule_can_fail(case: PlantedCase) -> None:
    found = list(case.rule(File(case.path, case.source)))
    assert len(found) == case.found, found


def test_every_rule_has_planted_mistakes() -> None:
    assert {case.rule for case in PLANTED if case.found} == set(RULES)
