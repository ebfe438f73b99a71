"""Doubles for audits: a model that answers as the five agents do, and a web of pages that are only said to be there.

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

# An address of the public web, for the guard to look at; nothing is sent there.
PUBLIC = "93.184.215.14"
_CLAIM = re.compile(r"the claim as it was put:\n(=+ \w+ =+)\n(.*?)\n\1", re.DOTALL)
_SHOWN = re.compile(r"(?m)^(https?://\S+):\n(=+ \w+ =+)\n(.*?)\n\2", re.DOTALL)

Answer = Mapping[str, Any] | str | ScriptedReply
MakesAnswer = Callable[[str, str], Answer]
"""From the claim and all that the agent was told."""


def good_answer(agent: str, claim: str, told: str) -> dict[str, Any]:
    """What an agent that does its work answers; as sources, the first line of each page it was shown."""
    match agent:
        case "topic_finder":
            found: dict[str, Any] = {
                "claim_text": claim,
                "claimant": "widely repeated",
                "why_matters": "It is repeated.",
            }
            return found | {"claim_type_category": "historical", "category_tags": ["test"]}
        case "source_checker":
            shown = [(one[0], one[2].split("\n")) for one in _SHOWN.findall(told)]
            pages = [{"citation": lines[0] or url, "url": url, "quote_text": lines[-1]} for url, lines in shown]
            sources = pages or [{"citation": "A. Author, A Book, 1999", "url": "", "quote_text": ""}]
            return {
                "primary_sources": [],
                "scholarly_sources": sources,
                "evidence_summary": "Mixed.",
                "next_search": "",
            }
        case "adversarial_checker":
            judged = {"verdict": "Misleading", "confidence_level": "Medium", "confidence_explanation": "Few sources."}
            return judged | {"techniques": [], "counterevidence": "Some.", "verification_notes": "One was verified."}
        case "writing_agent":
            written: dict[str, Any] = {"verdict": "Misleading", "short_answer": "Partly.", "deep_answer": "At length."}
            return written | {"why_persists": ["It is a good story."]}
        case _:
            closing = {"audit_summary": "Five agents.", "limitations": ["Few sources."]}
            return closing | {"change_verdict_if": "A record were found."}


class AgentScript:
    """Answers for a `ScriptedProvider`: those that are given, by agent, and good ones for the rest. One that is a list
    is used up, but for its last."""

    def __init__(
        self, answers: Mapping[str, Answer | MakesAnswer | list[Answer]] | None = None, delay_s: float = 0.0
    ) -> None:
        self.answers = dict(answers or {})
        self.delay_s = delay_s
        self.asked: list[str] = []
        """Which agents were asked, in their order."""
        self._prompts = {agents()[name].prompt.strip()[:60]: name for name in AGENTS}

    def __call__(self, received: Received) -> ScriptedReply:
        messages = received.body["messages"]
        told = "\n\n".join(str(one["content"]) for one in messages)
        agent = self._prompts[told[:60]]
        self.asked.append(agent)
        found = _CLAIM.search(told)
        claim = found[2] if found else ""
        given = self.answers.get(agent)
        if isinstance(given, list):
            given = given.pop(0) if len(given) > 1 else given[0]
        if callable(given):
            given = given(claim, told)
        if isinstance(given, ScriptedReply):
            return given
        said = good_answer(agent, claim, told) if given is None else given
        text = said if isinstance(said, str) else msgspec.json.encode(said).decode()
        return ScriptedReply(text, usage=(100, 50), delay_s=self.delay_s)


class PageTransport:
    """The public web as a table: what is at each address. The guard is asked as for a real connection, and an address
    that is not there answers 404."""

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
        found = self.pages.get(url, ScriptedReply(status=404, body=b"not here"))
        if not isinstance(found, ScriptedReply):
            body = found.encode() if isinstance(found, str) else found
            found = ScriptedReply(body=body, headers={"content-type": "text/html; charset=utf-8"})
        return ScriptedExchange(found, origin.host)

    async def open_socket(self, request: Request, egress: Egress, wait_s: float) -> WebSocket:
        return await ScriptedTransport().open_socket(request, egress, wait_s)

    async def close(self) -> None:
        """Nothing is open."""
