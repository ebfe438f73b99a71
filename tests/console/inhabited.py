"""A console with something on every page: decisions, a claim, notes, documentation, students, a model that answers.

Whatever a stranger could have written has `words`: questions, notes, files' names, a card's fields, a model's answer.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from apps.claims.chatting import card
from clean_environment import clear_environment
from secured_server import PEPPER, call
from serving import RunningServer, serving
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
# Of one field that has all the words, of a passage of a source, and of a question that is shown in full.
CHARACTERS, PASSAGE, EXCERPT = 16_000, 300, 360
# Pages that are there whatever was decided.
PAGES = (
    "/", "/playground", "/decisions", "/ask", "/chat", "/study", "/docs", "/traffic?span=hour", "/learning", "/label",
    "/models", "/profiles", "/profiles/tiers", "/keys", "/settings",
)  # fmt: skip


class InhabitedServer(NamedTuple):
    served: RunningServer
    provider: ScriptedProvider
    decisions: list[str]
    """Ids, the oldest first."""
    student: str
    """The page of one that serves."""
    profiles: tuple[str, ...] = ()
    """Files of the profiles that are offered beside those that ship: one for each word, which is in its name."""

    @property
    def pages(self) -> list[str]:
        text = "Prove+it+step+by+step&profile=tiers"
        return [*PAGES, self.student, f"/decisions/{self.decisions[-1]}", f"/playground?text={text}"]


def gather(words: Sequence[str], most: int) -> list[list[str]]:
    """Words together, as many as make so many characters; a longer one alone."""
    found: list[list[str]] = []
    for word in words:
        if not found or sum(map(len, found[-1])) + len(found[-1]) + len(word) > most:
            found.append([])
        found[-1].append(word)
    return found


def file_name(word: str) -> str:
    """What of a word a file may be called."""
    return "".join(sign for sign in word if sign.isprintable() and sign != "/")[:80].strip()


def flood(words: Sequence[str] = ()) -> Card:
    said = " ".join(("Said at length.", *words))[:CHARACTERS]
    made = card(
        "flood", "A global flood covered the entire Earth.", ClaimType.HISTORICAL, ClaimVerdict.FALSE,
        f"No global flood ever covered the Earth. {said}", [f"Many tell flood stories. {one}" for one in words],
    )  # fmt: skip
    sources = [CardSource(f"A handbook {one}", url=f"https://example.org/{one}", quote_text=one) for one in words]
    return msgspec.structs.replace(
        made,
        deep_answer=said,
        claimant=said,
        confidence_explanation=said,
        why_persists=made.why_persists or ("People like it.",),
        limitations=[f"Not known: {one}" for one in words] or ("None.",),
        sources=sources or made.sources,
    )


@contextmanager
def inhabited(folder: Path, *, words: Sequence[str] = (), questions: Sequence[str] = ()) -> Iterator[InhabitedServer]:
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        clear_environment(patch, folder)
        patch.setenv("TURNOUT_PEPPER", PEPPER)
        provider = stack.enter_context(ScriptedProvider.in_thread())
        provider.default = ScriptedReply("\n".join((WRITTEN, *words)))
        config = folder / "turnout.toml"
        config.write_text(_settings(folder, provider, words), encoding="utf-8")
        where = ["--db", str(folder / "turnout.db"), "--config", str(config)]
        cards = folder / "cards.jsonl"
        cards.write_bytes(msgspec.json.encode(flood(words)) + b"\n")
        _run("claims", "import", str(cards), *where)
        docs = folder / "docs"
        docs.mkdir()
        told = "\n\n".join(("A request is retried three times.", *words))
        (docs / "client.md").write_text(f"# Client {' '.join(words)[:CHARACTERS]}\n\n{told}\n", "utf-8")
        _run("assist", "ingest", str(docs), "--library", "client", "--version", "1.0", *where[2:])
        digest = _promote(folder)
        profiles = tuple(_offer(folder, words))
        served = stack.enter_context(serving(folder, config.read_text(encoding="utf-8"), pages=Console))
        decided = list(_decide(served, words, questions, profiles[:1]))
        yield InhabitedServer(served, provider, decided, f"/learning/assist/student/{digest}", profiles)


def _run(*command: str) -> None:
    """In a thread: where a browser is driven there is an event loop already."""
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(main, list(command)).result() == 0, command


def _settings(folder: Path, provider: ScriptedProvider, words: Sequence[str]) -> str:
    notes = folder / "notes"
    notes.mkdir()
    (notes / "roof.md").write_text("# Roof\n\nThe roof was mended in June by a roofer.\n", "utf-8")
    for number, some in enumerate(gather(words, PASSAGE) or [[""]]):
        text = f"# Boiler zq{number}\n\nThe boiler zq{number} was serviced in May. {' '.join(some)}\n"
        (notes / f"boiler zq{number} {file_name(some[0])}.md").write_text(text, "utf-8")
    slots = "".join(
        f'[models.{tier}]\nmodel = "fake/{tier}"\nbase_url = "{provider.base_url}"\nprivate = true\n' for tier in TIERS
    )
    offered = f"profiles = {json.dumps(_offered(folder, words))}"
    return (
        f'[server]\nlag_s = 60.0\nwait_s = 5.0\ndrain_s = 1.0\n{offered}\n[sources.files]\nfolder = "{notes}"\n{slots}'
    )


def _offered(folder: Path, words: Sequence[str]) -> list[str]:
    return [str(folder / "profiles" / f"{number} {file_name(word)}.toml") for number, word in enumerate(words)]


def _offer(folder: Path, words: Sequence[str]) -> Iterator[str]:
    """Profiles whose files are called like the words; in the first, each is the reason of a signal, too."""
    (folder / "profiles").mkdir()
    signals = "".join(
        f'[[layers.signals]]\nid = "w{number}"\nweight = {1 / len(words)}\nwords = ["zw{number}"]\n'
        f"levels = [{{ at_least = 1, score = 1.0, label = {json.dumps(word)} }}]\n"
        for number, word in enumerate(words)
    )
    told = json.dumps(" ".join(words)[:CHARACTERS])
    whole = (
        'name = "words"\nroutes = ["A", "B"]\nfallback = { route = "A", confidence = 0.5 }\n'
        '[[layers]]\nid = "signals"\nkind = "signals.v1"\naccept = { confidence = 0.0 }\n'
        'bands = { edges = [0.5], routes = ["A", "B"], steepness = 12.0 }\n'
        f'{signals}[policy.A]\nmodel = "simple"\n[policy.B]\nmodel = "medium"\ninstruction = {told}\n'
    )
    for number, place in enumerate(_offered(folder, words)):
        text = f'extends = "tiers"\nname = "w{number}"\n' if number else whole
        Path(place).write_text(text, encoding="utf-8")
        yield place


def _promote(folder: Path) -> str:
    """The student that ships, on the shelf: it serves, and there is one to go back to."""
    shipped = shipped_model("assist", "student")
    assert shipped is not None
    copied = folder / "student"
    shutil.copytree(shipped, copied)
    digest = put(copied, "assist", "student").name
    set_champion("assist", "student", digest, who="ana", why="better")
    return digest


def _decide(
    served: RunningServer, words: Sequence[str], questions: Sequence[str], profile: Sequence[str]
) -> Iterator[str]:
    asked = [(text, "tiers", "s") for text in questions]
    asked += [("hello there", "tiers", "s"), ("Will it rain tomorrow?", "sources", "s"), (PROOF, "tiers", "s")]
    asked += [(" ".join(f"zw{number}" for number in range(len(words))), one, "s") for one in profile]
    asked += [("\n".join(some), "tiers", some[0][:200]) for some in gather(words, EXCERPT)]
    for text, name, session in asked:
        got = call(served.url, "POST", "/v1/route", {"text": text, "profile": name, "session": session})
        assert got.status == 200, got
        yield got.json["id"]
    assert served.store.flush(10.0)
