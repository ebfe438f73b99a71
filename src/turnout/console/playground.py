"""The playground: decides a question step by step, and shows what a changed number of the profile would change.

Decisions made here are not logged, because they are not traffic. Models are asked only on request, once for a question,
and charged as everywhere.
"""

from __future__ import annotations

import asyncio
import json
import shlex
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

from turnout.apps.app import Answer, Call, Route
from turnout.apps.ledger import spent_usd
from turnout.apps.request import invalid
from turnout.core.decision import new_id
from turnout.core.errors import ConfigError, QueryError, Refused
from turnout.core.query import Query
from turnout.core.registry import is_brought_by_app
from turnout.core.router import Router
from turnout.core.verdict import Answer as LayerAnswer
from turnout.core.verdict import Fault
from turnout.explain.explanation import explain
from turnout.runtime.effect import Effect, measure_effect
from turnout.runtime.tune import Knob, find_knobs, read_changes, write_changes

from .page import read_form
from .picture import DecisionPicture, draw

if TYPE_CHECKING:
    from .console import Console

# Characters of a typed question; the API takes longer ones.
LONGEST = 20_000
# Tuned profiles and models' answers that are cached, for going back and forth between a few.
KEPT = 32
NOT_ASKED = Fault("skipped", "models are not asked: tick the box above to ask them")
EXAMPLES = ("Prove step by step that the square root of two is irrational", "Hello there!", "Will it rain tomorrow?")


class TriedProfile(NamedTuple):
    """One side of the page: a profile and its decision."""

    name: str
    picture: DecisionPicture
    was: str
    """The routes without the changes."""
    changes: Mapping[str, float]
    toml: str
    knobs: Sequence[Knob]
    by_app: bool
    """An application adds layers that this profile does not have."""


def playground_routes(console: Console) -> Sequence[Route]:
    page = Playground(console)
    return [
        Route("GET", "/playground", "route", page.show, is_page=True),
        Route("POST", "/playground", "route", page.decide, is_page=True, asks=True),
        Route("POST", "/playground/effect", "decisions:read", page.start_effect, is_page=True),
        Route("GET", "/playground/effect/{id}", "decisions:read", page.show_effect, is_page=True),
    ]


class Playground:
    def __init__(self, console: Console) -> None:
        self.console = console
        self._answered: OrderedDict[tuple[str, str], Mapping[str, list[LayerAnswer]]] = OrderedDict()
        """The answers of models by layer, for each tenant and profile, and question."""
        self._tuned: OrderedDict[tuple[str, str], Router] = OrderedDict()
        self._effects: OrderedDict[str, tuple[str, Effect]] = OrderedDict()
        """Running measurements over the log, each with the key that asked for it."""
        self._work: set[asyncio.Task[None]] = set()

    async def show(self, call: Call) -> Answer:
        """Decide a question and show every step."""
        text = call.options.get("text", "")[:LONGEST]
        profile = call.check_profile(call.options.get("profile"))
        sides = [await self._try(call, text, profile, {})] if text.strip() else []
        return self._page(call, "playground.html", {"text": text, "profile": profile}, sides)

    async def decide(self, call: Call) -> Answer:
        """Decide a question with one profile or two."""
        form = read_form(call)
        text = form.get("text", "")
        if len(text) > LONGEST:
            raise invalid(f"the question has {len(text):,} characters: at most {LONGEST:,} are taken here")
        if not text.strip():
            raise invalid("there is no question: type one")
        sides = [await self._try(call, text, call.check_profile(form.get("profile")), form)]
        if form.get("other"):
            sides.append(await self._try(call, text, call.check_profile(form["other"]), {"ask": form.get("ask", "")}))
        return self._page(call, "playground_part.html", form, sides)

    def _page(self, call: Call, template: str, form: Mapping[str, str], sides: Sequence[TriedProfile]) -> Answer:
        allowed = call.caller.profiles
        names = [name for name in self.console.profile_names() if allowed is None or name in allowed]
        demo = call.runtime.models.slots.demo
        values: dict[str, Any] = {"names": names, "form": form, "sides": sides, "demo": demo, "examples": EXAMPLES}
        if sides:
            values |= {
                "curl": _curl(call, form, self.console.api_url(call)),
                "python": _python(form.get("text", ""), sides[0].name),
            }
        return self.console.show(call, template, here="/playground", **values)

    # --- deciding

    async def _try(self, call: Call, text: str, name: str, form: Mapping[str, str]) -> TriedProfile:
        router = await call.router(name)
        answers = await self._answers(call, router, text, ask=form.get("ask") == "yes")
        with _mistakes_refused():
            knobs = find_knobs(router.profile)
            changes = read_changes(knobs, form) if form.get("moved") == name else {}
            toml = write_changes(router.profile, name, changes)
            tuned = await self._tune(call, name, toml) if changes else router
            picture, was = await asyncio.to_thread(_decide, text, tuned, router, answers)
        by_app = any(is_brought_by_app(place.kind) for place in router.profile.layers)
        return TriedProfile(name, picture, was, changes, toml, knobs, by_app)

    async def _answers(self, call: Call, router: Router, text: str, *, ask: bool) -> Mapping[str, list[LayerAnswer]]:
        """The answers of network layers, whose models are asked once; none without `ask`."""
        if not ask:
            return {}
        key = f"{call.caller.tenant}\0{router.profile.hash}", text
        if key not in self._answered:
            decision = await call.decide(Query(text, tenant=call.caller.tenant or None), router.profile.name)
            if spent := spent_usd(decision, call.runtime.models.slots):
                call.caller.budget.settle(0.0, spent)
                await asyncio.to_thread(call.store.spend, decision, call.caller.key_id, spent)
            found: dict[str, list[LayerAnswer]] = {}
            for whole in (decision, *decision.parts):
                for step in whole.steps:
                    if step.place.cost == "network":
                        found.setdefault(step.place.id, []).append(step.verdict or step.fault)
            _keep(self._answered, key, found)
        return self._answered[key]

    async def _tune(self, call: Call, name: str, toml: str) -> Router:
        key = (await call.router(name)).profile.hash, toml
        if key not in self._tuned:
            _keep(self._tuned, key, await call.runtime.tune(name, toml))
        return self._tuned[key]

    # --- the effect of changes on the log

    async def start_effect(self, call: Call) -> Answer:
        """Start to measure which logged decisions changed numbers would change."""
        form = read_form(call)
        name = call.check_profile(form.get("profile"))
        router = await call.router(name)
        with _mistakes_refused():
            changes = read_changes(find_knobs(router.profile), form)
            tuned = await self._tune(call, name, write_changes(router.profile, name, changes))
        for key_id, effect in self._effects.values():
            if key_id == call.caller.key_id:
                effect.stopped = True  # each key has one measurement at a time
        ident, effect = new_id(), Effect()
        _keep(self._effects, ident, (call.caller.key_id, effect))
        records = self.console.records(call)
        work = asyncio.create_task(asyncio.to_thread(measure_effect, records, router, tuned, effect))
        self._work.add(work)
        work.add_done_callback(self._work.discard)
        return self._effect_page(call, ident, effect)

    async def show_effect(self, call: Call) -> Answer:
        """The progress and the result of a measurement."""
        key_id, effect = self._effects.get(call.params["id"], ("", None))
        if effect is None or key_id != call.caller.key_id:
            raise Refused(404, "not_found_error", "this is no longer kept: ask for it again")
        return self._effect_page(call, call.params["id"], effect)

    def _effect_page(self, call: Call, ident: str, effect: Effect) -> Answer:
        return self.console.show(call, "effect_part.html", here="/playground", ident=ident, effect=effect)


def _decide(
    text: str, tuned: Router, router: Router, answers: Mapping[str, list[LayerAnswer]]
) -> tuple[DecisionPicture, str]:
    query = Query(text)
    recorded = {place.id: answers.get(place.id) or repeat(NOT_ASKED) for place in router.profile.layers}
    decision = tuned.route_recorded(query, recorded)
    was = decision if tuned is router else router.route_recorded(query, recorded)
    return draw(explain(decision)), " + ".join(was.routes)


def _keep(kept: OrderedDict[Any, Any], key: object, value: object) -> None:
    kept[key] = value
    while len(kept) > KEPT:
        kept.popitem(last=False)


@contextmanager
def _mistakes_refused() -> Iterator[None]:
    """Refuses a question or changes that are invalid, with the first few problems."""
    try:
        yield
    except QueryError as error:
        raise invalid(str(error)) from None
    except ConfigError as error:
        raise invalid("; ".join(str(problem) for problem in error.problems[:3])) from None


def _curl(call: Call, form: Mapping[str, str], api: str) -> str:
    """The command that sends the question to the API, which logs it."""
    body = {"text": form.get("text", ""), "profile": call.runtime.name_of(form.get("profile") or call.runtime.profile)}
    key = ' -H "authorization: Bearer $TURNOUT_KEY"' if call.caller.key_id else ""
    return f"curl -s {shlex.quote(f'{api}/v1/route')}{key} -d {shlex.quote(json.dumps(body, ensure_ascii=False))}"


def _python(text: str, profile: str) -> str:
    return f"import turnout\n\nrouter = turnout.load({profile!r})\nprint(router.route_sync({text!r}).json().decode())"
