"""A router that follows its profile on disk.

A profile never changes, so code that takes `LiveRouter.router` once for a question uses one profile throughout. The
router is replaced only if the new profile has no mistake and passes every golden case marked `must`; otherwise the old
one keeps serving.
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

# Some file systems date changes to two seconds. A file changed more recently may change again with the same stamp, so
# it is read at every poll.
SETTLED_S = 2.0

Stamp = tuple[str, int, int, int]
"""A file's path, modification time, size and inode."""


class Reloaded(Struct, frozen=True):
    """The result of a reload."""

    status: Literal["same", "swapped", "kept"]
    """Nothing has changed; the new profile is served; there is a problem, so the old profile is kept."""
    hash: str
    """The hash of the profile that is served now."""
    problems: tuple[Problem, ...] = ()
    """Why the old profile was kept: mistakes in the files, golden cases that fail."""
    held: int = 0
    """How many golden cases marked `must` passed."""


class Candidate(NamedTuple):
    """The content of the files, read but not yet checked."""

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
        """Load the profile; raises a ConfigError with every problem."""
        self._profile, self._config, self._models, self._embedder = profile, config, models, embedder
        self._lock = threading.Lock()
        self._files: tuple[File, ...] = ()
        self._digest = ""
        self.problems: tuple[Problem, ...] = ()
        """What is wrong with the files now, so that they are not served."""
        result = self._try()
        if isinstance(result, ConfigError):
            raise result
        candidate, router, _ = result
        assert router is not None  # noqa: S101 - the first candidate differs from none
        self.router = router
        """The current router. Take it once for each question: a reload replaces it."""
        self._remember(candidate, before=())

    def __repr__(self) -> str:
        return f"LiveRouter({self.router.profile!r})"

    def reload(self) -> Reloaded:
        """Read the files again and serve what they say now. Does not raise for mistakes in the files."""
        with self._lock:
            return self._reload()

    def poll(self) -> Reloaded | None:
        """Reload if the files may have changed; None if the profile and its problems are the same as before."""
        with self._lock:
            if self._settled and self._look() == self._stamps:
                return None
            before = self.problems
            result = self._reload()
            is_new = result.problems != before if result.status == "kept" else result.status == "swapped"
            return result if is_new else None

    async def watch(self, interval_s: float = 1.0) -> AsyncIterator[Reloaded]:
        """Poll in a thread until cancelled; yields the result of each change."""
        while True:
            result = await asyncio.to_thread(self.poll)
            if result is not None:
                yield result
            await asyncio.sleep(interval_s)

    def _reload(self) -> Reloaded:
        before = self._look()
        result = self._try()
        serving = self.router.profile.hash
        if isinstance(result, ConfigError):
            self.problems, self._settled = result.problems, False
            return Reloaded("kept", serving, result.problems)
        candidate, router, held = result
        if router is not None:
            self.router = router
        self._remember(candidate, before)
        return Reloaded("same" if router is None else "swapped", self.router.profile.hash, held=held)

    def _try(self) -> tuple[Candidate, Router | None, int] | ConfigError:
        """As `_judge`; a plug-in that raises while its layer is built is a ConfigError too."""
        result: tuple[Candidate, Router | None, int] | ConfigError | Fault = contain(self._judge)
        if isinstance(result, Fault):
            return ConfigError([Problem(os.fspath(self._profile), f"cannot be built: {result.detail}")])
        return result

    def _judge(self) -> tuple[Candidate, Router | None, int] | ConfigError:
        """The candidate, its router (None if nothing has changed) and the cases passed; or what is wrong with it."""
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

    def _remember(self, candidate: Candidate, before: tuple[Stamp, ...]) -> None:
        """Remember what is served, and whether stamps suffice to notice that its files have changed."""
        self._digest = candidate.digest
        self.problems = ()
        chain = candidate.chain
        models = followed(chain.document.tree, chain.beside)
        self._files = (*chain.files, *((chain.cases,) if chain.cases else ()), *models)
        self._stamps = self._look()
        newest = max(changed for _, changed, _, _ in self._stamps)
        self._settled = before == self._stamps and time.time() - newest / 1e9 > SETTLED_S

    def _look(self) -> tuple[Stamp, ...]:
        return (*map(stamp, self._files), stamp(settings_file(self._config)))


def stamp(file: File | None) -> Stamp:
    """A value that changes when a file is changed, created or deleted."""
    if file is None:
        return "", 0, -1, 0
    try:
        stat = file.stat()
    except (OSError, ValueError):
        return str(file), 0, -1, 0
    return str(file), stat.st_mtime_ns, stat.st_size, stat.st_ino


def _digest(document: Document, cases: list[Case]) -> str:
    """A hash of the files' content, golden cases included, without comments and layout."""
    return hashlib.sha256(repr(document.tree).encode() + msgspec.json.encode(cases)).hexdigest()


def _admit(candidate: Candidate, models: Asks | None, embedder: Embeds | None) -> tuple[Router, int]:
    """The candidate's router and how many cases it passed; raises ConfigError for a mistake or a failed case."""
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
