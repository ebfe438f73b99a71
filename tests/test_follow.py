"""Somebody who reads along crosses few files: a request, a decision and a picture are followed call by call.

A profile hook notes every call of a function of ours, in every thread, while a warm program does its work once more.
Counted are the files in which something was called, and the switches: how often the next call of a thread is in another
file than the one before. Coming back from a call is no switch, nor is going on after an `await`. What Turnout does now
and then on its own (looking at queues, writing the log in groups) may fall into the moment, so that the least of
several rounds counts.

    python tests/test_follow.py             prints the numbers
    python tests/test_follow.py --files     and the files, in the order in which they are met
"""

from __future__ import annotations

import contextlib
import io
import os
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dis import opmap
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import pytest

import turnout
from secured_server import call, chat, make_key, secured_server
from turnout.cli import main
from turnout.store import open_store

SOURCE = f"{Path(turnout.__file__).parent}{os.sep}"
# Doubles: the provider at the other end runs in this process, but is no part of a request's way.
DOUBLES = f"testing{os.sep}"
ROUNDS = 5
RESUME = opmap["RESUME"]


class FollowedRequest(NamedTuple):
    calls: list[str]
    """The file of each call, thread by thread."""
    switches: int

    @property
    def files(self) -> list[str]:
        return list(dict.fromkeys(self.calls))


class Follower:
    """Notes the calls of our functions in every thread that begins after it, while it is `following`."""

    def __init__(self) -> None:
        self._calls: dict[int, list[str]] = {}
        self._following = False

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if not self._following or event != "call":
            return
        code, at = frame.f_code, frame.f_lasti
        if not code.co_filename.startswith(SOURCE):
            return
        # A coroutine that goes on is called again, past its beginning; that is where a reader was already.
        if code.co_code[at] == RESUME and code.co_code[at + 1] != 0:
            return
        file = code.co_filename.removeprefix(SOURCE)
        if not file.startswith(DOUBLES):
            self._calls.setdefault(threading.get_ident(), []).append(file)

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        before = sys.getprofile(), threading.getprofile()
        sys.setprofile(self._note)
        threading.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(before[0])
            threading.setprofile(before[1])  # type: ignore[arg-type]

    def follow(self, work: Callable[[], object]) -> FollowedRequest:
        """The shortest way of several that the work took."""
        work()
        rounds = []
        for _ in range(ROUNDS):
            self._calls.clear()
            self._following = True
            try:
                work()
            finally:
                self._following = False
            ways = list(self._calls.values())
            switches = sum(one != other for way in ways for one, other in pairwise(way))
            rounds.append(FollowedRequest([file for way in ways for file in way], switches))
        return min(rounds, key=lambda one: (len(one.files), one.switches))


def follow_chat(folder: Path) -> FollowedRequest:
    """A chat completion with a key, from the server's call of the application to the outcome's row in the log."""
    follower = Follower()
    with contextlib.ExitStack() as stack:
        stack.enter_context(follower.installed())
        served, _ = stack.enter_context(secured_server(folder))
        key = make_key(served.store)
        # Read past the store: its own calls would count.
        log = stack.enter_context(contextlib.closing(sqlite3.connect(folder / "turnout.db")))

        def written() -> int:
            (count,) = log.execute("select count(*) from outcomes").fetchone()
            return int(count)

        def ask() -> None:
            before, until = written(), time.monotonic() + 10
            got = call(served.url, "POST", "/v1/chat/completions", chat("What is 2+2?"), key=key)
            assert got.status == 200
            while written() == before:
                assert time.monotonic() < until
                time.sleep(0.01)

        return follower.follow(ask)


def follow_route(profile: str, text: str) -> FollowedRequest:
    follower = Follower()
    router = turnout.load(profile, config="")
    with follower.installed():
        return follower.follow(lambda: router.route_sync(text))


def follow_show(folder: Path) -> FollowedRequest:
    database = str(folder / "turnout.db")
    with open_store(database, config="") as store:
        store.record(turnout.load("tiers-seed", config="").route_sync("Write a function and a test for it"))

    def show() -> None:
        with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), encoding="utf-8")):
            assert main(["show", "last", "--db", database]) == 0

    follower = Follower()
    with follower.installed():
        return follower.follow(show)


class Way(NamedTuple):
    id: str
    follow: Callable[[Path], FollowedRequest]
    files: int
    """As many as there may be."""
    switches: int


WAYS = [
    Way("chat", follow_chat, 25, 60),
    Way("signals", lambda _: follow_route("tiers-seed", "Write a function that returns JSON"), 7, 8),
    Way("student", lambda _: follow_route("tiers", "What is 2+2?"), 7, 9),
    Way("rules and student", lambda _: follow_route("assist", "How do I train a model on my own data?"), 8, 12),
    Way("show", follow_show, 15, 160),
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.id)
def test_few_files_are_crossed(way: Way, tmp_path: Path) -> None:
    followed = way.follow(tmp_path)
    assert len(followed.files) <= way.files, followed.files
    assert followed.switches <= way.switches, followed.calls


def print_ways(files: bool) -> None:
    for way in WAYS:
        with tempfile.TemporaryDirectory() as folder:
            followed = way.follow(Path(folder))
        print(
            f"{way.id:10} {len(followed.files):3} files  {followed.switches:4} switches  {len(followed.calls):5} calls"
        )
        if files:
            print("".join(f"           {file}\n" for file in followed.files))


if __name__ == "__main__":
    print_ways("--files" in sys.argv[1:])
