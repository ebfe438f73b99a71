"""Learning: the serving student and the others, how good each was on held-out questions, and the questions whose labels
would help the next one most."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup
from msgspec import Struct

from turnout.apps.app import Answer, Call, Route
from turnout.config.champion import SHIPPED, layers_with_models, shipped_model
from turnout.core.errors import LearnError, Refused
from turnout.learn.registry import ChampionChange, RegisteredModel, candidates, read_history, rollback
from turnout.runtime.load import load_profile, open_embedder
from turnout.store import Records
from turnout.store.listing import FIRST
from turnout.store.records import JUDGEMENTS, Logged

from .page import go_to, in_thread, page, read_form
from .shape import count, number, share

if TYPE_CHECKING:
    from .console import Console

# The newest decisions, among which the most useful questions are looked for.
LOOKED_AT = 2_000
# Questions to label at a time.
QUEUED = 12


# Names of training metrics for people. They are shares, except those below; other metrics are shown by their codes.
METRICS = {
    "accuracy": "Accuracy, cross-validated",
    "words_accuracy": "Accuracy by words alone, cross-validated",
    "alone": "Decided by words alone",
    "ece": "Calibration error, cross-validated",
    "rows": "Questions trained on",
    "held_rows": "Held-out questions",
    "held_accuracy": "Accuracy, held-out questions",
    "held_ece": "Calibration error, held-out questions",
    "held_brier": "Brier score, held-out questions",
    "held_coverage_at_98": "Can decide at 98 % accuracy",
    "whole_rows": "Questions through the whole profile",
    "whole_accuracy": "Accuracy of the whole profile",
    "whole_fallback": "Fallback share of the whole profile",
    "whole_majority": "Accuracy of always choosing the most common route",
}
# A score, not a share.
SCORES = ("held_brier",)


class Shelf(Struct, frozen=True):
    """The students of one layer."""

    profile: str
    layer: str
    models: list[RegisteredModel]
    history: list[ChampionChange]


class Pictures(NamedTuple):
    rows: int
    accuracy: float
    reliability: Markup
    coverage: Markup
    confusion: Markup


def tell_metric(code: str, value: float) -> str:
    if code.endswith("rows"):
        return count(round(value))
    return share(value) if code in METRICS and code not in SCORES else number(value)


def shelves_of(profiles: Sequence[str]) -> list[Shelf]:
    found = []
    for profile in profiles:
        ships = ["student"] if shipped_model(profile, "student") is not None else []
        for layer in dict.fromkeys((*ships, *layers_with_models(profile))):
            history = read_history(profile, layer)[::-1]
            found.append(Shelf(profile, layer, candidates(profile, layer)[::-1], history))
    return found


@lru_cache(maxsize=32)
def pictures_of(profile: str, layer: str, digest: str, config: str | None) -> Pictures | None:
    """A student's pictures, from held-out rows; None if its training is not known."""
    from turnout.learn.card import draw_confusion, draw_coverage, draw_reliability
    from turnout.learn.held import read_held
    from turnout.learn.metric import bin_reliability, confuse, curve

    held = read_held(profile, layer, digest)
    if held is None or not held.true:
        return None
    right = held.right
    places = load_profile(profile, config=config, local=True).layers
    gate = next((place.gate.confidence for place in places if place.id == layer), None)
    # The drawing functions escape names.
    return Pictures(
        len(right),
        sum(right) / len(right),
        Markup(draw_reliability(bin_reliability(right, held.confidence), held.confidence)),  # noqa: S704
        Markup(draw_coverage(curve(right, held.confidence), gate)),  # noqa: S704
        Markup(draw_confusion(confuse(held.true, held.said))),  # noqa: S704
    )


def most_useful(records: Records, profile: str) -> list[Logged]:
    """Questions without a judgement, each once, starting with those that the profile was least sure of."""
    newest = list(islice(records.decisions(profile=profile), LOOKED_AT))
    # Judgements are read only of these; if there are more, the oldest one marks their beginning.
    above = newest.pop().id if len(newest) == LOOKED_AT else FIRST
    judged = {row.id for word in JUDGEMENTS for row in records.decisions(profile=profile, verdict=word, above=above)}
    seen: dict[str, Logged] = {}
    for row in newest:
        if row.id not in judged and row.question and row.kept == "full":
            seen.setdefault(row.question, row)
    return sorted(seen.values(), key=lambda row: row.confidence)[:QUEUED]


def learning_routes(console: Console) -> Sequence[Route]:
    config = None if console.runtime.config is None else str(console.runtime.config)

    def check_known(profile: str, layer: str) -> None:
        if profile not in console.known_profiles() or layer not in {one.layer for one in shelves_of([profile])}:
            raise Refused(404, "not_found_error", f"no student of {profile[:40]!r}, layer {layer[:40]!r}")

    async def learning(call: Call) -> Answer:
        """The students of every profile."""
        found = await asyncio.to_thread(shelves_of, console.known_profiles())
        return console.show(call, "learning.html", here="/learning", shelves=found)

    async def student(call: Call) -> Answer:
        """A student: how good it was on held-out questions."""
        profile, layer, digest = (call.params[name] for name in ("profile", "layer", "digest"))
        await asyncio.to_thread(check_known, profile, layer)
        model = next((one for one in candidates(profile, layer) if one.digest == digest), None)
        if model is None:
            raise Refused(404, "not_found_error", f"no model {digest[:40]!r} of {profile}/{layer}")
        named = SHIPPED if model.shipped else digest
        drawn = await asyncio.to_thread(pictures_of, profile, layer, named, config)
        texts = {code: tell_metric(code, value) for code, value in model.summary.metrics.items()}
        headline = []
        if drawn:
            headline = [
                ("accuracy on held-out questions", share(drawn.accuracy)),
                ("held-out questions", count(drawn.rows)),
            ]
        shown = [code for code in ("held_coverage_at_98", "held_ece", "rows") if code in texts]
        values: dict[str, Any] = {
            "profile": profile,
            "layer": layer,
            "model": model,
            "drawn": drawn,
            "headline": headline + [(METRICS[code].lower(), texts[code]) for code in shown],
            "metrics": [(METRICS.get(code, code), code, text) for code, text in texts.items()],
        }
        return console.show(call, "student.html", here="/learning", **values)

    async def examine(call: Call) -> Answer:
        """Compare a student with the serving one; with `serve`, let it serve if it passes."""
        from turnout.learn.promote import promote

        profile, layer, digest = (call.params[name] for name in ("profile", "layer", "digest"))
        await asyncio.to_thread(check_known, profile, layer)
        only_compares = read_form(call).get("serve") != "1"
        embedder = await asyncio.to_thread(open_embedder, config, local=True)
        compare = partial(promote, profile, layer=layer, digest=digest, config=config, embedder=embedder)
        try:
            found = await asyncio.to_thread(compare, check=only_compares, who=call.caller.key_id or "console")
        except LearnError as error:
            return page("error_part.html", 422, said=str(error), signs_in=False)
        if found.promoted:
            await console.server.reload()
        return page("promotion_part.html", found=found)

    async def go_back(call: Call) -> Answer:
        """Let the student before serve again."""
        profile, layer = call.params["profile"], call.params["layer"]
        await asyncio.to_thread(check_known, profile, layer)
        await in_thread(partial(rollback, profile, layer, who=call.caller.key_id or "console"))
        await console.server.reload()
        return go_to("/learning")

    async def queue(call: Call) -> Answer:
        """The questions whose labels would help most."""
        profile = call.options.get("profile") or console.runtime.profile
        call.check_profile(profile)
        routes = (await call.router(profile)).profile.routes
        found = await asyncio.to_thread(most_useful, console.records(call), profile)
        names = console.known_profiles()
        return console.show(
            call, "label.html", here="/label", profile=profile, profiles=names, routes=routes, rows=found
        )

    async def label(call: Call) -> Answer:
        """Say which route a question should have had."""
        form = read_form(call)
        records = console.records(call)

        def judge() -> Logged:
            found = records.get(call.params["id"])
            route = form.get("route", "")
            verdict: Any = "right" if route == found.route else "wrong"
            records.judge(found.id, verdict, should_be=route, by=call.caller.key_id or "console")
            return found

        return page("labelled_part.html", row=await in_thread(judge), route=form.get("route", ""))

    return [
        Route("GET", "/learning", "admin", learning, is_page=True),
        Route("GET", "/learning/{profile}/{layer}/{digest}", "admin", student, is_page=True),
        Route("POST", "/learning/{profile}/{layer}/{digest}", "admin", examine, is_page=True, is_batch=True),
        Route("POST", "/learning/{profile}/{layer}", "admin", go_back, is_page=True),
        Route("GET", "/label", "feedback:write", queue, is_page=True),
        Route("POST", "/label/{id}", "feedback:write", label, is_page=True),
    ]
