"""What a picture of a decision is drawn from, found again in its profile: the words, what matched, what a signal adds.

Nothing here is specific to a kind of layer. What a signal adds is what the layer's score loses when it is muted; where
it matched is what its patterns find. Both hold for kinds this file has never heard of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec
import re2

from turnout.config.check import layer_id
from turnout.core.decision import Decision, Step
from turnout.core.profile import Profile
from turnout.core.query import Query, Reading
from turnout.core.verdict import Verdict
from turnout.layers.signals_config import Bands
from turnout.text.match import UNSPACED, Lexicon, to_re2

# How much of a long question is shown: about four lines of its beginning and one of its end.
HEAD, TAIL = 300, 80
# Reading a million characters takes some 10 ms, and a picture reads them anew for every signal it leaves out.
WEIGHED_CHARACTERS = 2 * 1024 * 1024
# A matched passage longer than this is quoted by its beginning.
QUOTED = 32

_letter = re.compile(rf"[^\W\x00-\x7f{UNSPACED}]").match


class Span(NamedTuple):
    """Where in the shown text something matched."""

    start: int
    end: int
    code: str


class Evidence(NamedTuple):
    reading: Reading
    excerpt: str
    """The user's own words, the middle of long ones left out."""
    cut: bool
    dots: str
    """How what was left out is marked."""
    spans: tuple[Span, ...]
    weights: Mapping[str, Mapping[str, float]]
    """Layer id to reason code to what it adds to the layer's score."""

    def matched(self, code: str) -> str:
        """The first words that a signal or rule matched, as they were written."""
        for span in self.spans:
            if span.code == code:
                words = self.excerpt[span.start : span.end].strip()
                return words if len(words) <= QUOTED else f"{words[: QUOTED - 1]}{self.dots}"
        return ""


def gather(decision: Decision, dots: str = "…") -> Evidence:
    profile = decision.profile
    reading = profile.read(decision.query)
    words = reading.words.strip()
    cut = len(words) > HEAD + TAIL + 20
    excerpt = f"{words[:HEAD]} {dots} {words[-TAIL:]}" if cut else words
    small = len(words) <= WEIGHED_CHARACTERS
    weights = {step.place.id: weigh(profile, reading, step) for step in decision.steps} if small else {}
    return Evidence(reading, excerpt, cut, dots, tuple(_spans(decision, reading, excerpt)), weights)


def weigh(profile: Profile, reading: Reading, step: Step) -> dict[str, float]:
    """What each reason adds to the score of the route the layer chose, or to its one score."""
    verdict, place = step.verdict, step.place
    if verdict is None or place.call is None or place.cost == "network" or place.call.awaits:
        return {}
    key = measured_by(verdict)
    added = {}
    for code in dict.fromkeys(reason.code for reason in step.reasons):
        other = place.call(profile.mute(reading, frozenset((code,))))
        if isinstance(other, Verdict) and key in other.scores and other.scores[key] != verdict.scores[key]:
            added[code] = verdict.scores[key] - other.scores[key]
    return added


def measured_by(verdict: Verdict) -> str:
    """The name of the score that stands for the verdict: its route's, or the only one there is."""
    return verdict.routes[0] if verdict.routes[0] in verdict.scores else next(iter(verdict.scores), "")


def bands_of(profile: Profile, layer: str) -> Bands | None:
    """The bands a layer's score falls into, where it has some."""
    for entry in profile.resolved.get("layers", ()):
        if layer_id(entry) == layer and "bands" in entry:
            return msgspec.convert(entry["bands"], Bands)
    return None


def lexicon_of(profile: Profile) -> Lexicon:
    """Everything the profile looks for. A profile mutes through its lexicon, so that is where to find it."""
    lexicon = getattr(profile.mute, "__self__", None)
    return lexicon if isinstance(lexicon, Lexicon) else Lexicon()


def codes_of(profile: Profile) -> list[str]:
    """The reason code of every signal, rule and override of a profile, whether it looks for words or measures."""
    named = (("signals", "signals"), ("rules", "rule"), ("overrides", "override"))
    codes = [
        f"{prefix}.{entry['id']}"
        for layer in profile.resolved.get("layers", ())
        for key, prefix in named
        for entry in layer.get(key, ())
        if isinstance(entry, dict) and "id" in entry
    ]
    return list(dict.fromkeys(codes + lexicon_of(profile).codes))


def _spans(decision: Decision, reading: Reading, excerpt: str) -> Iterator[Span]:
    lexicon = lexicon_of(decision.profile)
    fired = {reason.code for step in decision.steps for reason in step.reasons}
    wrap = decision.profile.resolved.get("text", {}).get("fold") != "javascript"
    view, origin = _view(decision.profile, excerpt, wrap=wrap)
    for hit in reading.hits:
        if hit < len(lexicon.codes) and lexicon.codes[hit] in fired:
            for match in re2.finditer(to_re2(lexicon.patterns[hit], wrap=wrap), view):
                start, end = match.span()
                if start < end:
                    yield Span(origin[start], origin[end - 1] + 1, lexicon.codes[hit])


def _view(profile: Profile, text: str, *, wrap: bool) -> tuple[str, list[int]]:
    """The text as patterns see it, and for each of its characters the place in the text it stands for."""
    folded: dict[str, str] = {}
    view: list[str] = []
    origin: list[int] = []
    for place, character in enumerate(text):
        if character.isspace():
            seen = "\n" if character == "\n" else "" if view[-1:] == [" "] else " "
        else:
            if character not in folded:
                folded[character] = profile.read(Query(character)).folded
            seen = folded[character]
        for piece in seen:
            pieces = f"_{piece}_" if wrap and _letter(piece) else piece
            view.extend(pieces)
            origin.extend([place] * len(pieces))
    return "".join(view).encode("utf-8", "replace").decode(), origin
