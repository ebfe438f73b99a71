"""`turnout models`, and the commands that ask one: which slot is whose, whether it answers, how it is changed."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from clean_environment import clear_environment
from turnout.testing import Fault, Reply, ScriptedProvider

Run = Callable[..., Any]
UNSURE = ("Write a reply to Ana", "-p", "tiers-seed")


@pytest.fixture(autouse=True)
def _no_providers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    clear_environment(monkeypatch, tmp_path)
    monkeypatch.setenv("TURNOUT_DB", str(tmp_path / "turnout.db"))


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider.in_thread() as provider:
        yield provider


@pytest.fixture
def config(tmp_path: Path, provider: ScriptedProvider) -> str:
    file = tmp_path / "own.toml"
    slot = f'[models.classifier]\nmodel = "mine/small"\nbase_url = "{provider.base_url}"\n'
    file.write_text(slot + '[tiers-seed]\nclassifier_timeout_ms = 5000\n[models.main]\nmodel = "openai/gpt-5"\n')
    return str(file)


class TestList:
    def test_nothing_is_configured(self, run: Run) -> None:
        ran = run("models", "list")
        assert ran.code == 0
        for wanted in (
            "simple      demo/demo",
            "chat, messages, responses",
            "classifier (simple)",
            "ANTHROPIC_API_KEY",
        ):
            assert wanted in ran.out
        assert run("models").out == ran.out

    def test_what_is_configured(self, run: Run, config: str, monkeypatch: pytest.MonkeyPatch) -> None:
        ran = run("models", "list", "--config", config)
        assert "Keys that are missing: $OPENAI_API_KEY" in ran.out
        assert "unknown" in ran.out
        assert "demonstration" not in ran.out
        monkeypatch.setenv("OPENAI_API_KEY", "sk-not-shown")
        shown = run("models", "list", "--config", config).out + run("models", "list", "--json", "--config", config).out
        assert "missing" not in shown
        assert "not-shown" not in shown

    def test_json(self, run: Run, config: str, provider: ScriptedProvider) -> None:
        first, second = json.loads(run("models", "list", "--json", "--config", config).out)
        assert first["where"] == provider.origin
        assert (first["usable"], first["prices"], first["wires"]) == (True, None, ["openai-chat"])
        assert (second["usable"], second["needs_key"]) == (False, "$OPENAI_API_KEY")

    def test_one_model_in_two_places_is_told_apart(self, run: Run, tmp_path: Path) -> None:
        file = tmp_path / "two.toml"
        slot = '[models.%s]\nmodel = "mine/small"\nbase_url = "http://127.0.0.1:%d/v1"\n'
        file.write_text(slot % ("simple", 4001) + slot % ("medium", 4001))
        assert "127.0.0.1" not in run("models", "list", "--config", str(file)).out, "one place under two names"
        file.write_text(slot % ("simple", 4001) + slot % ("medium", 4002))
        ran = run("models", "list", "--config", str(file))
        assert "http://127.0.0.1:4001/v1" in ran.out
        assert "http://127.0.0.1:4002/v1" in ran.out

    def test_mistakes_have_file_and_line(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "bad.toml").write_text(
            '[models.simple]\nmodel = "openai/x"\nkey = "sk-abc"\n[models.main]\nmodle = "x/y"\n'
        )
        ran = run("models", "list", "--config", str(tmp_path / "bad.toml"))
        assert ran.code == 2
        assert "bad.toml:3 models.simple.key: a key does not belong in a file" in ran.err
        assert "bad.toml:5 models.main.modle" in ran.err
        assert "abc" not in ran.err


class TestTry:
    def test_the_demonstration_is_always_there(self, run: Run) -> None:
        assert run("models", "test", "simple").out == "simple      the demonstration model, which is always here\n"

    def test_an_answer_and_a_missing_key(self, run: Run, config: str, provider: ScriptedProvider) -> None:
        provider.default = Reply("ready\x1b[31m")
        ran = run("models", "test", "--config", config)
        assert ran.code == 1
        assert "classifier  mine/small answered 'ready" in ran.out
        assert "\x1b" not in ran.out
        assert "openai/gpt-5 has no key: $OPENAI_API_KEY is empty" in ran.out
        assert run("models", "test", "classifier", "--config", config).code == 0

    @pytest.mark.parametrize("reply", [Reply(status=500), Reply(fault=Fault("reset", "before_headers"))])
    def test_a_failure_is_a_sentence(self, run: Run, config: str, provider: ScriptedProvider, reply: Reply) -> None:
        provider.default = reply
        ran = run("models", "test", "classifier", "--config", config)
        assert (ran.code, ran.err) == (1, "")
        assert ran.out.startswith("classifier  ")

    def test_no_such_slot(self, run: Run) -> None:
        ran = run("models", "test", "simpel")
        assert ran.code == 2
        assert "there is no slot 'simpel', did you mean 'simple'?" in ran.err

    def test_without_the_extra(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "aiohttp", None)
        for name in ("turnout.net.client", "turnout.net.failure", "turnout.models.ask"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        ran = run("models", "test")
        assert ran.code == 2
        assert "pip install 'turnout[serve]'" in ran.err


class TestSet:
    def test_a_new_file_gets_all_tiers(self, run: Run, tmp_path: Path) -> None:
        file = tmp_path / "new.toml"
        ran = run("models", "set", "simple", "ollama/llama3.2", "--config", str(file))
        assert (ran.code, ran.err) == (0, "")
        assert f"simple now uses ollama/llama3.2 ({file})" in ran.out
        listed = json.loads(run("models", "list", "--json", "--config", str(file)).out)
        assert {row["slot"] for row in listed} == {"simple", "medium", "complex", "reasoning"}

    def test_it_is_in_the_users_own_settings(self, run: Run) -> None:
        assert run("models", "set", "main", "openai/gpt-5").code == 0
        ran = run("models", "list")
        assert "openai/gpt-5" in ran.out
        assert "Its key is missing: set $OPENAI_API_KEY." in run("models", "set", "main", "openai/gpt-5").out

    def test_the_rest_stays(self, run: Run, config: str) -> None:
        before = Path(config).read_text()
        assert run("models", "set", "classifier", "ollama/small", "--config", config).code == 0
        after = Path(config).read_text()
        assert "classifier_timeout_ms = 5000" in after
        assert "openai/gpt-5" in after
        assert "base_url" not in after
        assert before != after

    @pytest.mark.parametrize(
        ("argv", "said"),
        [
            (("simple", "nobody/x"), "provider 'nobody' is not known: set base_url (--base-url URL)"),
            (("simple", "opnai/x"), "did you mean 'openai'?"),
            (("simple", "gpt-5"), "must be provider/model"),
            (("a b", "openai/x"), "a slot's name is letters"),
            (("simple", "x/y", "--base-url", "http://169.254.169.254/v1"), "metadata"),
            (("simple", "x/y", "--base-url", "http://user:word@example.org/v1"), "credential"),
        ],
    )
    def test_what_cannot_be_used_changes_nothing(self, run: Run, config: str, argv: tuple[str, ...], said: str) -> None:
        before = Path(config).read_text()
        ran = run("models", "set", *argv, "--config", config)
        assert ran.code == 2
        assert said in ran.err
        assert Path(config).read_text() == before

    def test_a_misspelt_slot_is_refused(self, run: Run, tmp_path: Path) -> None:
        file = tmp_path / "new.toml"
        ran = run("models", "set", "simpel", "ollama/x", "--config", str(file))
        assert (ran.code, ran.out) == (2, "")
        assert (
            "no profile that ships with Turnout has a slot 'simpel', did you mean 'simple'? (--custom sets" in ran.err
        )
        assert not file.exists()

    def test_a_slot_of_ones_own_is_set(self, run: Run, tmp_path: Path) -> None:
        config = ("--config", str(tmp_path / "new.toml"))
        assert run("models", "set", "delivery", "ollama/x", *config).code == 0, "like no known slot"
        assert run("models", "set", "simpel", "ollama/x", "--custom", *config).code == 0
        assert run("models", "set", "simpel", "ollama/y", *config).code == 0, "it is there already"
        assert run("models", "set", "simpell", "ollama/y", *config).code == 2

    def test_the_slot_of_an_application_is_known(self, run: Run, tmp_path: Path) -> None:
        file = str(tmp_path / "new.toml")
        ran = run("models", "set", "claims_router", "demo/demo", "--config", file)
        assert "No profile" not in ran.out
        assert "default tiers are written beside it: simple, medium, complex, reasoning" in ran.out
        assert "beside it" not in run("models", "set", "claims_router", "demo/demo", "--config", file).out
        assert "claims_router  the demonstration" in run("models", "test", "claims_router", "--config", file).out

    @pytest.mark.parametrize("text", ["[models\n", 'models = { simple = "ollama/x" }\n'])
    def test_a_file_it_cannot_change(self, run: Run, tmp_path: Path, text: str) -> None:
        (tmp_path / "odd.toml").write_text(text)
        ran = run("models", "set", "simple", "ollama/y", "--config", str(tmp_path / "odd.toml"))
        assert ran.code == 2
        assert "odd.toml" in ran.err
        assert (tmp_path / "odd.toml").read_text() == text


class TestUnset:
    def test_the_rest_stays(self, run: Run, config: str) -> None:
        before = Path(config).read_text()
        ran = run("models", "unset", "main", "--config", config)
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.splitlines() == [f"main is no longer set ({config})", "Nothing fills it now."]
        assert Path(config).read_text() == before.replace('[models.main]\nmodel = "openai/gpt-5"\n', "")

    def test_what_fills_it_now(self, run: Run, tmp_path: Path) -> None:
        config = ("--config", str(tmp_path / "new.toml"))
        for slot in ("simple", "classifier"):
            assert run("models", "set", slot, "ollama/x", *config).code == 0
        assert "simple, ollama/x, stands in for it." in run("models", "unset", "classifier", *config).out
        for slot in ("medium", "complex", "reasoning"):
            assert run("models", "unset", slot, *config).code == 0
        assert "It is demo/demo by default." in run("models", "unset", "simple", *config).out

    def test_a_slot_that_is_not_set(self, run: Run, config: str) -> None:
        before = Path(config).read_text()
        ran = run("models", "unset", "mian", "--config", config)
        assert ran.code == 2
        assert "there is no slot 'mian' in it, did you mean 'main'?" in ran.err
        assert Path(config).read_text() == before
        assert "there is no slot 'main' in it" in run("models", "unset", "main", "--config", f"{config}.new").err


def is_left(provider: ScriptedProvider) -> bool:
    """Whether no connection is open; its end is heard of by the provider's own thread."""
    until = time.monotonic() + 5.0
    while provider.open_connections and time.monotonic() < until:
        time.sleep(0.01)
    return not provider.open_connections


class TestAsking:
    """`turnout route`, `explain` and `plan` ask where somebody can be asked."""

    def test_a_model_decides_in_doubt(self, run: Run, config: str, provider: ScriptedProvider) -> None:
        provider.default = Reply("COMPLEX")
        ran = run("route", *UNSURE, "--config", config)
        assert (ran.code, ran.err) == (0, "")
        assert "by llm" in ran.out
        assert "mine/small says COMPLEX" in ran.out
        assert is_left(provider), "the connection was closed"

    def test_not_with_local(self, run: Run, config: str, provider: ScriptedProvider) -> None:
        assert "by fallback" in run("route", *UNSURE, "--local", "--config", config).out
        assert run("route", "hello", "--config", config).code == 0
        assert provider.received == 0

    def test_a_model_that_fails_is_no_error(self, run: Run, config: str, provider: ScriptedProvider) -> None:
        provider.default = Reply(status=500)
        ran = run("explain", *UNSURE, "--config", config)
        assert ran.code == 0
        assert "answered 500" in ran.out
        assert is_left(provider)

    def test_not_without_the_extra(self, run: Run, config: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "aiohttp", None)
        for name in ("turnout.net.client", "turnout.net.failure", "turnout.models.ask"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        assert "by fallback" in run("route", *UNSURE, "--config", config).out

    def test_the_doctor_knows(self, run: Run, config: str) -> None:
        told = run("doctor", "--config", config).out
        assert "classifier is mine/small" in told
        assert "main is openai/gpt-5, which lacks its key" in told
        # Nothing stands in for the agent of claims.
        assert [line for line in told.splitlines() if "no model to ask" in line and "claims" not in line] == []
