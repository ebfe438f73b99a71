"""A decided question acted on: its plan runs, a model may write of what came, and the account knows how it ended.

Whatever happens, a client that leaves early among it, the log's row says what is known by then: which sources answered,
and who was asked in whose place.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import msgspec
from msgspec.structs import replace

from turnout.apps.event import Citation, Event, Token
from turnout.apps.ledger import Account, Ended
from turnout.models.ask import Models

from .cache import Cache
from .desk import Desk
from .frame import tell_all, tell_citation, tell_rest
from .fusion import FusedSection, cut
from .log import note, part_outcomes, why_fallback
from .plan import Plan
from .result import PartResult, SearchResult, search_result
from .run import Judge, Ran, prepare, run_all
from .wording import Wording
from .write import WrittenSentence, cite, start_writing, write

# How long a written answer is fresh: the specification's.
FUSION_S = 1800.0
_sentences = msgspec.json.Decoder(list[WrittenSentence])


class Act:
    """One question under way."""

    def __init__(self, plan: Plan, account: Account, models: Models, desk: Desk, results: Cache) -> None:
        self.plan = plan
        self.account = account
        self.models = models
        self.desk = desk
        self.results = results
        self.tenant = account.decision.query.tenant or ""

    async def events(self, judge: Judge, bound_s: float) -> AsyncGenerator[Event, None]:
        """What happens, the result at last."""
        happened: asyncio.Queue[Event | None] = asyncio.Queue()
        asks = Wording(self.models, self.account).asks
        runs = prepare(self.plan, self.desk, happened.put_nowait, tenant=self.tenant, asks=asks, bound_s=bound_s)
        running = asyncio.ensure_future(run_all(runs, judge))
        running.add_done_callback(lambda _: happened.put_nowait(None))
        ended: Ended = "failed"
        result: SearchResult | None = None
        try:
            while (event := await happened.get()) is not None:
                yield event
            ran = running.result()
            parts, text, cited = [one.result for one in ran], "", []
            async with aclosing(self._write(ran)) as written:
                async for event in written:
                    text += event.text if isinstance(event, Token) else ""
                    cited += [event] if isinstance(event, Citation) else []
                    yield event
            result = search_result(self.plan, parts, text or tell_all(parts), cited)
            ended = "answered" if result.success else "failed"
        except (asyncio.CancelledError, GeneratorExit):
            ended = "cancelled"
            raise
        finally:
            running.cancel()
            left = [one.part.decision for one in runs if one.ended is None]
            known = result if result is not None else search_result(self.plan, [one.so_far() for one in runs], "")
            self._settle(known, ended, left)
        yield result

    async def _write(self, ran: Sequence[Ran]) -> AsyncGenerator[Event, None]:
        """What a model makes of the sections, if one does: its sentences, what their numbers stand for, and what else
        there is to say. The same sections give the same answer for a while."""
        parts = [one.result for one in ran]
        if not _is_written(parts):
            return
        sections = [FusedSection(one.source, cut(one.text), one.passages) for part in ran for one in part.sections]
        question = self.plan.standalone or self.plan.question
        key = ("fusion", question, *(text for one in sections for text in (one.source, one.text)))
        kept = await self.results.get(self.tenant, key)
        sentences: list[WrittenSentence] = [] if kept is None else _sentences.decode(kept)
        for sentence in sentences:
            yield Token(sentence.text)
        ended = "answered"
        if kept is None and (stream := start_writing(question, sections, self.account, self.models)) is not None:
            async with aclosing(write(stream, sections)) as written:
                async for sentence in written:
                    sentences.append(sentence)
                    yield Token(sentence.text)
            ended = stream.ended
            if sentences and ended == "answered":
                self.results.put(self.tenant, key, msgspec.json.encode(sentences), FUSION_S)
        if not sentences:
            return
        cited = [cite(number, sections[number - 1]) for number in sorted({n for one in sentences for n in one.cited})]
        for citation in cited:
            yield citation
        if rest := _rest(self.plan, parts, cited, is_whole=ended == "answered"):
            yield Token(rest)

    def _settle(self, result: SearchResult, ended: Ended, left: Sequence[str]) -> None:
        """How it ended, for the log; and of its parts which were left."""
        account = self.account
        used = tuple(dict.fromkeys(source for part in result.parts for source in part.sources))
        account.ended = ended
        account.sources = used
        account.fallback = next((why for part in result.parts if (why := why_fallback(part)) is not None), None)
        account.parts = [
            (part, replace(outcome, ended=ended) if part.id in left else outcome)
            for part, outcome in part_outcomes(account.decision, result)
        ]
        account.extra = note(result) if account.parts else note(result.parts[0])
        if account.parts:
            account.extra["parts"] = len(account.parts)
        if result.standalone:
            account.extra["standalone"] = result.standalone


def _is_written(parts: Sequence[PartResult]) -> bool:
    """Whether a model may put an answer in its own words: of several sections, none of which is about a condition."""
    return sum(len(part.sources) for part in parts) > 1 and all(part.role != "condition" for part in parts)


def _rest(plan: Plan, parts: Sequence[PartResult], cited: Sequence[Citation], *, is_whole: bool) -> str:
    """What a written answer is followed by: what its numbers stand for and who is missing in it; where it broke off,
    what the sources say."""
    if not is_whole:
        return f"\n\n(The answer broke off here. What the sources say:)\n\n{tell_all(parts)}"
    legend = "\n".join(tell_citation(one) for one in cited)
    return "".join(f"\n\n{text}" for text in (legend, tell_rest(plan, parts)) if text)
