"""A router that follows its profile on disk, with the golden cases as the gate.

`LiveRouter.router` is one reference, and a profile never changes: taking the router once for a question gives one
profile for all of it. The reference is replaced only by a profile that was read whole, has no mistake and keeps every
golden case that must hold; whatever else is on the disk, the one before it stays.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path as File
from typing import Literal, NamedTuple

import msgspec
from msgspec import Struct

from turnout.core.embed import Embeds
from turnout.core.errors import ConfigError, Problem, QueryError
from turnout.core.model import Asks
from turnout.core.router import Router
from turnout.core.verdict import Fault, contain

from .cases import Case, read_cases, run_cases
from .champion import digest_models, followed
from .document import Document
from .load import ProfileChain, apply_settings, read_chain
from .resolve import build
from .settings import settings_file

# File systems date a change to a few milliseconds at best, some to two seconds: a file changed as recently as this may
# change again without looking any different, so it is read and not only looked at.
SETTLED_S = 2.0

Stamp = tuple[str, int, int, int]
"""What a look at a file tells: its path, when it was changed, its length, and which file it is."""


class Reloaded(Struct, frozen=True):
    """What a reload did."""

    status: Literal["same", "swapped", "kept"]
    """The files say what they said; the new profile is served; there is a problem, so the old one still is."""
    hash: str
    """The profile that is served now."""
    problems: tuple[Problem, ...] = ()
    """Why the old profile was kept: mistakes in the files, golden cases that do not hold."""
    held: int = 0
    """How many golden cases that must hold were run, and did."""


class Candidate(NamedTuple):
    """What the files say, read once and not yet judged."""

    chain: ProfileChain
    cases: list[Case]
    digest: str


class LiveRouter:
    """The router of a profile whose files may change. Safe to share between threads."""

    def __init__(
        self,
        profile: str | os.PathLike[str],
        *,
        config: str | os.PathLike[str] | None = None,
        models: Asks | None = None,
        embedder: Embeds | None = None,
    ) -> None:
        """Load it, or raise the ConfigError that names every problem: there is nothing to keep serving yet."""
        self._profile, self._config, self._models, self._embedder = profile, config, models, embedder
        self._lock = threading.Lock()
        self._files: tuple[File, ...] = ()
        self._digest = ""
        self.problems: tuple[Problem, ...] = ()
        """What is wrong with the files now, so that they are not what is served."""
        found = self._try()
        if isinstance(found, ConfigError):
            raise found
        candidate, router, _ = found
        assert router is not None  # noqa: S101 - no candidate is the same as none
        self.router = router
        """The current router. Take it once for each question; it never changes, it is only replaced."""
        self._note(candidate, before=())

    def __repr__(self) -> str:
        return f"LiveRouter({self.router.profile!r})"

    def reload(self) -> Reloaded:
        """Read the files anew and, if they say something else, serve that. Never raises for what is in the files."""
        with self._lock:
            return self._reload()

    def poll(self) -> Reloaded | None:
        """A reload if a look at the files says there may be reason for one; None unless something new came of it."""
        with self._lock:
            if self._settled and self._look() == self._stamps:
                return None
            before = self.problems
            done = self._reload()
            news = done.problems != before if done.status == "kept" else done.status == "swapped"
            return done if news else None

    async def watch(self, interval_s: float = 1.0) -> AsyncIterator[Reloaded]:
        """Poll until cancelled; yields what each change came to. Files are read in a thread, not in the event loop."""
        while True:
            done = await asyncio.to_thread(self.poll)
            if done is not None:
                yield done
            await asyncio.sleep(interval_s)

    def _reload(self) -> Reloaded:
        before = self._look()
        found = self._try()
        serving = self.router.profile.hash
        if isinstance(found, ConfigError):
            self.problems, self._settled = found.problems, False
            return Reloaded("kept", serving, found.problems)
        candidate, router, held = found
        if router is not None:
            self.router = router
        self._note(candidate, before)
        return Reloaded("same" if router is None else "swapped", self.router.profile.hash, held=held)

    def _try(self) -> tuple[Candidate, Router | None, int] | ConfigError:
        """As `_judge`. A plug-in may fail in any way while its layer is built; what is being served must not notice."""
        found: tuple[Candidate, Router | None, int] | ConfigError | Fault = contain(self._judge)
        if isinstance(found, Fault):
            return ConfigError([Problem(os.fspath(self._profile), f"cannot be built: {found.detail}")])
        return found

    def _judge(self) -> tuple[Candidate, Router | None, int] | ConfigError:
        """The candidate and its router, None where nothing has changed; or what is wrong with it."""
        try:
            candidate = self._read()
            if candidate.digest == self._digest:
                return candidate, None, 0
            return candidate, *_admit(candidate, self._models, self._embedder)
        except ConfigError as error:
            return error

    def _read(self) -> Candidate:
        chain = apply_settings(read_chain(self._profile), settings_file(self._config))
        cases = read_cases(chain.cases) if chain.cases is not None else []
        models = digest_models(chain.document.tree, chain.beside)
        return Candidate(chain, cases, _digest(chain.document, cases) + models)

    def _note(self, candidate: Candidate, before: tuple[Stamp, ...]) -> None:
        """Remember what is served, and whether a look at its files will tell if that has changed."""
        self._digest = candidate.digest
        self.problems = ()
        told = followed(candidate.chain.document.tree, candidate.chain.beside)
        self._files = (*candidate.chain.files, *((candidate.chain.cases,) if candidate.chain.cases else ()), *told)
        self._stamps = self._look()
        newest = max(changed for _, changed, _, _ in self._stamps)
        self._settled = before == self._stamps and time.time() - newest / 1e9 > SETTLED_S

    def _look(self) -> tuple[Stamp, ...]:
        return (*map(stamp, self._files), stamp(settings_file(self._config)))


def stamp(file: File | None) -> Stamp:
    """Tells whether a file has changed, is gone or has come."""
    if file is None:
        return "", 0, -1, 0
    try:
        found = file.stat()
    except (OSError, ValueError):
        return str(file), 0, -1, 0
    return str(file), found.st_mtime_ns, found.st_size, found.st_ino


def _digest(document: Document, cases: list[Case]) -> str:
    """Identifies all that the files say, golden cases included; comments and layout are no part of it."""
    told = hashlib.sha256(repr(document.tree).encode())
    told.update(msgspec.json.encode(cases))
    return told.hexdigest()


def _admit(candidate: Candidate, models: Asks | None, embedder: Embeds | None) -> tuple[Router, int]:
    """The candidate's router and how many cases it had to keep; a ConfigError if it has a mistake or misses a case."""
    chain = candidate.chain
    profile = build(chain.document, chain.remarks, models, embedder, chain.beside, notices=chain.notices)
    router = Router(profile)
    must = [case for case in candidate.cases if case.must]
    name = chain.cases.name if chain.cases is not None else ""
    problems = [Problem(f"{name} {case.id}", miss) for case in must for miss in _misses(router, case)]
    if problems:
        raise ConfigError(problems)
    return router, len(must)


def _misses(router: Router, case: Case) -> Iterator[str]:
    try:
        for result in run_cases(router, (case,)):
            yield from result.misses
    except QueryError as error:
        yield f"refused: {error}"
