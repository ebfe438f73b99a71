"""Every mistake at once, each with file, line, path and what to do: first many in one file, then one by one."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

import turnout
from turnout import ConfigError, Profile, load_profile

PLANTED = """\
name = "planted"
routes = ["SIMPLE", "MEDIUM", "COMPLEX"]
colour = "blue"
deadline_ms = "fast"
fallback = { route = "MEDIM" }

[[layers]]
kind = "rules.v1"
accept = { confidence = 1.7 }

[[layers.rules]]
id = "greet"
route = "SIMPLE"
when = { any = ["hello", "hi"] }

[[layers.rules]]
id = "greet"
route = "SIMPLE"
when = { any = ["hi"] }

[[layers]]
kind = "signals.v1"
accept = { confidance = 0.7 }

[[layers.signals]]
id = "code"
weight = 0.5
words = ["function"]

[[layers.signals]]
id = "proof"
weight = 0.4
words = ["theorem"]

[layers.bands]
edges = [0.0, 0.3]
routes = ["SIMPLE", "MEDIUM", "COMPLEX"]
steepness = 12

[[layers]]
kind = "sgnals.v1"

[[layers]]
id = "rules"
kind = "declared.v1"

[policy.SIMPLE]
model = "simple"
max_sentences = 0

[policy.COMPLEX]
model = "sk-abcdefghijklmnopqrstuvwxyz"

[policy.HARD]
model = "hard"
"""

# One row a mistake: the line it is on, its path, and what the message must say.
EXPECTED = [
    (3, "colour", "unknown key (known: adjust"),
    (4, "deadline_ms", "must be a number, found 'fast'"),
    (5, "fallback.route", "'MEDIM' is not a route, did you mean 'MEDIUM'?"),
    (9, "layers[0].accept.confidence", "1.7 is above 1, the most it may be"),
    (17, "layers[0].rules[1].id", "'greet' is the id of rules[0] already"),
    (16, "layers[0].rules[1]", "unreachable: rules[0] (greet) applies whenever it does"),
    (23, "layers[1].accept.confidance", "unknown key, did you mean 'confidence'?"),
    (25, "layers[1].signals", "the weights add up to 0.9, not to 1"),
    (41, "layers[2].kind", "no installed package provides 'sgnals.v1', did you mean 'signals.v1'?"),
    (43, "layers[3]", "'rules' is the id of an earlier entry: give this one an id of its own"),
    (47, "policy", "route 'MEDIUM' has no policy: add [policy.MEDIUM]"),
    (49, "policy.SIMPLE.max_sentences", "0 is below 1, the least it may be"),
    (52, "policy.COMPLEX.model", 'looks like a secret: write { env = "NAME" } or { file = "path" } instead'),
    (54, "policy.HARD", "'HARD' is not a route (SIMPLE, MEDIUM, COMPLEX)"),
]


def problems(source: str, tmp_path: Path, name: str = "planted.toml") -> list[str]:
    path = tmp_path / name
    path.write_text(source)
    with pytest.raises(ConfigError) as caught:
        load_profile(path, config="")
    return [str(problem) for problem in caught.value.problems]


def test_many_mistakes_get_as_many_messages_in_one_run(tmp_path: Path) -> None:
    found = problems(PLANTED, tmp_path)
    expected = [f"planted.toml:{line} {path}: {message}" for line, path, message in EXPECTED]
    for wanted in expected:
        assert any(message.startswith(wanted) for message in found), wanted
    assert len(found) == len(expected) >= 10


def test_every_message_has_a_file_and_a_line(tmp_path: Path) -> None:
    for message in problems(PLANTED, tmp_path):
        assert re.match(r"planted\.toml:\d+ [\w.\[\]]+: \S", message), message


def test_the_file_without_its_mistakes_loads(tmp_path: Path) -> None:
    lines = PLANTED.splitlines()
    repaired = {
        3: "",
        4: "deadline_ms = 400",
        5: 'fallback = { route = "MEDIUM" }',
        9: "accept = { confidence = 0.7 }",
        17: 'id = "bye"',
        19: 'when = { any = ["goodbye"] }',
        23: "accept = { confidence = 0.7 }",
        32: "weight = 0.5",
        41: 'kind = "llm.v1"\noptional = true',
        44: 'id = "declared"',
        49: "",
        52: 'model = "complex"',
        54: "[policy.MEDIUM]",
    }
    for number, line in repaired.items():
        lines[number - 1] = line
    path = tmp_path / "repaired.toml"
    path.write_text("\n".join(lines))
    assert isinstance(load_profile(path, config=""), Profile)


TOY = """\
name = "toy"
routes = ["a", "b"]
fallback = { route = "a" }

[[layers]]
kind = "rules.v1"

[[layers.rules]]
id = "one"
route = "b"
when = { any = ["bee"] }

[policy.a]

[policy.b]
"""

BANDS = """\
name = "toy"
routes = ["a", "b"]
fallback = { route = "a" }

[[layers]]
kind = "signals.v1"

[[layers.signals]]
id = "s"
weight = 1.0
words = ["bee"]

[layers.bands]
edges = [0.5]
routes = ["a", "b"]
steepness = 12.0

[policy.a]

[policy.b]
"""

RANKING = """\
name = "toy"
routes = ["a", "b"]
fallback = { route = "a" }

[[layers]]
kind = "signals.v1"

[[layers.signals]]
id = "s"
words = ["bee"]

[layers.ranking.sums]
one = { s = 0.5 }

[layers.ranking.routes]
a = [{ add = 1.0, of = "one" }]
b = [{ add = 0.2 }]

[policy.a]

[policy.b]
"""


class Case(NamedTuple):
    id: str
    base: str
    change: tuple[str, str]
    """What is replaced, by what; an empty first part puts the second in front."""
    problems: list[str]


def toy(id: str, old: str, new: str, *problems: str) -> Case:
    return Case(id, TOY, (old, new), list(problems))


def bands(id: str, old: str, new: str, *problems: str) -> Case:
    return Case(id, BANDS, (old, new), list(problems))


def ranking(id: str, old: str, new: str, *problems: str) -> Case:
    return Case(id, RANKING, (old, new), list(problems))


RULES = "layers[0].rules"
SIGNALS = "layers[0].signals"
RANK = "layers[0].ranking"
CASES = [
    toy("no name", 'name = "toy"', "", "toy.toml: 'name' is missing"),
    toy("no routes", 'routes = ["a", "b"]', "", "toy.toml: 'routes' is missing"),
    toy("empty routes", '["a", "b"]', "[]", "toy.toml:2 routes: needs at least 1 item"),
    toy("route twice", '["a", "b"]', '["a", "b", "a"]', "toy.toml:2 routes[2]: 'a' is listed twice"),
    toy("a route of another type", '["a", "b"]', '["a", "b", 3]', "toy.toml:2 routes[2]: must be a string, found 3"),
    toy("routes as a table", '["a", "b"]', "{ a = 1 }", "toy.toml:2 routes: must be a list, found {'a': 1}"),
    toy("no fallback", 'fallback = { route = "a" }', "", "toy.toml: 'fallback' is missing"),
    toy("fallback as a string", '{ route = "a" }', '"a"', "toy.toml:3 fallback: must be a table, found 'a'"),
    toy("fallback without a route", '{ route = "a" }', "{}", "toy.toml:3 fallback: 'route' is missing"),
    toy(
        "held by nobody",
        '{ route = "a" }',
        '{ route = "a", held = 0.4, held_by = ["rule"] }',
        "toy.toml:3 fallback.held_by[0]: there is no layer 'rule', did you mean 'rules'?",
    ),
    toy("blank", "", 'blank = { route = "c" }\n', "toy.toml:1 blank.route: 'c' is not a route (a, b)"),
    toy("off", "", "enabled = false\n", "toy.toml:1 enabled: is false, so `off` must say which route"),
    toy("enabled as a word", "", "enabled = 'no'\n", "toy.toml:1 enabled: must be true or false, found 'no'"),
    toy("deadline zero", "", "deadline_ms = 0\n", "toy.toml:1 deadline_ms: 0 must be more than 0"),
    toy("deadline nan", "", "deadline_ms = nan\n", "toy.toml:1 deadline_ms: must be an ordinary number, found nan"),
    toy("deadline inf", "", "deadline_ms = inf\n", "toy.toml:1 deadline_ms: must be an ordinary number, found inf"),
    toy("deadline true", "", "deadline_ms = true\n", "toy.toml:1 deadline_ms: must be a number, found True"),
    toy("deadline beyond 64 bits", "", f"deadline_ms = {10**30}\n", "toy.toml:1 deadline_ms: must be an ordinary"),
    toy("deadline beyond a float", "", f"deadline_ms = {10**400}\n", "toy.toml:1 deadline_ms: must be an ordinary"),
    toy("no layers", TOY[TOY.index("[[layers") : TOY.index("[policy.a")], "", "toy.toml: 'layers' is missing"),
    toy("unknown fold", "", 'text = { fold = "unicod" }\n', "toy.toml:1 text.fold: 'unicod' is not allowed, did you"),
    toy("no policy", "[policy.b]\n", "", "toy.toml:13 policy: route 'b' has no policy: add [policy.b]"),
    toy("policy for nobody", "", "policy.c.image = true\n", "toy.toml:1 policy.c: 'c' is"),
    toy(
        "policy key", "[policy.a]", "[policy.a]\nmodl = 'x'", "toy.toml:14 policy.a.modl: unknown key, did you mean 'm"
    ),
    toy("policy type", "[policy.a]", "[policy.a]\nimage = 1", "toy.toml:14 policy.a.image: must be true or false"),
    toy(
        "policy count",
        "[policy.a]",
        "[policy.a]\nhistory_turns = -1",
        "toy.toml:14 policy.a.history_turns: -1 is below",
    ),
    toy("policy fraction", "[policy.a]", "[policy.a]\nmax_tokens = 1.5", "policy.a.max_tokens: must be a whole number"),
    toy("policy chain", "[policy.a]", "[policy.a]\nchain = ['a', 'x']", "policy.a.chain: 'x' is not a route"),
    toy("policy extra", "[policy.a]", "[policy.a]\nextra = { x = [] }", "policy.a.extra.x: must be a string or"),
    toy("contract as a number", "", "contract = 3\n", "toy.toml:1 contract: must be a list, found 3"),
    toy("contract without an id", "", "contract = [{ never = 'x' }]\n", "toy.toml:1 contract[0]: 'id' is missing"),
    toy("kind missing", 'kind = "rules.v1"', "", "toy.toml:5 layers[0]: 'kind' is missing"),
    toy("kind as a number", '"rules.v1"', "1", "toy.toml:6 layers[0].kind: must be a string, found 1"),
    toy(
        "unknown kind", '"rules.v1"', '"oracle.v1"', "toy.toml:6 layers[0].kind: no installed package provides 'oracle"
    ),
    toy("a kind of a later version", '"rules.v1"', '"rules.v2"', "did you mean 'rules.v1'?"),
    toy(
        "an unknown adjustment",
        "",
        "adjust = [{ kind = 'x.v1', optional = true }]\n",
        "toy.toml:1 adjust[0].kind: no i",
    ),
    toy("gate", "\n[[layers.rules]]", "accept = 0.7\n[[layers.rules]]", "toy.toml:7 layers[0].accept: must be a table"),
    toy(
        "layer deadline",
        "\n[[layers.rules]]",
        "deadline_ms = -5\n[[layers.rules]]",
        "layers[0].deadline_ms: -5 must be",
    ),
    toy(
        "optional", "\n[[layers.rules]]", "optional = 1\n[[layers.rules]]", "layers[0].optional: must be true or false"
    ),
    toy("a key of no kind", "\n[[layers.rules]]", "rulez = 1\n[[layers.rules]]", "toy.toml:7 layers[0].rulez: unknown"),
    toy(
        "secret by its key",
        "",
        'api_key = "x"\n',
        "toy.toml:1 api_key: unknown key",
        "toy.toml:1 api_key: looks like a",
    ),
    toy(
        "secret by its shape",
        "[policy.a]",
        "[policy.a]\ninstruction = 'use AKIAABCDEFGHIJKLMNOP'",
        "looks like a secret",
    ),
    toy("rule route", 'route = "b"', 'route = "c"', f"toy.toml:10 {RULES}[0].route: 'c' is not a route"),
    toy("rule routes", 'route = "b"', 'route = ["b", "c"]', f"{RULES}[0].route: 'c' is not a route"),
    toy(
        "rule confidence",
        'route = "b"',
        'route = "b"\nconfidence = 2',
        f"toy.toml:11 {RULES}[0].confidence: 2.0 is not",
    ),
    toy("rule without condition", '{ any = ["bee"] }', "{}", f"toy.toml:11 {RULES}[0].when: is empty"),
    toy(
        "rule key",
        '{ any = ["bee"] }',
        '{ eny = ["bee"] }',
        f"toy.toml:11 {RULES}[0].when.eny: unknown key, did you me",
    ),
    toy(
        "rule pair", "{ any", "{ ordered = [['a']], any", f"{RULES}[0].when.ordered[0]: needs exactly 2 items, found 1"
    ),
    toy("nobody chooses", 'routes = ["a", "b"]', 'routes = ["a", "b", "c"]', "policy: route 'c' has no policy"),
    bands("too few weights", "weight = 1.0", "", f"toy.toml:8 {SIGNALS}[0].weight: is missing"),
    bands("weights", "weight = 1.0", "weight = 0.9", f"toy.toml:8 {SIGNALS}: the weights add up to 0.9, not to 1"),
    bands(
        "falling edges",
        'edges = [0.5]\nroutes = ["a", "b"]',
        'edges = [0.5, 0.5]\nroutes = ["a", "b", "a"]',
        "toy.toml:14 layers[0].bands.edges: [0.5, 0.5] must rise",
    ),
    bands("edges and routes", "[0.5]", "[0.5, 0.6]", "toy.toml:13 layers[0].bands: 2 routes need 1 edges, found 2"),
    bands("edges as words", "[0.5]", "['x']", "toy.toml:14 layers[0].bands.edges[0]: must be a number, found 'x'"),
    bands("band route", 'routes = ["a", "b"]\nsteep', 'routes = ["a", "c"]\nsteep', "bands.routes: 'c' is not a route"),
    bands("no phrases", 'words = ["bee"]', "", f"toy.toml:8 {SIGNALS}[0]: needs either phrases"),
    bands(
        "phrases and a measure", 'words = ["bee"]', 'words = ["bee"]\nmeasure = "tokens"', f"{SIGNALS}[0]: needs either"
    ),
    bands(
        "unknown measure", 'words = ["bee"]', 'measure = "token"', f"{SIGNALS}[0].measure: 'token' is not allowed, did"
    ),
    bands("a phrase twice", '["bee"]', '["bee", "wasp", "bee|bees"]', f"{SIGNALS}[0].words[2]: 'bee' is listed twice"),
    bands("an empty phrase", '["bee"]', '["bee", " "]', f"{SIGNALS}[0].words[1]: an empty phrase"),
    bands(
        "a level of nothing",
        'words = ["bee"]',
        'words = ["bee"]\nlevels = [{ score = 1 }]',
        f"{SIGNALS}[0].levels[0]: ne",
    ),
    bands(
        "neither bands nor ranking", BANDS[BANDS.index("[layers.bands]") : BANDS.index("[policy.a")], "", "exactly one"
    ),
    bands(
        "override of nothing",
        "[layers.bands]",
        '[[layers.overrides]]\nid = "o"\nroute = "c"\nconfidence = 0.5\nall = []\n[layers.bands]',
        "overrides[0].route: 'c' is not a route",
        "overrides[0].all: is empty",
    ),
    bands(
        "override of an unknown signal",
        "[layers.bands]",
        '[[layers.overrides]]\nid = "o"\nroute = "b"\nconfidence = 0.5\n'
        'all = [{ sum = ["z"], at_least = 1 }]\n[layers.bands]',
        "overrides[0].all[0].sum: 'z' is not a signal",
    ),
    ranking(
        "ranking signal", "one = { s = 0.5 }", "one = { z = 0.5 }", f"toy.toml:13 {RANK}.sums.one: 'z' is not a sig"
    ),
    ranking("ranking sum", 'of = "one"', 'of = "two"', f"toy.toml:16 {RANK}.routes.a[0].of: 'two' is not a sum"),
    ranking("ranking route", "b = [{", "c = [{", f"toy.toml:17 {RANK}.routes.c: 'c' is not a route"),
    ranking("one route", "b = [{ add = 0.2 }]", "", f"{RANK}.routes: needs at least two routes to rank"),
    ranking(
        "condition", "{ add = 0.2 }", "{ add = 0.2, when = ['z'] }", f"{RANK}.routes.b[0].when: 'z' is not a signal"
    ),
    ranking("sum condition", "{ add = 0.2 }", "{ add = 1, when_sum = { z = 1 } }", "b[0].when_sum: 'z' is not a sum"),
    ranking(
        "base", "[layers.ranking.routes]", "[layers.ranking.base]\nz = 1\n[layers.ranking.routes]", "base: 'z' is not"
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_mistake_is_found(case: Case, tmp_path: Path) -> None:
    old, new = case.change
    assert not old or case.base.count(old) == 1
    found = problems(case.base.replace(old, new) if old else new + case.base, tmp_path, "toy.toml")
    for expected in case.problems:
        assert any(expected in message for message in found), (expected, found)


@pytest.mark.parametrize("source", [TOY, BANDS, RANKING], ids=["rules", "bands", "ranking"])
def test_the_bases_have_no_mistake(source: str, tmp_path: Path) -> None:
    path = tmp_path / "toy.toml"
    path.write_text(source)
    assert load_profile(path, config="").name == "toy"


def test_a_route_no_layer_can_choose(tmp_path: Path) -> None:
    source = TOY.replace('["a", "b"]', '["a", "b", "c"]') + "[policy.c]\n"
    assert problems(source, tmp_path) == [
        "planted.toml:2 routes[2]: no layer can choose 'c': it is reached only when declared"
    ]


class Pattern(NamedTuple):
    id: str
    source: str
    reason: str


PATTERNS = [
    Pattern("lookahead", "a(?=b)", "(?="),
    Pattern("lookbehind", "(?<!a)b", "(?<"),
    Pattern("back-reference", r"(a)\1", r"\1"),
    Pattern("unclosed", "(a", "missing )"),
    Pattern("too large", "a{2000}", "repetition"),
    Pattern("a letter in a class that cannot be wrapped", "[éè]", "(?:a|é)"),
]


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.id)
def test_a_pattern_that_cannot_run_in_linear_time(pattern: Pattern, tmp_path: Path) -> None:
    source = TOY.replace('any = ["bee"]', f"patterns = ['ok', '{pattern.source}']")
    (found,) = problems(source, tmp_path)
    assert found.startswith("planted.toml:11 layers[0].rules[0].when.patterns[1]: not a pattern RE2 can run in linear")
    assert pattern.reason in found


def test_all_bad_patterns_are_reported_together(tmp_path: Path) -> None:
    source = TOY.replace('any = ["bee"]', "patterns = ['a(?=b)', 'ok', 'a(?=c)'], none_patterns = ['(?!x)']")
    assert len(problems(source, tmp_path)) == 3


FALLBACK = 'fallback = { route = "a" }'
SLIPS = {
    "fallback confidence": TOY.replace(FALLBACK, 'fallback = { route = "a", confidence = 7 }'),
    "fallback held": TOY.replace(FALLBACK, 'fallback = { route = "a", held = -1 }'),
    "default confidence": TOY.replace(FALLBACK, FALLBACK + "\nblank = { route = 'a', confidence = 2 }"),
    "no levels": BANDS.replace('words = ["bee"]', 'words = ["bee"]\nlevels = []'),
    "no edges": BANDS.replace('edges = [0.5]\nroutes = ["a", "b"]', 'edges = []\nroutes = ["b"]'),
    "negative steepness": BANDS.replace("12.0", "-12.0"),
    "endless steepness": BANDS.replace("12.0", "1e300"),
    "a rule without a route": TOY.replace(
        "[policy.a]", "[[layers.rules]]\nid = 'x'\nroute = []\nwhen = { any = ['x'] }\n[policy.a]"
    ),
    "a rule with an empty phrase": TOY.replace('["bee"]', '["bee", ""]'),
    "a contract's fact misspelt": TOY.replace(FALLBACK, FALLBACK + "\ncontract = [{ id = 'C', never = 'retreival' }]"),
    "a contract's id twice": TOY.replace(FALLBACK, FALLBACK + "\ncontract = [{ id = 'C' }, { id = 'C' }]"),
    "a layer as an adjustment": TOY.replace(FALLBACK, FALLBACK + "\nadjust = [{ kind = 'declared.v1' }]"),
}


@pytest.mark.parametrize("source", SLIPS.values(), ids=SLIPS.keys())
def test_a_value_that_can_only_be_a_slip(source: str, tmp_path: Path) -> None:
    assert source not in (TOY, BANDS)
    assert problems(source, tmp_path)


def test_a_misspelt_key_does_not_hide_what_else_is_wrong_with_its_layer(tmp_path: Path) -> None:
    profile = tmp_path / "hidden.toml"
    profile.write_text(
        'name = "h"\nroutes = ["A"]\nfallback = { route = "A" }\n[policy.A]\n[[layers]]\nkind = "rules.v1"\n'
        '[[layers.rules]]\nid = "one"\nroute = "Z"\nwhne = {}\nwhen = { any = ["x"] }\n'
        '[[layers.rules]]\nid = "two"\nroute = "A"\nwhen = { patterns = [\'(?=x)\'] }\n',
        encoding="utf-8",
    )
    with pytest.raises(ConfigError) as caught:
        turnout.load(profile, config="")
    found = str(caught.value)
    assert "hidden.toml:9 layers[0].rules[0].route: 'Z' is not a route" in found
    assert "hidden.toml:10 layers[0].rules[0].whne: unknown key, did you mean 'when'?" in found
    assert "hidden.toml:15 layers[0].rules[1].when.patterns[0]: not a pattern" in found
