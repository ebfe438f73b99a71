"""What `[models]` may say, what is wrong with what it may not, and who fills a slot nobody has configured."""

from __future__ import annotations

import json
import tomllib
import traceback
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from turnout.core.errors import ConfigError
from turnout.models.demo import answer, respond
from turnout.models.edit import set_slot, unset_slot
from turnout.models.price import Usage, context_of, cost_usd, look_up_prices, prices_of
from turnout.models.provider import PROVIDERS, WIRES, credential
from turnout.models.secret import Secret, SecretPlace
from turnout.models.slot import DEFAULT_TIERS, Prices, Slot, SlotFile, Slots, load_slots, make_slot

HIDDEN = "sk-canary-4f9d1c7e2b"


def settings(folder: Path, text: str) -> str:
    file = folder / "turnout.toml"
    file.write_text(text, encoding="utf-8")
    return str(file)


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(ConfigError) as told:
        load_slots(settings(folder, text))
    return [str(problem) for problem in told.value.problems]


# --- mistakes


class Mistake(NamedTuple):
    id: str
    toml: str
    line: int
    says: str


MISTAKES = [
    Mistake("unknown-key", '[models.a]\nmodel = "ollama/x"\nmodle = 1', 3, "did you mean 'model'"),
    Mistake("no-model", "[models.a]\nimages = true", 1, "model"),
    Mistake("model-a-number", "[models.a]\nmodel = 7", 2, "model"),
    Mistake("model-without-provider", '[models.a]\nmodel = "gpt-4o"', 1, "must be provider/model"),
    Mistake("model-without-name", '[models.a]\nmodel = "openai/"', 1, "must be provider/model"),
    Mistake("unknown-provider", '[models.a]\nmodel = "antropic/claude"', 1, "did you mean 'anthropic'"),
    Mistake("unknown-provider-far-off", '[models.a]\nmodel = "zzz/x"', 1, "set base_url (--base-url URL)"),
    Mistake("literal-key", '[models.a]\nmodel = "openai/x"\nkey = "' + HIDDEN + '"', 3, "does not belong in a file"),
    Mistake("key-twice", '[models.a]\nmodel = "openai/x"\nkey = { env = "A", file = "b" }', 1, "{ env ="),
    Mistake("key-of-nothing", '[models.a]\nmodel = "openai/x"\nkey = {}', 1, "{ env ="),
    Mistake("key-misspelled", '[models.a]\nmodel = "openai/x"\nkey = { environment = "A" }', 3, "environment"),
    Mistake("credential-in-url", '[models.a]\nmodel = "my/x"\nbase_url = "https://a:b@c.org/v1"', 1, "credential"),
    Mistake("not-a-url", '[models.a]\nmodel = "my/x"\nbase_url = "example.org"', 1, "not an http or https address"),
    Mistake("ftp", '[models.a]\nmodel = "my/x"\nbase_url = "ftp://example.org"', 1, "not an http or https address"),
    Mistake("metadata", '[models.a]\nmodel = "my/x"\nbase_url = "http://169.254.169.254/v1"', 1, "metadata"),
    Mistake("unknown-wire", '[models.a]\nmodel = "ollama/x"\nwires = ["openai-char"]', 3, "openai-cha"),
    Mistake("no-tokens", '[models.a]\nmodel = "ollama/x"\ncontext_tokens = 0', 3, "context_tokens"),
    Mistake("no-time", '[models.a]\nmodel = "ollama/x"\nidle_s = 0', 3, "idle_s"),
    Mistake("below-free", '[models.a]\nmodel="ollama/x"\nprices = { input_usd = -1, output_usd = 1 }', 3, "below 0"),
    Mistake("half-a-price", '[models.a]\nmodel = "ollama/x"\nprices = { input_usd = 1 }', 3, "output_usd"),
    Mistake("a-number", "[models]\na = 7", 2, "a"),
    Mistake("no-table", "models = 7", 1, "must be a table of slots"),
]  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES, ids=lambda case: case.id)
def test_a_mistake_is_located(tmp_path: Path, case: Mistake) -> None:
    found = problems(tmp_path, case.toml)
    assert len(found) == 1
    assert f"turnout.toml:{case.line} " in found[0] or found[0].startswith(f"turnout.toml:{case.line}")
    assert case.says in found[0]
    assert HIDDEN not in found[0]


def test_every_mistake_is_told_at_once(tmp_path: Path) -> None:
    text = '[models.a]\nmodel = "x"\n[models.b]\nmodel = "openai/x"\nkey = "abc"\n[models.c]\nfoo = 1\n'
    found = problems(tmp_path, text)
    assert len(found) >= 3
    assert all(any(f"models.{name}" in line for line in found) for name in "abc")


def test_a_key_with_spaces_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODD_KEY", f"{HIDDEN} and more\n")
    with pytest.raises(ConfigError, match=r"\$ODD_KEY holds a key with spaces") as told:
        make_slot("a", SlotFile("openai/x", key=SecretPlace(env="ODD_KEY")))
    assert HIDDEN not in str(told.value)


# --- a key that others could read


class ExposedCase(NamedTuple):
    id: str
    url: str
    refused: bool
    more: str = ""


EXPOSED = [
    ExposedCase("a-public-name", "http://llm.example.org/v1", True),
    ExposedCase("a-public-name-and-port", "http://llm.example.org:8443/v1", True),
    ExposedCase("a-public-address", "http://93.184.216.34/v1", True),
    ExposedCase("a-public-address-of-ipv6", "http://[2606:4700:4700::1111]/v1", True),
    ExposedCase("one-that-only-begins-like-localhost", "http://localhost.example.org/v1", True),
    ExposedCase("one-that-only-begins-like-loopback", "http://127.0.0.1.example.org/v1", True),
    ExposedCase("https", "https://llm.example.org/v1", False),
    ExposedCase("loopback", "http://127.0.0.1:8000/v1", False),
    ExposedCase("loopback-of-ipv6", "http://[::1]:8000/v1", False),
    ExposedCase("localhost", "http://localhost:8000/v1", False),
    ExposedCase("a-private-address", "http://10.1.2.3/v1", False),
    ExposedCase("marked-as-private", "http://llm.internal/v1", False, "private = true"),
    ExposedCase("marked-as-private-and-public", "http://93.184.216.34/v1", True, "private = true"),
    ExposedCase("marked-as-meant", "http://llm.example.org/v1", False, "plain_http = true"),
    ExposedCase("marked-as-not-meant", "http://llm.example.org/v1", True, "plain_http = false"),
]


@pytest.mark.parametrize("slot", ["simple", "classifier", "embedder"])
@pytest.mark.parametrize("case", EXPOSED, ids=lambda case: case.id)
def test_a_key_over_plain_http_is_refused_unless_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: ExposedCase, slot: str
) -> None:
    """Also one that is not there yet: it would be refused on the day that it is."""
    text = f'[models.{slot}]\nmodel = "mine/x"\nbase_url = "{case.url}"\n{case.more}\n'
    assert load_slots(settings(tmp_path, text)).slots[slot].key is None, "without a key anything goes"
    text += 'key = { env = "SOME_KEY" }\n'
    for value in ("", HIDDEN):
        monkeypatch.setenv("SOME_KEY", value)
        if not case.refused:
            assert load_slots(settings(tmp_path, text)).slots[slot].plain_http == ("plain_http = true" in case.more)
            continue
        (said,) = problems(tmp_path, text)
        assert said.startswith(f"turnout.toml:1 models.{slot}: its key would go to http://")
        assert "unencrypted: use https, private = true" in said
        assert "plain_http = true" in said
        assert HIDDEN not in said


def test_a_slot_is_not_changed_into_one_that_is_refused(tmp_path: Path) -> None:
    text = '[models.simple]\nmodel = "mine/x"\nbase_url = "https://a.example"\nkey = { env = "SOME_KEY" }\n'
    config = settings(tmp_path, text)
    with pytest.raises(ConfigError, match=r"its key would go to http://a\.example:80 unencrypted"):
        set_slot("simple", "mine/x", "http://a.example", config)
    assert Path(config).read_text(encoding="utf-8") == text
    set_slot("simple", "mine/x", "https://b.example", config)
    assert str(load_slots(config).slots["simple"].origin) == "https://b.example:443"


# --- what is filled in


class FilledCase(NamedTuple):
    id: str
    toml: str
    url: str
    wires: tuple[str, ...] = ("openai-chat",)
    needs: str = ""


ANTHROPIC = ("anthropic-messages", "openai-chat")
OPENAI = ("openai-chat", "openai-responses")
GOOGLE = "https://generativelanguage.googleapis.com:443/v1beta/openai"
ROUTER = "https://openrouter.ai:443/api/v1"
MINE = '[models.a]\nmodel = "mine/x"\nbase_url = "https://llm.example.org/api/"'
ELSEWHERE = '[models.a]\nmodel = "openai/x"\nbase_url = "http://127.0.0.1:9/v1"'
FILLED = [
    FilledCase("short", 'a = "ollama/llama3"', "http://127.0.0.1:11434/v1"),
    FilledCase("anthropic", 'a = "anthropic/x"', "https://api.anthropic.com:443/v1", ANTHROPIC, "$ANTHROPIC_API_KEY"),
    FilledCase("openai", 'a = "openai/x"', "https://api.openai.com:443/v1", OPENAI, "$OPENAI_API_KEY"),
    FilledCase("google", 'a = "google/x"', GOOGLE, needs="$GEMINI_API_KEY"),
    FilledCase("a-name-with-slashes", 'a = "openrouter/meta/llama"', ROUTER, needs="$OPENROUTER_API_KEY"),
    FilledCase("any-server", MINE, "https://llm.example.org:443/api"),
    FilledCase("known-name-elsewhere", ELSEWHERE, "http://127.0.0.1:9/v1", OPENAI),
    FilledCase("demo", 'a = "demo/demo"', "None", WIRES),
]


@pytest.mark.parametrize("case", FILLED, ids=lambda case: case.id)
def test_what_a_slot_leaves_out_is_its_providers(tmp_path: Path, case: FilledCase) -> None:
    head = "" if case.toml.startswith("[") else "[models]\n"
    slots = load_slots(settings(tmp_path, head + case.toml))
    slot = slots.slots["a"]
    assert (f"{slot.origin}{slot.path}", slot.wires, slot.needs_key) == (case.url, case.wires, case.needs)
    assert slot.usable == (not case.needs)
    assert slot.key is None


def test_every_provider_of_the_table_makes_a_slot() -> None:
    for name, row in PROVIDERS.items():
        slot = make_slot("a", SlotFile(f"{name}/model"))
        assert (slot.provider, slot.model, slot.id) == (name, "model", f"{name}/model")
        assert slot.needs_key == ("" if row.env is None else f"${row.env}")
        assert (slot.origin is None) == (name == "demo")


def test_a_key_comes_from_the_environment_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", f" {HIDDEN}\n")
    file = tmp_path / "key"
    file.write_text(HIDDEN + "\n", encoding="utf-8")
    for place in (SecretPlace(env="SOME_KEY"), SecretPlace(file=str(file))):
        slot = make_slot("a", SlotFile("openai/x", key=place))
        assert slot.key is not None
        assert slot.key.reveal() == HIDDEN
        assert slot.usable
    for place in (SecretPlace(env="NO_KEY_HERE"), SecretPlace(file=str(tmp_path / "none"))):
        slot = make_slot("a", SlotFile("openai/x", key=place))
        assert (slot.usable, slot.needs_key) == (False, place.place)


def test_a_known_providers_key_is_not_sent_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", HIDDEN)
    assert make_slot("a", SlotFile("openai/x")).key is not None
    assert make_slot("a", SlotFile("openai/x", base_url="https://evil.example.org/v1")).key is None


def test_the_header_of_a_key() -> None:
    assert credential("anthropic-messages", "anthropic", "k") == ("x-api-key", "k")
    assert credential("anthropic-messages", "openrouter", "k") == ("authorization", "Bearer k")
    assert credential("openai-chat", "anthropic", "k") == ("authorization", "Bearer k")


# --- slots nobody has named


def test_stand_ins(tmp_path: Path) -> None:
    slots = load_slots(settings(tmp_path, '[models]\nsimple = "ollama/s"\nmedium = "ollama/m"\nmain = "ollama/x"'))
    found = {
        name: slot.name for name in ("classifier", "router", "conversational", "main") if (slot := slots.find(name))
    }
    assert found == {
        "classifier": "simple",
        "router": "simple",
        "conversational": "main",
        "main": "main",
    }
    assert slots.classifier is slots.slots["simple"]
    assert slots.find("reasoning") is None
    only = load_slots(settings(tmp_path, '[models]\nmedium = "ollama/m"'))
    main = only.find("conversational")
    assert main is not None
    assert main.name == "medium"
    assert only.classifier is None


def test_slots_are_found_by_their_id(tmp_path: Path) -> None:
    slots = load_slots(settings(tmp_path, '[models]\na = "ollama/Big"\nb = "vllm/x/y"'))
    for ident in ("ollama/Big", "OLLAMA/big"):
        assert slots.by_id(ident) is slots.slots["a"]
    assert slots.by_id("vllm/x/y") is slots.slots["b"]
    assert slots.by_id("big") is None
    assert {str(origin) for origin in slots.origins} == {"http://127.0.0.1:11434", "http://127.0.0.1:8000"}


def test_without_anything_the_demonstration_fills_every_tier(tmp_path: Path) -> None:
    for config in ("", settings(tmp_path, ""), settings(tmp_path, "[models]\n")):
        slots = load_slots(config)
        assert slots.demo
        assert set(slots.slots) == set(DEFAULT_TIERS)
        assert slots.classifier is None, "the demonstration is not asked to judge"
        assert slots.origins == frozenset()
        assert all(slot.usable and slot.id == "demo/demo" for slot in slots.slots.values())


def test_with_a_key_the_default_tiers_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", HIDDEN)
    slots = load_slots("")
    assert not slots.demo
    assert {name: slot.id for name, slot in slots.slots.items()} == DEFAULT_TIERS
    usable = {name: slot.usable for name, slot in slots.slots.items()}
    assert usable == {"simple": False, "medium": True, "complex": True, "reasoning": True}
    assert slots.slots["simple"].needs_key == "$GEMINI_API_KEY"


def test_the_demonstration_says_what_it_is() -> None:
    assert "demonstration model" in answer("simple", "why?")
    assert "why?" in answer("simple", "why?")
    assert len(answer("simple", "x" * 9999)) < 500
    for wire in WIRES:
        for stream in (False, True):
            once = respond(wire, "simple", "demo/demo", "why?", stream)
            assert once == respond(wire, "simple", "demo/demo", "why?", stream), "always the same"
            assert b"demonstration" in b"".join(once)
            assert len(once) == 1 or stream


# --- secrets


def fail(*held: Any) -> None:
    raise ValueError(held)


def test_a_secret_does_not_show() -> None:
    secret = Secret(HIDDEN)
    slot = make_slot("a", SlotFile("ollama/x"))
    slot = msgspec.structs.replace(slot, key=secret)
    shown = [
        repr(secret),
        str(secret),
        f"{secret}",
        f"{secret!r:>5}",
        "{}".format(secret),  # noqa: UP032
        repr([secret]),
        repr(slot),
        str({"k": secret}),
    ]
    shown.append(repr(Slots({"a": slot})))
    for encode in (json.dumps, msgspec.json.encode):
        try:
            shown.append(str(encode({"k": secret})))
        except TypeError as error:
            shown.append(str(error))
    with pytest.raises(ValueError, match=r"\*\*\*") as told:
        fail(secret, slot)
    shown.append(str(told.value))
    shown += traceback.TracebackException.from_exception(told.value, capture_locals=True).format()
    assert not any(HIDDEN in text or HIDDEN[3:12] in text for text in shown)
    assert secret.reveal() == HIDDEN
    assert bool(secret)
    assert not Secret("")
    assert not hasattr(secret, "__dict__")


# --- prices


def priced(prices: Prices | None, **more: Any) -> Slot:
    return make_slot("a", SlotFile("mine/nobody-knows", base_url="http://127.0.0.1:1", prices=prices, **more))


class Cost(NamedTuple):
    id: str
    usage: Usage
    usd: float
    prices: Prices = Prices(2.0, 10.0, 0.5)


COSTS = [
    Cost("nothing", Usage(), 0.0),
    Cost("in", Usage(1_000_000), 2.0),
    Cost("out", Usage(0, 1_000_000), 10.0),
    Cost("both", Usage(1000, 100), 0.003),
    Cost("cached", Usage(1000, 0, 1000), 0.0005),
    Cost("partly", Usage(1000, 0, 400), 0.0014),
    Cost("more-cached-than-read", Usage(1000, 0, 9999), 0.0005),
    Cost("no-discount", Usage(1000, 0, 1000), 0.002, Prices(2.0, 10.0)),
    Cost("free", Usage(1000, 1000, 10), 0.0, Prices(0.0, 0.0)),
]


@pytest.mark.parametrize("case", COSTS, ids=lambda case: case.id)
def test_what_tokens_cost(case: Cost) -> None:
    assert cost_usd(priced(case.prices), case.usage) == pytest.approx(case.usd)


def test_unknown_is_not_zero() -> None:
    slot = priced(None)
    assert (prices_of(slot), context_of(slot), cost_usd(slot, Usage(1, 1))) == (None, None, None)
    assert context_of(priced(None, context_tokens=99)) == 99
    assert cost_usd(make_slot("a", SlotFile("demo/demo")), Usage(9, 9)) == 0.0


def test_the_list_is_read_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("no price is worth a connection"))
    slots = {name: make_slot(name, SlotFile(model)) for name, model in DEFAULT_TIERS.items()}
    look_up_prices(Slots(slots))
    for slot in slots.values():
        prices = prices_of(slot)
        assert prices is not None
        assert 0 < prices.input_usd < prices.output_usd
        assert prices.cached_input_usd is None or prices.cached_input_usd < prices.input_usd
    mine = make_slot("a", SlotFile(DEFAULT_TIERS["medium"], prices=Prices(7.0, 7.0)))
    assert prices_of(mine) == Prices(7.0, 7.0), "the slot's own go before the list's"


# --- editing

BEFORE = """\
# my settings
[server]
port = 9000  # not the usual

[models.simple]
# a local one
model = "ollama/llama3"
context_tokens = 8192   # small

[models.simple.prices]
input_usd = 0.0
output_usd = 0.0

[models.medium]
model = "ollama/big"
"""


HERE = "http://127.0.0.1:1/v1"


class Edit(NamedTuple):
    id: str
    slot: str
    model: str
    base_url: str | None
    added: list[str]
    removed: list[str]


EDITS = [
    Edit("changed", "simple", "vllm/other", None, ['model = "vllm/other"'], ['model = "ollama/llama3"']),
    Edit("moved", "medium", "mine/x", HERE, ['model = "mine/x"', f'base_url = "{HERE}"'], ['model = "ollama/big"']),
    Edit("new", "classifier", "ollama/tiny", None, ["", "[models.classifier]", 'model = "ollama/tiny"'], []),
]  # fmt: skip


@pytest.mark.parametrize("case", EDITS, ids=lambda case: case.id)
def test_an_edit_leaves_every_other_line(tmp_path: Path, case: Edit) -> None:
    config = settings(tmp_path, BEFORE)
    assert set_slot(case.slot, case.model, case.base_url, config) == Path(config)
    after = Path(config).read_text(encoding="utf-8").splitlines()
    lines = BEFORE.splitlines()
    for line in case.removed:
        lines.remove(line)
    for line in case.added:
        after.remove(line)
    assert [line for line in after if line] == [line for line in lines if line]
    slot = load_slots(config).slots[case.slot]
    assert slot.id == case.model
    assert not list(tmp_path.glob("*.new"))
    assert load_slots(config).slots["simple"].prices == Prices(0.0, 0.0)


def test_the_first_slot_brings_the_default_tiers_along(tmp_path: Path) -> None:
    config = settings(tmp_path, "# nothing yet\n")
    set_slot("simple", "ollama/llama3", None, config)
    slots = load_slots(config).slots
    assert {name: slot.id for name, slot in slots.items()} == DEFAULT_TIERS | {"simple": "ollama/llama3"}
    set_slot("simple", "ollama/other", None, config)
    assert load_slots(config).slots["simple"].id == "ollama/other"
    assert Path(config).read_text(encoding="utf-8").startswith("# nothing yet\n")


def test_the_file_is_made_where_settings_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "new"))
    monkeypatch.chdir(tmp_path)
    file = set_slot("simple", "ollama/llama3", None)
    assert file.is_relative_to(tmp_path / "new")
    assert load_slots().slots["simple"].id == "ollama/llama3"


SHORT = '[models]\nsimple = "ollama/llama3"\n# keep me\nmedium = "ollama/big"\n'


@pytest.mark.parametrize("slot", ["simple", "medium", "classifier"])
def test_the_short_way_of_writing_is_edited_too(tmp_path: Path, slot: str) -> None:
    config = settings(tmp_path, SHORT)
    set_slot(slot, "vllm/new", None, config)
    slots = load_slots(config).slots
    assert slots[slot].id == "vllm/new"
    assert {name: one.id for name, one in slots.items() if name != slot} == {
        name: ident for name, ident in (("simple", "ollama/llama3"), ("medium", "ollama/big")) if name != slot
    }
    assert "# keep me" in Path(config).read_text(encoding="utf-8")


ODD_HEADS = [
    '[ models . simple ]\nmodel = "ollama/a"\n',
    '[models."simple"]\nmodel = "ollama/a"\n',
    '[models.simple] # the small one\nmodel = "ollama/a"\n',
    'models.simple.model = "ollama/a"\n',
    'models = { simple = "ollama/a" }\n',
    '[models]\nsimple = { model = "ollama/a", images = false }\n',
    '[models]\nsimple = """\nollama/a"""\n',
    '[models.simple]\nmodel = "ollama/a"\nwires = [\n  "openai-chat",\n]\n',
]


@pytest.mark.parametrize("text", ODD_HEADS)
def test_however_a_slot_is_written_it_is_changed_or_left_alone(tmp_path: Path, text: str) -> None:
    config = settings(tmp_path, text)
    try:
        set_slot("simple", "vllm/new", None, config)
    except ConfigError:
        assert Path(config).read_text(encoding="utf-8") == text
        return
    slots = load_slots(config).slots
    assert {name: slot.id for name, slot in slots.items()} == {"simple": "vllm/new"}
    assert slots["simple"].images == ("images = false" not in text), "what else it said is kept"


@pytest.mark.parametrize(
    ("slot", "gone"),
    [
        ("simple", ["[models.simple]", 'model = "ollama/llama3"']),
        ("medium", ["[models.medium]", 'model = "ollama/big"']),
    ],
)
def test_a_slot_is_removed_with_all_its_tables(tmp_path: Path, slot: str, gone: list[str]) -> None:
    config = settings(tmp_path, BEFORE)
    assert unset_slot(slot, config) == Path(config)
    after = Path(config).read_text(encoding="utf-8")
    assert not any(line in after.splitlines() for line in gone)
    assert set(load_slots(config).slots) == {"simple", "medium"} - {slot}
    assert ("[models.simple.prices]" in after) == (slot == "medium")
    assert after.startswith("# my settings\n[server]\nport = 9000  # not the usual\n")


@pytest.mark.parametrize("text", [SHORT, *ODD_HEADS])
def test_however_a_slot_is_written_it_is_removed_or_left_alone(tmp_path: Path, text: str) -> None:
    config = settings(tmp_path, text)
    try:
        unset_slot("simple", config)
    except ConfigError:
        assert Path(config).read_text(encoding="utf-8") == text
        return
    after = Path(config).read_text(encoding="utf-8")
    assert "simple" not in tomllib.loads(after).get("models", {})
    assert ("# keep me" in after) == ("# keep me" in text)


def test_a_slot_that_is_not_there_cannot_be_removed(tmp_path: Path) -> None:
    config = settings(tmp_path, BEFORE)
    with pytest.raises(ConfigError, match="did you mean 'simple'"):
        unset_slot("simpel", config)
    assert Path(config).read_text(encoding="utf-8") == BEFORE


REFUSED = [
    ("simple", "nonsense", None),
    ("simple", "zzz/x", None),
    ("no good", "ollama/x", None),
    ("", "ollama/x", None),
    ("simple", 'ollama/x"\n[server]\nhost = "0.0.0.0', None),
    ("simple", "my/x", "https://me:pw@example.org/"),
    ("simple", "my/x", 'http://127.0.0.1/"\nkey = "'),
]


@pytest.mark.parametrize(("slot", "model", "base_url"), REFUSED)
def test_what_cannot_be_used_changes_nothing(tmp_path: Path, slot: str, model: str, base_url: str | None) -> None:
    config = settings(tmp_path, BEFORE)
    with pytest.raises(ConfigError):
        set_slot(slot, model, base_url, config)
    assert Path(config).read_text(encoding="utf-8") == BEFORE


def test_the_environment_names_models_where_the_settings_are_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_MODEL_NAME", "qwen3:1.7b")
    silent = load_slots(settings(tmp_path, '[models]\nsimple = "ollama/s"'))
    assert [silent.find(name).id for name in ("main", "conversational")] == ["ollama/qwen3:1.7b"] * 2  # type: ignore[union-attr]
    monkeypatch.setenv("OLLAMA_MODEL_NAME_CONVERSATIONAL", "qwen3:0.6b")
    said = load_slots(settings(tmp_path, '[models]\nmain = "ollama/m"'))
    assert [said.find(name).id for name in ("main", "conversational")] == ["ollama/m", "ollama/qwen3:0.6b"]  # type: ignore[union-attr]
