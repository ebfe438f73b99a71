"""Are quotations verified, and does every audit end? The pipeline of `claims`, on claims that nobody here wrote.

Quotations: the gold evidence of FoolMeTwice's dev split, as it stands and altered by a script: a word replaced, left
out, added, moved, cut short, a number changed, a negation. The pages are served as HTML with other spaces, quotation
marks and markup than the evidence has, and read as `public web` is.

Audits: all 500 claims of AVeriTeC's dev split through the durable pipeline. The search is a server on loopback that
finds the answers which the fact-checkers wrote down, their addresses are the pages; the model is a script, which asks
what the fact-checkers asked, and for some claims answers nonsense, too late, or not at all. With stopping it is content
when two of its pages were shown, without stopping it always wants one more.

Listeners: two hundred at once, half of them before the first event.

    python benchmarks/claims_audit.py              some minutes
    python benchmarks/claims_audit.py --check      exit code 1 when a target is missed
    python benchmarks/claims_audit.py --rows 50    the first 50 claims only
    python benchmarks/claims_audit.py --kills      also kill -9 in every step (PostgreSQL, too, where it is installed)
"""

import argparse
import asyncio
import contextlib
import gzip
import html
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from rich.console import Console

from report import Table, show
from turnout.apps.caller import Budget, Caller
from turnout.apps.claims.card import Card, CardSource, missing
from turnout.apps.claims.event import ClaimCardReady, RoutingStarted
from turnout.apps.claims.pipeline import AuditFailed, AuditPipeline, open_pipeline
from turnout.apps.claims.settings import open_reach
from turnout.apps.claims.verify import PageReader, fold_quote, verify
from turnout.net.public import PublicWeb
from turnout.runtime.runtime import Runtime
from turnout.store import open_store
from turnout.testing import Reply, ScriptedProvider
from turnout.testing.audit import AgentScript, PageTransport, good_answer

ROOT = Path(__file__).parent.parent
# The targets of the project, in percent and in numbers.
GENUINE, ALTERED = 99.0, 0
# Nothing here takes an agent longer than a second: an audit that has not ended by then hangs.
HANGS_S = 120.0
AT_ONCE = 8
LISTENERS, EVENTS = 200, 40
VERDICTS = {
    "Supported": "True",
    "Refuted": "False",
    "Conflicting Evidence/Cherrypicking": "Misleading",
    "Not Enough Evidence": "Unfalsifiable",
}
ANYONE = Caller("", "", frozenset(("ask",)), Budget())
WORDS = ("river", "seven", "never", "Paris", "walked", "blue")


class Target(NamedTuple):
    name: str
    value: float
    limit: float
    most: bool = False

    @property
    def holds(self) -> bool:
        return self.value <= self.limit if self.most else self.value >= self.limit


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="The audit pipeline of claims.")
    data = os.environ.get("TURNOUT_DATA") or ROOT.parent / "shared" / "data"
    parser.add_argument("--data", type=Path, metavar="DIR", default=Path(data), help="the folder of the public sets")
    parser.add_argument("--rows", type=int, help="so many claims of AVeriTeC")
    parser.add_argument("--kills", action="store_true", help="kill -9 in every step, too")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a target is missed")
    options = parser.parse_args(arguments)
    if not (options.data / "averitec").is_dir():
        print(f"no data in {options.data}: name the folder with --data", file=sys.stderr)
        return 2
    console, targets = Console(width=110), list[Target]()
    show(console, asyncio.run(quotes(options.data / "fool_me_twice", targets)))
    show(console, asyncio.run(audits(options.data / "averitec" / "dev.jsonl.gz", options.rows, targets)))
    show(console, asyncio.run(listeners(targets)))
    if options.kills:
        targets.append(Target("kill -9 in every step: tests that fail", kills(), 0, most=True))
    rows = [
        [t.name, f"{t.value:g}", f"{'<=' if t.most else '>='} {t.limit:g}", "" if t.holds else "FAIL"] for t in targets
    ]
    show(console, Table("Targets", ["", "measured", "target", ""], rows))
    return 1 if options.check and not all(target.holds for target in targets) else 0


def read_rows(path: Path) -> list[dict[str, Any]]:
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8")
    return [json.loads(line) for line in text.split("\n") if line]


# --- quotations


def published(sentences: Sequence[Mapping[str, Any]], chance: random.Random) -> str:
    """A page as a site has it: other spaces, other quotation marks, markup within sentences."""
    paragraphs = []
    for sentence in sentences:
        text = html.escape(sentence["text"], quote=False)
        text = text.replace(' "', " “").replace('"', "”").replace("'", "’")
        words = text.split(" ")
        bold = chance.randrange(len(words))
        if "&" not in words[bold]:
            words[bold] = f"<b>{words[bold]}</b>"
        paragraphs.append(
            f"<p>{words[0]}{''.join(chance.choice((' ', '&nbsp;', chr(10))) + word for word in words[1:])}</p>"
        )
    return f"<html><head><title>A page</title></head><body>{''.join(paragraphs)}</body></html>"


def altered(quote: str, chance: random.Random) -> Iterator[tuple[str, str]]:
    """The quotation with one word that is not the source's, in seven ways."""
    words = quote.split()
    inner = chance.randrange(1, len(words) - 1)
    before, word, after = words[:inner], words[inner], words[inner + 1 :]
    other = chance.choice([one for one in WORDS if one not in words])
    yield "a word replaced", " ".join([*before, other, *after])
    yield "a word added", " ".join([*before, other, word, *after])
    yield "a word left out", " ".join([*before, *after])
    if word != after[0]:
        yield "two words exchanged", " ".join([*before, after[0], word, *after[1:]])
    yield "a negation", " ".join([*before, "not", word, *after])
    letters = [at for at, one in enumerate(words) if one.isalpha() and len(one) > 3]
    if letters:
        at = chance.choice(letters)
        yield "a word cut short", " ".join([*words[:at], words[at][:-1], *words[at + 1 :]])
    numbers = [at for at, one in enumerate(words) if one.isdigit()]
    if numbers:
        at = chance.choice(numbers)
        yield "another number", " ".join([*words[:at], str(int(words[at]) + 1), *words[at + 1 :]])


async def quotes(folder: Path, targets: list[Target]) -> Table:
    chance = random.Random(7)
    pages = {row["page"]: row["sentences"] for row in read_rows(folder / "pages_dev.jsonl.gz")}
    urls = {page: f"https://pages.example/{number}" for number, page in enumerate(pages)}
    reader = PageReader(PublicWeb(PageTransport({urls[page]: published(text, chance) for page, text in pages.items()})))
    plain = {page: fold_quote(" ".join(one["text"] for one in text)) for page, text in pages.items()}
    asked: list[tuple[str, CardSource]] = []
    for row in read_rows(folder / "claims_dev.jsonl"):
        for gold in row["gold"]:
            quote = gold["quote"]
            asked.append(("genuine", CardSource("a", url=urls[row["page"]], quote_text=quote)))
            if len(quote.split()) >= 4:
                asked += [
                    (how, CardSource("a", url=urls[row["page"]], quote_text=text))
                    for how, text in altered(quote, chance)
                    if fold_quote(text) not in plain[row["page"]]
                ]
    began = time.monotonic()
    asked.sort(key=lambda one: one[1].url)  # a page is read once, as in an audit
    checked = [await verify([source], reader) for _, source in asked]
    took = time.monotonic() - began
    await reader.close()
    rows, found = Counter(how for how, _ in asked), Counter[str]()
    for (how, _), source in zip(asked, checked, strict=True):
        found[how] += source[0].quote_status == "verified"
    share = 100 * found["genuine"] / rows["genuine"]
    targets.append(Target("FoolMeTwice dev: genuine quotations verified, percent", round(share, 2), GENUINE))
    targets.append(Target("altered ones accepted", sum(found.values()) - found["genuine"], ALTERED, most=True))
    cells = [[how, str(count), str(found[how]), f"{100 * found[how] / count:.2f}"] for how, count in rows.items()]
    note = f"{len(asked):,} quotations against {len(pages)} pages in {took:.1f} s"
    return Table("FoolMeTwice dev: quotations", ["", "quotations", "verified", "percent"], cells, note)


# --- audits


class Checker:
    """What the fact-checkers of one claim asked and found."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        self.claim = " ".join(row["claim"].split())
        self.verdict = VERDICTS[row["label"]]
        self.questions = [one["question"] for one in row["questions"]]
        self.pages = {
            f"https://averitec.example/{row['id']}/{number}": answer["answer"]
            for number, answer in enumerate(answer for one in row["questions"] for answer in one["answers"])
            if answer["answer"]
        }


class SearchServer(ThreadingHTTPServer):
    """SearXNG's JSON over what the checkers found."""

    daemon_threads = True

    def __init__(self, checkers: Sequence[Checker]) -> None:
        super().__init__(("127.0.0.1", 0), _Searching)
        self.known: dict[str, list[tuple[str, str]]] = {}
        for one in checkers:
            pages = list(one.pages.items())
            self.known[one.claim] = pages[:1]
            for number, question in enumerate(one.questions):
                self.known.setdefault(" ".join(question.split()), pages[number : number + 1])
        self.made = 0


class _Searching(BaseHTTPRequestHandler):
    server: SearchServer

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)["q"][0]
        self.server.made += 1
        found = self.server.known.get(query, [])
        results = [{"url": url, "title": "A page", "content": text[:200]} for url, text in found]
        body = json.dumps({"results": results, "unresponsive_engines": []}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads it."""


class Script(AgentScript):
    """A model that audits as the fact-checkers did; of each fifty claims, some it does not manage."""

    def __init__(self, checkers: Sequence[Checker], stops: bool) -> None:
        super().__init__({"source_checker": self.check, "adversarial_checker": self.judge, "writing_agent": self.write})
        self.stops = stops
        self.by_claim = {one.claim: (number, one) for number, one in enumerate(checkers)}

    def check(self, claim: str, told: str) -> Any:
        number, checker = self.by_claim[claim]
        found = good_answer("source_checker", claim, told)
        shown = sum(url in told for url in checker.pages)
        pages = [*checker.pages, *checker.questions]
        known = [one for one, url in zip(checker.questions, pages, strict=False) if url in told]
        left = [one for one in checker.questions if one not in (*known, *self.asked_of(claim))]
        if "It has ended" in told or (self.stops and shown >= 2) or not left:
            match number % 50:
                case 7:
                    return found | {"scholarly_sources": []}
                case 11:
                    return "I would rather not say."
                case 13:
                    return Reply(status=500)
            return found
        self.asked_of(claim).append(left[0])
        return found | {"next_search": left[0]}

    def asked_of(self, claim: str) -> list[str]:
        asked: dict[str, list[str]] = self.__dict__.setdefault("searched", {})
        return asked.setdefault(claim, [])

    def judge(self, claim: str, told: str) -> Any:
        number, checker = self.by_claim[claim]
        if number % 50 == 17:
            return {"verdict": "Maybe"}
        return good_answer("adversarial_checker", claim, told) | {"verdict": checker.verdict}

    def write(self, claim: str, told: str) -> Any:
        number, checker = self.by_claim[claim]
        verdict = "True" if number % 50 == 19 and checker.verdict != "True" else checker.verdict
        return good_answer("writing_agent", claim, told) | {"verdict": verdict}


class Shelf:
    """Cards in memory."""

    def __init__(self) -> None:
        self.cards: dict[str, Card] = {}

    def get(self, ident: str) -> Card | None:
        return self.cards.get(ident)

    def put(self, card: Card) -> Card:
        assert card.id not in self.cards, "published twice"
        self.cards[card.id] = card
        return card


@contextlib.asynccontextmanager
async def opened(script: AgentScript, search: str, pages: Mapping[str, str]) -> AsyncIterator[AuditPipeline]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with ScriptedProvider(script, keep=1) as provider:
            config = folder / "turnout.toml"
            text = f'[models.main]\nmodel = "fake/auditor"\nbase_url = "{provider.base_url}"\nprivate = true\n'
            text += f'[claims.audit]\nsearch = "{search}"\npublic_web = true\n' if search else ""
            config.write_text(text, encoding="utf-8")
            runtime = Runtime(
                open_store(str(folder / "t.db"), config=str(config)), profile="claims", config=str(config)
            )
            reach = open_reach(config, public=PageTransport(pages))
            pipeline = await open_pipeline(runtime, Shelf(), reach)
            try:
                yield pipeline
            finally:
                await pipeline.close()
                await runtime.close()


async def audits(path: Path, most: int | None, targets: list[Target]) -> Table:
    checkers = [Checker(row) for row in read_rows(path)[:most]]
    pages = {
        url: f"<html><body><p>{html.escape(text)}</p></body></html>"
        for one in checkers
        for url, text in one.pages.items()
    }
    cells, bad, hung = [], 0, 0
    for stops in (True, False):
        server = SearchServer(checkers)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        began = time.monotonic()
        async with opened(Script(checkers, stops), f"http://127.0.0.1:{server.server_address[1]}", pages) as pipeline:
            turns = asyncio.Semaphore(AT_ONCE)

            async def audit(checker: Checker, pipeline: AuditPipeline = pipeline, turns: Any = turns) -> Any:
                async with turns:
                    try:
                        async with asyncio.timeout(HANGS_S):
                            session = f"s{id(checker)}"
                            ident = await pipeline.start(checker.claim, session_id=session, caller=ANYONE)
                            return await pipeline.result(ident)
                    except TimeoutError:
                        return None

            ended = await asyncio.gather(*map(audit, checkers))
        took = time.monotonic() - began
        server.shutdown()
        server.server_close()
        cards = [one for one in ended if isinstance(one, Card)]
        refused = [one for one in ended if isinstance(one, AuditFailed)]
        hung += ended.count(None)
        bad += sum(bool(missing(one)) for one in cards) + sum(not one.reason for one in refused)
        pairs = zip(checkers, ended, strict=True)
        bad += sum(isinstance(one, Card) and one.verdict != checker.verdict for checker, one in pairs)
        sources = [source for one in cards for source in one.sources]
        held = sum(source.quote_status == "verified" for source in sources)
        row = [len(ended), len(cards), len(refused), server.made, f"{server.made / len(ended):.2f}"]
        row += [f"{held} of {len(sources)}", f"{took:.0f} s"]
        cells.append(["with stopping" if stops else "without", *map(str, row)])
        if stops:
            why = Counter(f"{one.agent}: {one.reason[:60]}" for one in refused)
    targets.append(Target("AVeriTeC dev: audits that hang", hung, 0, most=True))
    targets.append(
        Target("cards that lack something or turn the verdict, refusals without a reason", bad, 0, most=True)
    )
    targets.append(Target("AVeriTeC dev: claims run", len(checkers), most or 500))
    note = 'Not verified are answers too short to be a quotation ("Yes", "No"). Refused: '
    note += "; ".join(f"{count} {said}" for said, count in why.most_common())
    columns = ["", "claims", "cards", "refused", "searches", "a claim", "quotations verified", "time"]
    return Table("AVeriTeC dev: audits", columns, cells, note)


# --- listeners


async def listeners(targets: list[Target]) -> Table:
    async with opened(AgentScript(), "", {}) as pipeline:

        async def hear() -> list[int]:
            return [event.sequence async for event in pipeline.events("s", tenant="")]

        before = [asyncio.create_task(hear()) for _ in range(LISTENERS // 2)]
        await asyncio.sleep(0.1)
        began = time.monotonic()
        for number in range(EVENTS - 1):
            await pipeline.emit("s", RoutingStarted(question=str(number)), tenant="")
        during = [asyncio.create_task(hear()) for _ in range(LISTENERS // 2)]
        await pipeline.emit("s", ClaimCardReady(pipeline_id="p", claim_card_id="c"), tenant="")
        heard = await asyncio.gather(*before, *during)
        took = time.monotonic() - began
    whole = sum(one == list(range(1, EVENTS + 1)) for one in heard)
    targets.append(Target("listeners that heard the whole list in order", whole, LISTENERS))
    row = [str(LISTENERS), str(EVENTS), str(whole), f"{took * 1000:.0f} ms"]
    return Table("Listeners at once", ["", "listeners", "events", "heard all", "until the last"], [["", *row]])


def kills() -> int:
    """The tests of tests/faults with every step; how many runs failed."""
    command = [sys.executable, "-m", "pytest", "-n0", "-q", str(ROOT / "tests/faults/test_audit_kill.py")]
    return int(subprocess.run(command, env=os.environ | {"TURNOUT_LONG": "1"}, check=False).returncode != 0)


if __name__ == "__main__":
    sys.exit(main())
