"""Decisions: a live list with filters, and each decision in full, with the judgements of people."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlencode

from turnout.apps.app import Answer, Call, Route
from turnout.apps.request import invalid
from turnout.core.decision import id_ms
from turnout.core.errors import Refused, StoreError, StoreUnavailable, UnknownDecision
from turnout.core.query import Query
from turnout.explain.explanation import HOW, WHO, explain, explain_logged
from turnout.runtime.effect import recorded_answers
from turnout.store.judge import judge, routes_of
from turnout.store.listing import LAST
from turnout.store.records import JUDGEMENTS, LogFilter, Logged, Records
from turnout.store.row import now_ms
from turnout.store.stats import FOREVER_MS, TimeSpan

from .live import KEY_VIEWERS, MOST_VIEWERS, TENANT_VIEWERS, LiveBody, LiveTail, Viewer, write_event
from .page import EVENT_STREAM, go_to, in_thread, read_form, templates, wants_part
from .picture import draw

if TYPE_CHECKING:
    from .console import Console

# Rows of one page of the list.
ROWS = 50
# The most rows sent to a page that connects again; older ones are on the next page.
CAUGHT_UP = 200
# Characters of a note on a decision.
NOTE_CHARACTERS = 2000
SPANS = {"hour": 3_600_000, "day": 86_400_000, "week": 7 * 86_400_000, "month": 30 * 86_400_000}
FIELDS = ("profile", "route", "by", "outcome", "session", "key", "verdict", "text", "span", "since", "until", "tenant")


class FilterForm(NamedTuple):
    """The fields of the form, and the filter they make."""

    said: Mapping[str, str]
    wanted: LogFilter

    @property
    def is_live(self) -> bool:
        """Whether new decisions can match it."""
        return self.wanted.span.until_ms == FOREVER_MS and self.wanted.verdict is None

    def place(self, path: str = "/decisions", **more: str) -> str:
        asked = {name: value for name, value in self.said.items() if value} | more
        return f"{path}?{urlencode(asked)}" if asked else path


def read_filter(options: Mapping[str, str], at_ms: int) -> FilterForm:
    """The filter of the form; raises Refused for an invalid one."""
    said = {name: options.get(name, "").strip()[:200] for name in FIELDS}
    letters = said["outcome"]
    if letters and not (len(letters) <= 2 and letters[0] in (*WHO, "?") and letters[1:] in ("", *HOW, "?")):
        raise invalid(f"outcome {letters[:20]!r}: two letters, who ({' '.join(WHO)}) and how ({' '.join(HOW)})")
    verdict = said["verdict"]
    if verdict and verdict not in JUDGEMENTS:
        raise invalid(f"verdict {verdict[:20]!r}: {' or '.join(JUDGEMENTS)}")
    since = _moment(said["since"]) if said["since"] else 0
    if said["span"]:
        if said["span"] not in SPANS:
            raise invalid(f"span {said['span'][:20]!r}: {', '.join(SPANS)}")
        since = max(since, at_ms - SPANS[said["span"]])
    span = TimeSpan(since, _moment(said["until"]) if said["until"] else FOREVER_MS)
    wanted = LogFilter(
        span,
        profile=said["profile"] or None,
        by=said["by"] or None,
        route=said["route"] or None,
        outcome=letters or None,
        session=said["session"] or None,
        contains=said["text"] or None,
        key=said["key"] or None,
        verdict=next((one for one in JUDGEMENTS if one == verdict), None),
    )
    return FilterForm(said, wanted)


def _moment(text: str) -> int:
    """Milliseconds since 1970 of a time such as `2026-11-04T10:00`, in UTC unless it names a zone."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise invalid(f"{text[:40]!r} is not a time: write it as 2026-11-04T10:00, in UTC") from None
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)


def decisions_routes(console: Console) -> Sequence[Route]:
    page = DecisionPages(console)
    return [
        Route("GET", "/decisions", "decisions:read", page.show_list, is_page=True),
        Route("GET", "/decisions/live", "decisions:read", page.follow, is_page=True),
        Route("GET", "/decisions/{id}", "decisions:read", page.show_one, is_page=True),
        Route("GET", "/decisions/{id}/again", "route", page.decide_again, is_page=True),
        Route("POST", "/decisions/{id}/correct", "feedback:write", page.correct, is_page=True),
    ]


class DecisionPages:
    def __init__(self, console: Console) -> None:
        self.console = console
        self.tails: dict[str, LiveTail] = {}
        """By tenant."""

    # --- the list

    async def show_list(self, call: Call) -> Answer:
        """Decisions that were made, by any filter."""
        filled = read_filter(call.options, now_ms())
        below = call.options.get("below", "")[:40]
        records = self.console.records(call)
        found = await asyncio.to_thread(records.page, filled.wanted, below=below or LAST, most=ROWS)
        values: dict[str, Any] = {
            "rows": found.rows,
            "filled": filled,
            "live": filled.is_live and not below,
            "last": found.rows[0].id if found.rows else "",
            "older": filled.place(below=found.below) if found.below else "",
            "below": below,
            "whose": whose,
            "api": self.console.api_url(call),
            "may_name": "admin" in call.caller.scopes,
            # A text is searched for in a limited number of rows at a time: the page says how far back.
            "looked_ms": id_ms(found.below) if found.below and filled.wanted.contains else None,
        }
        if wants_part(call.headers) and call.headers.get("hx-target") == "list":
            return self.console.show(call, "decisions_part.html", here="/decisions", **values)
        kinds = await asyncio.to_thread(records.kinds)
        known = {
            "profiles": sorted({kind.profile for kind in kinds}),
            "routes": sorted({route for kind in kinds for route in kind.routes}),
            "layers": sorted({kind.by for kind in kinds}),
            "outcomes": sorted({kind.outcome for kind in kinds}),
            "keys": sorted({kind.key_id for kind in kinds if kind.key_id}),
        }
        return self.console.show(call, "decisions.html", here="/decisions", known=known, spans=SPANS, **values)

    async def follow(self, call: Call) -> Answer:
        """Decisions as they are logged."""
        filled = read_filter(call.options, now_ms())
        after = (call.headers.get("last-event-id") or call.options.get("after", ""))[:40]
        records = self.console.records(call)
        self.tails = {tenant: tail for tenant, tail in self.tails.items() if tail.viewers}
        own = self.tails.get(records.tenant)
        all_of_them = sum(len(tail.viewers) for tail in self.tails.values())
        if all_of_them >= MOST_VIEWERS or (own is not None and len(own.viewers) >= TENANT_VIEWERS):
            raise Refused(503, "overloaded_error", "too many pages follow the log already: close one", retry_after_s=30)
        key_id = call.caller.key_id
        if key_id and own is not None and own.count(key_id) >= KEY_VIEWERS:
            many = f"{KEY_VIEWERS} pages follow the log with this key, as many as may: close one"
            raise Refused(503, "overloaded_error", many, retry_after_s=30)
        tail = self.tails.setdefault(records.tenant, LiveTail(lambda: records, render_rows))
        viewer = Viewer(filled.wanted, key_id)
        tail.enter(viewer)
        first = b""
        if after:
            missed = await asyncio.to_thread(records.page, filled.wanted, above=after, most=CAUGHT_UP)
            if missed.rows:
                first = write_event("row", render_rows(list(missed.rows)), missed.rows[0].id)
        return Answer(200, EVENT_STREAM, LiveBody(tail, viewer, first))

    # --- one of them

    async def show_one(self, call: Call) -> Answer:
        """A decision in full."""
        return await self._show(call, "decision.html")

    async def _show(self, call: Call, template: str, said: str = "") -> Answer:
        row, records = await self._find(call)

        def look() -> dict[str, Any]:
            decision = explain_logged(row, records.profile(row.profile_hash), records.patterns(row.profile_hash))
            ids = (row.id, *(part.id for part in decision.parts))
            return {
                "picture": draw(decision),
                "happened": records.outcome(row.id),
                "words": records.feedback(row.id),
                "breaches": [breach for ident in ids for breach in records.breaches(decision=ident)],
                "routes": routes_of(records, row),
                "profiles": self._profiles(call),
            }

        found = await asyncio.to_thread(look)
        return self.console.show(call, template, here="/decisions", row=row, said=said, whose=whose(row), **found)

    async def _find(self, call: Call) -> tuple[Logged, Records]:
        """The decision, and the log that has it."""
        records = self.console.records(call)
        try:
            row = await asyncio.to_thread(records.get, call.params["id"])
        except UnknownDecision as error:
            raise Refused(404, "not_found_error", str(error)) from None
        except StoreUnavailable:
            raise
        except StoreError as error:
            raise invalid(str(error)) from None
        return row, records

    def _profiles(self, call: Call) -> list[str]:
        names = self.console.profile_names()
        return [name for name in names if call.caller.profiles is None or name in call.caller.profiles]

    async def decide_again(self, call: Call) -> Answer:
        """Decide the question again with a current profile; network layers answer as they did then."""
        row, _ = await self._find(call)
        if row.question is None or row.kept != "full":
            raise invalid("the text of this question was not kept: it cannot be decided again")
        router = await call.router(call.options.get("profile") or row.profile)
        query = row.asked or Query(row.question)

        picture = await in_thread(lambda: draw(explain(router.route_recorded(query, recorded_answers(row)))))
        same = router.profile.hash == row.profile_hash
        return self.console.show(call, "again_part.html", here="/decisions", row=row, picture=picture, same=same)

    async def correct(self, call: Call) -> Answer:
        """Say what a decision should have been."""
        row, records = await self._find(call)
        form = read_form(call)
        word, note = form.get("word", ""), form.get("note", "")[:NOTE_CHARACTERS]
        by = call.caller.key_id or "console"
        await in_thread(lambda: judge(records, row, word, routes_of(records, row), by=by, note=note))
        if not wants_part(call.headers):
            return go_to(f"/decisions/{quote(row.id)}{whose(row)}")
        return await self._show(call, "words_part.html", said="Noted: it is a training example now.")


def whose(row: Logged) -> str:
    """The tenant of a decision, for the end of a link to it. Callers without the right to it see their own log."""
    return f"?{urlencode({'tenant': row.tenant})}" if row.tenant else ""


def render_rows(rows: list[Logged]) -> str:
    made = templates().get_template("decision_rows.html")
    return made.render(rows=rows, arrived=True, whose=whose)
