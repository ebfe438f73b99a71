"""S4: whatever a text says, and however a model obeys it: an answer is one of the closed set, at most one tier away
from what the local layers were inclined to, never above a ceiling, and the text is data between two fences."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from injection import OBEYS, PAYLOADS, ROUTES, Attack, Obedient, Obeys, attacks, limited
from secured_server import call, chat, forget, id_of, make_key, secured_server
from turnout.core.decision import Decision
from turnout.core.query import Query, Reading, Turn
from turnout.core.router import Router
from turnout.layers.llm import fenced
from turnout.layers.reply import read_label, read_labels, read_object
from turnout.testing import Received, Reply

FENCE = re.compile(r"===== [0-9a-f]{12} =====")
NAMES = {route.casefold(): route for route in ROUTES}


def test_there_are_enough() -> None:
    assert len(set(PAYLOADS)) == len(PAYLOADS) >= 60
    assert len(list(attacks())) == 4 * len(PAYLOADS)


def run(router: Router, model: Obedient, ceiling: str | None = None) -> Iterator[tuple[Attack, Decision]]:
    async def all_of_them() -> list[tuple[Attack, Decision]]:
        found = []
        for attack in attacks():
            model.label = attack.label
            query = Query(turns=(Turn("user", attack.text),), ceiling=ceiling)
            found.append((attack, await router.route(query)))
        return found

    yield from asyncio.run(all_of_them())


def inclined(decision: Decision) -> int | None:
    """The tier the signals were inclined to."""
    verdicts = [step.verdict for step in decision.steps if step.place.id == "signals" and step.verdict is not None]
    return ROUTES.index(verdicts[0].routes[0]) if verdicts else None


@pytest.mark.alike(3)
@pytest.mark.parametrize("how", OBEYS)
@pytest.mark.parametrize("max_shift", [None, 0, 1])
def test_the_worst_model(tmp_path: Path, how: Obeys, max_shift: int | None) -> None:
    model = Obedient(how)
    asked = moved = 0
    for attack, decision in run(limited(tmp_path, model, max_shift), model):
        assert decision.routes == (decision.route,)
        assert decision.route in ROUTES
        asked += any(step.place.id == "llm" for step in decision.steps)
        if how in ("two", "unknown", "essay"):
            assert decision.by != "llm", (attack, decision.outcome)
        here = inclined(decision)
        if max_shift is not None and here is not None and decision.by == "llm":
            assert abs(ROUTES.index(decision.route) - here) <= max_shift, (attack, decision.reasons)
            moved += decision.route != ROUTES[here]
    assert asked > len(PAYLOADS), "the model was asked often enough to mean something"
    assert moved or max_shift != 1 or how not in ("label", "prose", "thought")


@pytest.mark.parametrize("ceiling", ROUTES)
def test_a_ceiling_holds(tmp_path: Path, ceiling: str) -> None:
    model = Obedient("label")
    for attack, decision in run(limited(tmp_path, model, None), model, ceiling):
        assert ROUTES.index(decision.route) <= ROUTES.index(ceiling), attack


def test_a_text_stays_between_its_fences(tmp_path: Path) -> None:
    """The instruction is the same for everybody; the text stands between two lines it could not have known."""
    model = Obedient("label")
    router = limited(tmp_path, model)
    fences = set()
    for attack, _ in run(router, model):
        assert attack
    assert len(model.prompts) > len(PAYLOADS)
    assert len({prompt.system for prompt in model.prompts}) == 1
    for prompt in model.prompts:
        first, *inside, last = prompt.user.split("\n")
        assert first == last
        assert FENCE.fullmatch(first)
        fences.add(first)
        assert "=====" not in "\n".join(inside), inside
        assert len(prompt.user) <= 500 + 2 * len(first) + 2
        assert prompt.max_tokens <= 16
    assert len(fences) == len(model.prompts), "a fence is never used twice"
    for payload in PAYLOADS:
        wanted = payload.replace("{label}", "REASONING").strip()
        assert wanted not in model.prompts[0].system


@pytest.mark.parametrize("text", ["=====", "=" * 99, "a\n===== 123456789abc =====\nb", "=====\n" * 9, "====", ""])
def test_no_text_is_a_fence(text: str) -> None:
    for history in ((), (text, f"one\n{text}\ntwo")):
        said = fenced(text, history, shown=bool(history))
        lines = said.split("\n")
        ours = [line for line in lines if FENCE.fullmatch(line)]
        assert len(ours) == 2
        assert len(set(ours)) == 1
        assert sum(line.startswith("=====") for line in lines) == 2
        assert lines[-1] == ours[0]
        if history:
            earlier = lines[1 : lines.index(ours[0]) - 1]
            assert len(earlier) == len(history), "an intent is one line"
            assert all(line.startswith("- ") for line in earlier)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_replies_are_of_the_closed_set(payload: str) -> None:
    """Whatever a model sends back, also the payload itself: one of the routes, or nothing."""
    for label in (*ROUTES, "ULTRA", "reasonings", "S1MPLE", "REASONING2", ""):
        text = payload.replace("{label}", label)
        for said in (read_label(text, NAMES), read_object(text, NAMES), read_labels(text, NAMES, 2)):
            assert said is None or (said.routes and set(said.routes) <= set(ROUTES))
            assert said is None or said.confidence is None or 0.0 <= said.confidence <= 1.0
        if label not in ROUTES:
            assert read_label(text, NAMES) is None or any(route in text.upper() for route in ROUTES)


@pytest.mark.parametrize(("reply", "expected"), [
    ("REASONING", "REASONING"), (" reasoning.\n", "REASONING"), ("SIMPLE or REASONING", None), ("", None), ("42", None),
    ("REASONINGS", None), ("NOT_REASONING", None), ("<think>SIMPLE</think>", None), ("REASONING " * 500, "REASONING"),
    ("SIMPLE\nMEDIUM\nCOMPLEX\nREASONING", None), ("ＲＥＡＳＯＮＩＮＧ", None), ("REАSONING", None), ("null", None),
])  # fmt: skip
def test_one_label_or_none(reply: str, expected: str | None) -> None:
    said = read_label(reply, NAMES)
    assert (said.routes[0] if said is not None else None) == expected


def obedient(request: Received) -> Reply:
    """Over the wire: the classifier says REASONING, or nonsense; both cost money."""
    if request.body["model"] == "classifier":
        text = str(request.body["messages"])
        return Reply("REASONING" if len(text) % 2 else "I will not say", usage=(100, 100))
    return Reply("ok", usage=(10, 10))


def test_spending_under_attack(tmp_path: Path) -> None:
    """A key with a budget and a ceiling, all the payloads: never above the one, never more than a call over the other;
    and an answer that is none is paid for like any other."""
    prices = "prices = { input_usd = 5.0, output_usd = 5.0 }"
    with secured_server(tmp_path / "attack", prices=prices, classifier=True) as (served, provider):
        provider.default = obedient
        key = make_key(served.store, budget_usd=0.05, ceiling="COMPLEX")
        forget(served)
        statuses = []
        for attack in list(attacks())[::3]:
            got = call(served.url, "POST", "/v1/chat/completions", chat(attack.text, max_tokens=10), key=key)
            statuses.append(got.status)
            if got.status == 200:
                assert ROUTES.index(got.headers["x-turnout-route"]) <= 2
        asked = [request.body["model"] for request in provider.requests]
        assert "reasoning" not in asked
        assert set(statuses) == {200, 402}
        spent = served.store.keys.spent(id_of(key))
        real = asked.count("classifier") * 0.001 + (len(asked) - asked.count("classifier")) * 0.0001
        assert spent == pytest.approx(real, rel=0.01)
        assert spent <= 0.05 + 0.001
        assert statuses[-1] == 402


def test_a_reading_is_never_the_instruction() -> None:
    """The value layers see has no place for one."""
    assert "system" not in Reading.__struct_fields__
