"""`keywords.v1`: phrases that name a route; a question may name several.

Every route whose phrases occur is chosen, in the order of the profile. If none occur, the layer passes. A phrase is
either found or not, so the confidence is always 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from msgspec import Struct

from turnout.core.layer import Layer
from turnout.core.query import Reading
from turnout.core.registry import Supplies, kind
from turnout.core.verdict import Reason, Verdict
from turnout.text.match import Phrase, Substring

from .check import unknown


class KeywordsConfig(Struct, frozen=True, forbid_unknown_fields=True):
    phrases: Mapping[str, tuple[str, ...]]
    """The phrases of each route, in the order of the result; `news|newses` is one phrase with its forms."""
    match: Literal["word", "substring"] = "word"

    def faults(self, routes: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        owner: dict[str, str] = {}
        for route, phrases in self.phrases.items():
            yield from unknown(f"phrases.{route}", (route,), routes)
            if not phrases:
                yield f"phrases.{route}", "is empty: the route could never be chosen"
            for i, phrase in enumerate(phrases):
                if not all(form.strip() for form in phrase.split("|")):
                    yield f"phrases.{route}[{i}]", "an empty phrase"
                elif owner.setdefault(phrase, route) != route:
                    yield f"phrases.{route}[{i}]", f"{phrase!r} names {owner[phrase]!r} already"

    def produces(self) -> set[str]:
        return set(self.phrases)


class Keywords(Layer):
    def __init__(self, config: KeywordsConfig, supplies: Supplies) -> None:
        self.routes = list(config.phrases)
        self.owner: dict[int, int] = {}
        self.shown: dict[int, str] = {}
        for index, (route, phrases) in enumerate(config.phrases.items()):
            for phrase in phrases:
                forms = tuple(phrase.split("|"))
                pattern = Substring(forms[0]) if config.match == "substring" else Phrase(forms)
                hit = supplies.phrases.add(pattern, f"keyword.{route}")
                self.owner[hit] = index
                self.shown[hit] = forms[0]

    def __call__(self, reading: Reading) -> Verdict | None:
        hits = tuple([hit for hit in reading.hits if hit in self.owner])
        if not hits:
            return None
        # Patterns were added route by route, so ascending hits follow the order of the routes.
        chosen = dict.fromkeys(self.owner[hit] for hit in hits)
        routes = tuple([self.routes[index] for index in chosen])
        return Verdict(routes, 1.0, evidence=(hits,))

    def explain(self, verdict: Verdict) -> tuple[Reason, ...]:
        words_of: dict[int, list[str]] = {}
        for hit in verdict.evidence[0]:  # type: ignore[attr-defined]
            words_of.setdefault(self.owner[hit], []).append(self.shown[hit])
        return tuple(
            Reason(f"keyword.{self.routes[index]}", f"{self.routes[index]} ({', '.join(words)})")
            for index, words in words_of.items()
        )


@kind("keywords.v1", cost="free", who="K")
def keywords(config: KeywordsConfig, supplies: Supplies) -> Keywords:
    return Keywords(config, supplies)
