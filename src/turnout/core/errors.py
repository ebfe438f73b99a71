"""Everything Turnout raises, in one tree.

    TurnoutError
    ├── ConfigError             a profile or settings file cannot be used; carries every problem found
    │   ├── ArtefactUnreadable  a trained model is not whole, or not what its manifest says
    │   └── UnknownProfile      no profile of that name
    ├── QueryError              the caller's query is refused before any layer sees it
    │   ├── UnknownRoute        a declared route or ceiling the profile does not have
    │   └── QueryTooLarge       more text than a decision is promised for
    ├── Refused                 a caller may not do what it asks, or asks for what cannot be done
    ├── FolderMissing           a folder of documents is not where it was
    ├── ReplayMismatch          a decision cannot be replayed with this profile
    ├── NetError                something beyond this process did not answer as it should
    │   ├── EgressRefused       a connection to where the configuration does not lead
    │   ├── Unreachable         no connection could be made, or it broke before an answer began
    │   ├── TimedOut            no answer in time
    │   └── Broken              the answer broke off, or is not what it says it is
    ├── LearnError              a student cannot be trained, compared or put in place
    │   ├── BadExamples         rows that cannot be learnt from; carries every problem found
    │   ├── TooFewExamples      not enough of them to learn or to judge by
    │   ├── ShelfError          a folder or a name cannot stand on the shelf of models
    │   ├── UnknownModel        no such model on the shelf
    │   └── ChampionChanged     another model serves by now than the one a challenger was compared with
    ├── EmbedderError           texts cannot be turned into vectors here
    │   ├── WeightsMissing      there are no weights to build the embedder from
    │   ├── WeightsRefused      the weights are not the ones they should be
    │   └── EmbedderDamaged     what is installed is not what its manifest says
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

# Characters of the longest word that is compared with the names there are.
MISSPELT = 200
# Characters of a caller's own value that a message repeats.
SHOWN = 80


class TurnoutError(Exception):
    """Base of every error Turnout raises on purpose."""


class Problem(NamedTuple):
    """One mistake in a configuration file, located."""

    where: str
    """`tiers.toml:23 layers[1].accept.confidance`"""
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


class ConfigError(TurnoutError):
    def __init__(self, problems: Iterable[Problem]) -> None:
        # A message quotes what stands in a file, and a key that was written there by mistake must not be passed on.
        self.problems = tuple(Problem(conceal(where), conceal(message)) for where, message in problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class ArtefactUnreadable(ConfigError):
    # What a decoder says of a stranger's file may quote the file: one line of it, and not all.
    MOST_CHARACTERS = 400

    def __init__(self, path: object, problem: str, step: str = "train again, or copy the whole folder again") -> None:
        said = " ".join("".join(letter if letter.isprintable() else " " for letter in problem).split())
        super().__init__([Problem(str(path), f"{said[: self.MOST_CHARACTERS]}: {step}")])


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
    """`status` is the HTTP status, `kind` the error's name in the wire formats."""

    def __init__(self, status: int, kind: str, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.retry_after_s = retry_after_s


class FolderMissing(TurnoutError):
    """What was read from it stays: a disk that is not mounted is no deletion."""


class ReplayMismatch(TurnoutError):
    pass


class NetError(TurnoutError):
    was_sent = False
    """The request had been sent: the other side may work on it, and charge for it."""
    was_answered = False
    """It was answered, in a way that is of no use: that is charged for."""


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
    # Comparing takes a thousand times as long as reading, and what is so long is no name that was misspelt.
    if len(word) > MISSPELT:
        return ""
    # 0.6 is difflib's own default cut-off; short names need the case-blind comparison to be of use.
    lowered = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), lowered, n=1)
    return f", did you mean {lowered[close[0]]!r}?" if close else ""
