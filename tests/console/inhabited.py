"""A console with something on every page: decisions, a claim, notes, documentation, students, a model that answers.

Whatever a stranger could have written is `word`: a question, a note, a file's name, a card's fields, a model's words.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from apps.claims.chatting import card
from besieged import PEPPER, call
from serving import Served, serving
from surroundings import clear_surroundings
from turnout.apps.claims.card import Card, CardSource, ClaimType, ClaimVerdict
from turnout.cli import main
from turnout.config.champion import shipped_model
from turnout.console.console import Console
from turnout.learn.registry import put, set_champion
from turnout.testing import ScriptedProvider
from turnout.testing.reply import ScriptedReply

PROOF = "Prove the theorem formally, step by step"
CLAIM = "Did a global flood cover the entire Earth?"
NOTED = "When was the boiler serviced and when was the roof mended?"
WRITTEN = "The boiler was serviced in May [1]. The roof was mended in June [2]."
TIERS = ("simple", "medium", "complex", "reasoning", "main", "conversational")
# Pages that are there whatever was decided.
PAGES = (
    "/", "/playground", "/decisions", "/ask", "/chat", "/study", "/docs", "/traffic?span=hour", "/learning", "/label",
    "/models", "/profiles", "/profiles/tiers", "/keys",
)  # fmt: skip


class Inhabited(NamedTuple):
    served: Served
    provider: ScriptedProvider
    decisions: list[str]
    """Ids, the oldest first."""
    student: str
    """The page of one that serves."""

    @property
    def pages(self) -> list[str]:
        text = "Prove+it+step+by+step&profile=tiers"
        return [*PAGES, self.student, f"/decisions/{self.decisions[-1]}", f"/playground?text={text}"]


def flood(word: str = "") -> Card:
    made = card(
        "flood", f"A global flood covered the entire Earth. {word}", ClaimType.HISTORICAL, ClaimVerdict.FALSE,
        f"No global flood ever covered the Earth. {word}", [f"Many cultures tell flood stories. {word}"],
    )  # fmt: skip
    said = f"Said at length. {word}"
    source = CardSource(f"A handbook {word}", url=f"https://example.org/{word}", quote_text=said)
    return msgspec.structs.replace(
        made, sources=(source,), claimant=said, confidence_explanation=said, limitations=(said,), deep_answer=said
    )


@contextmanager
def inhabited(folder: Path, *, word: str = "", questions: tuple[str, ...] = ()) -> Iterator[Inhabited]:
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        clear_surroundings(patch, folder)
        patch.setenv("TURNOUT_PEPPER", PEPPER)
        provider = stack.enter_context(ScriptedProvider.in_thread())
        provider.default = ScriptedReply(f"{WRITTEN} {word}")
        config = folder / "turnout.toml"
        config.write_text(_settings(folder, provider, word), encoding="utf-8")
        where = ["--db", str(folder / "turnout.db"), "--config", str(config)]
        cards = folder / "cards.jsonl"
        cards.write_bytes(msgspec.json.encode(flood(word)) + b"\n")
        _run("claims", "import", str(cards), *where)
        docs = folder / "docs"
        docs.mkdir()
        (docs / "client.md").write_text(f"# Client {word}\n\nA request is retried three times {word}.\n", "utf-8")
        _run("assist", "ingest", str(docs), "--library", "client", "--version", "1.0", *where[2:])
        digest = _promote(folder)
        served = stack.enter_context(serving(folder, config.read_text(encoding="utf-8"), pages=Console))
        yield Inhabited(served, provider, list(_decide(served, word, questions)), f"/learning/assist/student/{digest}")


def _run(*command: str) -> None:
    """In a thread: where a browser is driven there is an event loop already."""
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(main, list(command)).result() == 0, command


def _settings(folder: Path, provider: ScriptedProvider, word: str) -> str:
    notes = folder / "notes"
    notes.mkdir()
    name = "".join(one for one in word if one not in "/\0")[:80].strip(". ")
    (notes / f"boiler {name}.md").write_text(f"# Boiler {word}\n\nThe boiler was serviced in May. {word}\n", "utf-8")
    (notes / "roof.md").write_text(f"# Roof\n\nThe roof was mended in June by a roofer. {word}\n", "utf-8")
    slots = "".join(
        f'[models.{tier}]\nmodel = "fake/{tier}"\nbase_url = "{provider.base_url}"\nprivate = true\n' for tier in TIERS
    )
    return f'[server]\nlag_s = 60.0\nwait_s = 5.0\ndrain_s = 1.0\n[sources.files]\nfolder = "{notes}"\n{slots}'


def _promote(folder: Path) -> str:
    """The student that ships, on the shelf: it serves, and there is one to go back to."""
    shipped = shipped_model("assist", "student")
    assert shipped is not None
    copied = folder / "student"
    shutil.copytree(shipped, copied)
    digest = put(copied, "assist", "student").name
    set_champion("assist", "student", digest, who="ana", why="better")
    return digest


def _decide(served: Served, word: str, questions: tuple[str, ...]) -> Iterator[str]:
    asked = [(text, "tiers") for text in questions]
    asked += [("hello there", "tiers"), ("Will it rain tomorrow?", "sources"), (f"{PROOF} {word}", "tiers")]
    for text, profile in asked:
        got = call(served.url, "POST", "/v1/route", {"text": text, "profile": profile, "session": f"s {word}"[:100]})
        assert got.status == 200, got
        yield got.json["id"]
    assert served.store.flush(10.0)
