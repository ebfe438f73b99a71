"""Acts on a decided question: runs its plan, may have a model write the answer, and settles the account.

However it ends, also when the client disconnects, the log's row has what is known by then: which sources answered, and
which were fallbacks for which.
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
from .run import FinishedPart, Judge, prepare, run_all
from .wording import Wording
from .write import WrittenSentence, cite, start_writing, write

# The specification's lifetime of a cached written answer.
FUSION_S = 1800.0
_sentences = msgspec.json.Decoder(list[WrittenSentence])


class Act:
    """One question in progress."""

    def __init__(self, plan: Plan, account: Account, models: Models, desk: Desk, results: Cache) -> None:
        self.plan = plan
        self.account = account
        self.models = models
        self.desk = desk
        self.results = results
        self.tenant = account.decision.query.tenant or ""

    async def events(self, judge: Judge) -> AsyncGenerator[Event, None]:
        """The events of the question, ending with its SearchResult."""
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        asks = Wording(self.models, self.account).asks
        runs = prepare(self.plan, self.desk, queue.put_nowait, tenant=self.tenant, asks=asks)
        running = asyncio.ensure_future(run_all(runs, judge))
        running.add_done_callback(lambda _: queue.put_nowait(None))
        ended: Ended = "failed"
        result: SearchResult | None = None
        try:
            while (event := await queue.get()) is not None:
                yield event
            finished = running.result()
            parts, text, cited = [one.result for one in finished], "", []
            async with aclosing(self._write(finished)) as written:
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

    async def _write(self, finished: Sequence[FinishedPart]) -> AsyncGenerator[Event, None]:
        """The answer that a model writes from the sections, if one does: its sentences, its citations, and the notes
        after it. It is cached for the same question and sections."""
        parts = [one.result for one in finished]
        if not _is_written(parts):
            return
        sections = [FusedSection(one.source, cut(one.text), one.passages) for part in finished for one in part.sections]
        question = self.plan.standalone or self.plan.question
        key = ("fusion", question, *(text for one in sections for text in (one.source, one.text)))
        cached = await self.results.get(self.tenant, key)
        sentences: list[WrittenSentence] = [] if cached is None else _sentences.decode(cached)
        for sentence in sentences:
            yield Token(sentence.text)
        ended = "answered"
        if cached is None and (stream := start_writing(question, sections, self.account, self.models)) is not None:
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
        """Note for the log how the question ended; `left` are the decisions of unfinished parts."""
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
    """Whether a model may write the answer: there are several sections, and no part is a condition."""
    return sum(len(part.sources) for part in parts) > 1 and all(part.role != "condition" for part in parts)


def _rest(plan: Plan, parts: Sequence[PartResult], cited: Sequence[Citation], *, is_whole: bool) -> str:
    """The text after a written answer: its citations and the sources missing from it; if it broke off, what the
    sources say."""
    if not is_whole:
        return f"\n\n(The answer broke off here. What the sources say:)\n\n{tell_all(parts)}"
    legend = "\n".join(tell_citation(one) for one in cited)
    return "".join(f"\n\n{text}" for text in (legend, tell_rest(plan, parts)) if text)
