"""Everything Turnout raises, in one tree.

    TurnoutError
    ├── ConfigError             a profile or settings file cannot be used; carries every problem found
    │   ├── ArtefactUnreadable  a trained model is incomplete, or not what its manifest says
    │   └── UnknownProfile      no profile of that name
    ├── QueryError              the caller's query is refused before any layer sees it
    │   ├── UnknownRoute        a declared route or ceiling the profile does not have
    │   └── QueryTooLarge       more text than is routed
    ├── Refused                 a request is not allowed or cannot be done
    ├── FolderMissing           a folder of documents is not where it was
    ├── ReplayMismatch          a decision cannot be replayed with this profile
    ├── NetError                a server did not answer as it should
    │   ├── EgressRefused       a connection to a server that the configuration does not name
    │   ├── Unreachable         no connection could be made, or it broke before an answer began
    │   ├── TimedOut            no answer in time
    │   └── Broken              the answer broke off, or is not what it claims to be
    ├── LearnError              a student cannot be trained, compared or promoted
    │   ├── BadExamples         rows that cannot be learnt from; carries every problem found
    │   ├── TooFewExamples      not enough rows to learn or judge from
    │   ├── ShelfError          a name or a folder cannot be used for trained models
    │   ├── UnknownModel        no such trained model
    │   └── ChampionChanged     another model became champion since the challenger was compared
    ├── EmbedderError           texts cannot be turned into vectors here
    │   ├── WeightsMissing      there are no weights to build the embedder from
    │   ├── WeightsRefused      the weights are not the expected ones
    │   └── EmbedderDamaged     the installed embedder is not what its manifest says
    └── StoreError              the decision log cannot do what was asked
        ├── StoreUnavailable    the database cannot be reached, read or written now
        │   └── NotStored       a row could not be made durable before its answer (strict durability)
        ├── NoLogYet            no decision was ever logged there
        ├── SchemaTooNew        the database was written by a newer version
        ├── StoreDamaged        the database is not what its checks expect
        ├── UnknownDecision     no such decision, for this tenant
        └── TextNotKept         the redaction level did not keep the text a feature needs

An empty result is a value, never an error. A message names the value, the limit and the next step.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import NamedTuple

from .conceal import conceal

# Longer words are not compared with known names.
MISSPELT = 200
# Characters of a caller's value that a message repeats.
SHOWN = 80


class TurnoutError(Exception):
    """Base of every error that Turnout raises."""


class Problem(NamedTuple):
    """One mistake in a configuration file, and where it is."""

    where: str
    """`tiers.toml:23 layers[1].accept.confidance`"""
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


class ConfigError(TurnoutError):
    def __init__(self, problems: Iterable[Problem]) -> None:
        # A message quotes the file, which may have a key in it by mistake.
        self.problems = tuple(Problem(conceal(where), conceal(message)) for where, message in problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class ArtefactUnreadable(ConfigError):
    # A decoder's message may quote an untrusted file, so only the beginning is shown, on one line.
    MOST_CHARACTERS = 400

    def __init__(self, path: object, problem: str, step: str = "train again, or copy the whole folder again") -> None:
        line = " ".join("".join(letter if letter.isprintable() else " " for letter in problem).split())
        super().__init__([Problem(str(path), f"{line[: self.MOST_CHARACTERS]}: {step}")])


class UnknownProfile(ConfigError):
    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.known = known = tuple(known)
        message = f"no such profile{suggest(name, known)} (known: {', '.join(known)}; or the path of a .toml file)"
        super().__init__([Problem(repr(name[:SHOWN]), message)])


class QueryError(TurnoutError):
    pass


class UnknownRoute(QueryError):
    def __init__(self, role: str, name: str, routes: Iterable[str]) -> None:
        routes = tuple(routes)
        super().__init__(
            f"{role} {name[:SHOWN]!r} is not a route of this profile{suggest(name, routes)}: {', '.join(routes)}"
        )


class QueryTooLarge(QueryError):
    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"the text has {size:,} characters; at most {limit:,} are routed: shorten it, or send parts")


class Refused(TurnoutError):
    """`status` is the HTTP status, `kind` the error's type in the wire formats."""

    def __init__(self, status: int, kind: str, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.retry_after_s = retry_after_s


class FolderMissing(TurnoutError):
    """The documents read from it are kept: a disk that is not mounted is not a deletion."""


class ReplayMismatch(TurnoutError):
    pass


class NetError(TurnoutError):
    was_sent = False
    """The request had been sent, so it may be charged for."""
    was_answered = False
    """There was an answer, but an unusable one: it is charged for."""


class EgressRefused(NetError):
    pass


class Unreachable(NetError):
    pass


class TimedOut(NetError):
    pass


class Broken(NetError):
    pass


class LearnError(TurnoutError):
    pass


class BadExamples(LearnError):
    def __init__(self, problems: Iterable[Problem], shown: int) -> None:
        self.problems = tuple(problems)
        lines = [str(problem) for problem in self.problems[:shown]]
        if len(self.problems) > shown:
            lines.append(f"… and {len(self.problems) - shown:,} more like these: {len(self.problems):,} in all")
        super().__init__("\n".join(lines))


class TooFewExamples(LearnError):
    pass


class ShelfError(LearnError):
    pass


class UnknownModel(LearnError):
    pass


class ChampionChanged(LearnError):
    pass


class EmbedderError(TurnoutError):
    pass


class WeightsMissing(EmbedderError):
    pass


class WeightsRefused(EmbedderError):
    pass


class EmbedderDamaged(EmbedderError):
    pass


class StoreError(TurnoutError):
    pass


class StoreUnavailable(StoreError):
    pass


class NotStored(StoreUnavailable):
    pass


class NoLogYet(StoreError):
    def __init__(self, where: str, start: str = "turnout route") -> None:
        super().__init__(f"{where}: no decision log here yet: {start} starts it, --db names another")


class SchemaTooNew(StoreError):
    def __init__(self, where: str, found: int, known: int) -> None:
        super().__init__(
            f"{where} has schema {found}, this version of Turnout knows {known}: upgrade Turnout; "
            "going back is not possible, restore a backup from before the upgrade instead"
        )


class StoreDamaged(StoreError):
    pass


class UnknownDecision(StoreError):
    def __init__(self, ident: str, tenant: str) -> None:
        whose = f" of tenant {tenant!r}" if tenant else ""
        super().__init__(f"no decision {ident[:SHOWN]!r}{whose} (see turnout log)")


class TextNotKept(StoreError):
    pass


def suggest(word: str, known: Iterable[str]) -> str:
    """`, did you mean 'x'?` when something close is known, else nothing."""
    # Comparing is slow, and such a long word is not a misspelt name.
    if len(word) > MISSPELT:
        return ""
    # Case is ignored, because in a short name it alone would put the match below difflib's cut-off of 0.6.
    lowered = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), lowered, n=1)
    return f", did you mean {lowered[close[0]]!r}?" if close else ""
