"""The playground: a question, decided before one's eyes, and what moving a number of the profile would change.

What is decided here is not logged: nobody acted on it, and a log that has what was tried out says nothing of traffic.
Models are asked only where the reader says so, once for a question, and that is paid for as everywhere.
"""

from __future__ import annotations

import asyncio
import json
import shlex
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

from turnout.apps.app import Answer, Call, Route
from turnout.apps.ledger import spent_usd
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

# A question that is typed; the API takes longer ones.
LONGEST = 20_000
# Tuned profiles and models' answers that are kept: a few sliders and questions back and forth.
KEPT = 32
NOT_ASKED = Fault("skipped", "models are not asked: tick the box above to ask them")
EXAMPLES = ("Prove step by step that the square root of two is irrational", "Hello there!", "Will it rain tomorrow?")


class TriedProfile(NamedTuple):
    """One side: a profile, and what it decides."""

    name: str
    picture: DecisionPicture
    was: str
    """What it decides without the changes."""
    changes: Mapping[str, float]
    toml: str
    knobs: Sequence[Knob]
    by_app: bool
    """An application decides with more than this profile has."""


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
        self._said: OrderedDict[tuple[str, str], Mapping[str, list[LayerAnswer]]] = OrderedDict()
        """What models answered, by tenant and profile, and by question."""
        self._tuned: OrderedDict[tuple[str, str], Router] = OrderedDict()
        self._effects: OrderedDict[str, tuple[str, Effect]] = OrderedDict()
        """What is being found out of the log, and for whom."""
        self._work: set[asyncio.Task[None]] = set()

    async def show(self, call: Call) -> Answer:
        """A question, decided before one's eyes."""
        text = call.options.get("text", "")[:LONGEST]
        profile = call.check_profile(call.options.get("profile"))
        sides = [await self._try(call, text, profile, {})] if text.strip() else []
        return self._page(call, "playground.html", {"text": text, "profile": profile}, sides)

    async def decide(self, call: Call) -> Answer:
        """Decide a question with one profile or two."""
        form = read_form(call)
        text = form.get("text", "")
        if len(text) > LONGEST:
            raise _unclear(f"the question has {len(text):,} characters: at most {LONGEST:,} are taken here")
        if not text.strip():
            raise _unclear("there is no question: type one")
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
        said = await self._answers(call, router, text, ask=form.get("ask") == "yes")
        try:
            knobs = find_knobs(router.profile)
            changes = read_changes(knobs, form) if form.get("moved") == name else {}
            toml = write_changes(router.profile, name, changes)
            tuned = await self._tune(call, name, toml) if changes else router
            picture, was = await asyncio.to_thread(_decide, text, tuned, router, said)
        except QueryError as error:
            raise _unclear(str(error)) from None
        except ConfigError as error:
            raise _unclear("; ".join(str(problem) for problem in error.problems[:3])) from None
        by_app = any(is_brought_by_app(place.kind) for place in router.profile.layers)
        return TriedProfile(name, picture, was, changes, toml, knobs, by_app)

    async def _answers(self, call: Call, router: Router, text: str, *, ask: bool) -> Mapping[str, list[LayerAnswer]]:
        """What network layers say: nothing, or what models answered, who are asked once."""
        if not ask:
            return {}
        key = f"{call.caller.tenant}\0{router.profile.hash}", text
        if key not in self._said:
            decision = await call.decide(Query(text, tenant=call.caller.tenant or None), router.profile.name)
            if spent := spent_usd(decision, call.runtime.models.slots):
                call.caller.budget.settle(0.0, spent)
                await asyncio.to_thread(call.store.spend, decision, call.caller.key_id, spent)
            found: dict[str, list[LayerAnswer]] = {}
            for whole in (decision, *decision.parts):
                for step in whole.steps:
                    if step.place.cost == "network":
                        found.setdefault(step.place.id, []).append(step.verdict or step.fault)
            _keep(self._said, key, found)
        return self._said[key]

    async def _tune(self, call: Call, name: str, toml: str) -> Router:
        key = (await call.router(name)).profile.hash, toml
        if key not in self._tuned:
            _keep(self._tuned, key, await call.runtime.tune(name, toml))
        return self._tuned[key]

    # --- what it would change

    async def start_effect(self, call: Call) -> Answer:
        """Find out what moved numbers would change of the log."""
        form = read_form(call)
        name = call.check_profile(form.get("profile"))
        router = await call.router(name)
        try:
            changes = read_changes(find_knobs(router.profile), form)
            tuned = await self._tune(call, name, write_changes(router.profile, name, changes))
        except QueryError as error:
            raise _unclear(str(error)) from None
        except ConfigError as error:
            raise _unclear("; ".join(str(problem) for problem in error.problems[:3])) from None
        for whose, effect in self._effects.values():
            if whose == call.caller.key_id:
                effect.stopped = True  # one at a time: what is asked for now counts
        ident, effect = new_id(), Effect()
        _keep(self._effects, ident, (call.caller.key_id, effect))
        records = self.console.records(call)
        work = asyncio.create_task(asyncio.to_thread(measure_effect, records, router, tuned, effect))
        self._work.add(work)
        work.add_done_callback(self._work.discard)
        return self._effect_page(call, ident, effect)

    async def show_effect(self, call: Call) -> Answer:
        """How far that is."""
        whose, effect = self._effects.get(call.params["id"], ("", None))
        if effect is None or whose != call.caller.key_id:
            raise Refused(404, "not_found_error", "this is no longer kept: ask for it again")
        return self._effect_page(call, call.params["id"], effect)

    def _effect_page(self, call: Call, ident: str, effect: Effect) -> Answer:
        return self.console.show(call, "effect_part.html", here="/playground", ident=ident, effect=effect)


def _decide(
    text: str, tuned: Router, router: Router, said: Mapping[str, list[LayerAnswer]]
) -> tuple[DecisionPicture, str]:
    query = Query(text)
    answers = {place.id: said.get(place.id) or repeat(NOT_ASKED) for place in router.profile.layers}
    decision = tuned.route_recorded(query, answers)
    was = decision if tuned is router else router.route_recorded(query, answers)
    return draw(explain(decision)), " + ".join(was.routes)


def _keep(kept: OrderedDict[Any, Any], key: object, value: object) -> None:
    kept[key] = value
    while len(kept) > KEPT:
        kept.popitem(last=False)


def _unclear(said: str) -> Refused:
    return Refused(422, "invalid_request_error", said)


def _curl(call: Call, form: Mapping[str, str], api: str) -> str:
    """The same question to the API, which logs it."""
    body = {"text": form.get("text", ""), "profile": call.runtime.name_of(form.get("profile") or call.runtime.profile)}
    key = ' -H "authorization: Bearer $TURNOUT_KEY"' if call.caller.key_id else ""
    place = f"{api}/v1/route"
    return f"curl -s {shlex.quote(place)}{key} -d {shlex.quote(json.dumps(body, ensure_ascii=False))}"


def _python(text: str, profile: str) -> str:
    return f"import turnout\n\nrouter = turnout.load({profile!r})\nprint(router.route_sync({text!r}).json().decode())"
