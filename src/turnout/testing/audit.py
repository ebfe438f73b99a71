"""Doubles for audits: a model that answers like the five agents, and a web made of a table of pages.

>>> from turnout.testing import ScriptedProvider
>>> from turnout.testing.audit import AgentScript
>>> with ScriptedProvider.in_thread(AgentScript()) as provider:
...     provider.base_url.startswith("http://127.0.0.1:")
True
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from turnout.apps.claims.agent import AGENTS, agents
from turnout.net.client import WebSocket
from turnout.net.egress import Egress
from turnout.net.transport import Request

from .reply import Received, ScriptedReply
from .transport import ScriptedExchange, ScriptedTransport

# A public address for the egress guard to check; nothing is sent there.
PUBLIC = "93.184.215.14"
_CLAIM = re.compile(r"the claim as it was put:\n(=+ \w+ =+)\n(.*?)\n\1", re.DOTALL)
_SHOWN = re.compile(r"(?m)^(https?://\S+):\n(=+ \w+ =+)\n(.*?)\n\2", re.DOTALL)

Answer = Mapping[str, Any] | str | ScriptedReply
MakesAnswer = Callable[[str, str], Answer]
"""Makes an answer from the claim and the agent's whole prompt."""


def good_answer(agent: str, claim: str, prompt: str) -> dict[str, Any]:
    """A correct answer of an agent; its sources quote the last line of each page in the prompt."""
    match agent:
        case "topic_finder":
            return {
                "claim_text": claim,
                "claimant": "widely repeated",
                "why_matters": "It is repeated.",
                "claim_type_category": "historical",
                "category_tags": ["test"],
            }
        case "source_checker":
            shown = [(url, page.split("\n")) for url, _, page in _SHOWN.findall(prompt)]
            pages = [{"citation": lines[0] or url, "url": url, "quote_text": lines[-1]} for url, lines in shown]
            return {
                "primary_sources": [],
                "scholarly_sources": pages or [{"citation": "A. Author, A Book, 1999", "url": "", "quote_text": ""}],
                "evidence_summary": "Mixed.",
                "next_search": "",
            }
        case "adversarial_checker":
            return {
                "verdict": "Misleading",
                "confidence_level": "Medium",
                "confidence_explanation": "Few sources.",
                "techniques": [],
                "counterevidence": "Some.",
                "verification_notes": "One was verified.",
            }
        case "writing_agent":
            return {
                "verdict": "Misleading",
                "short_answer": "Partly.",
                "deep_answer": "At length.",
                "why_persists": ["It is a good story."],
            }
        case _:
            return {
                "audit_summary": "Five agents.",
                "limitations": ["Few sources."],
                "change_verdict_if": "A record were found.",
            }


class AgentScript:
    """Answers for a `ScriptedProvider`: the given ones, by agent, and good ones for the others. The entries of a list
    are used in order; its last one repeats."""

    def __init__(
        self, answers: Mapping[str, Answer | MakesAnswer | list[Answer]] | None = None, delay_s: float = 0.0
    ) -> None:
        self.answers = dict(answers or {})
        self.delay_s = delay_s
        self.asked: list[str] = []
        """The agents that were asked, in order."""
        self._prompts = {agents()[name].prompt.strip()[:60]: name for name in AGENTS}

    def __call__(self, received: Received) -> ScriptedReply:
        prompt = "\n\n".join(str(message["content"]) for message in received.body["messages"])
        agent = self._prompts[prompt[:60]]
        self.asked.append(agent)
        found = _CLAIM.search(prompt)
        claim = found[2] if found else ""
        answer = self.answers.get(agent)
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        if callable(answer):
            answer = answer(claim, prompt)
        if isinstance(answer, ScriptedReply):
            return answer
        if answer is None:
            answer = good_answer(agent, claim, prompt)
        text = answer if isinstance(answer, str) else msgspec.json.encode(answer).decode()
        return ScriptedReply(text, usage=(100, 50), delay_s=self.delay_s)


class PageTransport:
    """The public web as a table of pages by address. The egress guard is asked as for a real connection; an unknown
    address answers 404."""

    def __init__(self, pages: Mapping[str, str | bytes | ScriptedReply], delay_s: float = 0.0) -> None:
        self.pages = dict(pages)
        self.delay_s = delay_s
        self.fetched: list[str] = []

    async def send(self, request: Request, egress: Egress, wait_s: float) -> ScriptedExchange:
        origin = request.origin
        egress.admits(origin.host, origin.port, PUBLIC)
        url = f"{origin.scheme}://{origin.host}{request.path}"
        self.fetched.append(url)
        await asyncio.sleep(self.delay_s)
        page = self.pages.get(url, ScriptedReply(status=404, body=b"not here"))
        if not isinstance(page, ScriptedReply):
            body = page.encode() if isinstance(page, str) else page
            page = ScriptedReply(body=body, headers={"content-type": "text/html; charset=utf-8"})
        return ScriptedExchange(page, origin.host)

    async def open_socket(self, request: Request, egress: Egress, wait_s: float) -> WebSocket:
        return await ScriptedTransport().open_socket(request, egress, wait_s)

    async def close(self) -> None:
        """Nothing is open."""
