""" "Look at the page": the question before is asked once more, with more context than it had.

That a reader has to say so is regret: context was withheld that was needed.
"""

from __future__ import annotations

from turnout.core.profile import Profile
from turnout.text.fold import fold

_OPENINGS = ("no, ", "no ", "please ", "can you ", "could you ")
_LOOK = frozenset(
    f"{verb} the page{again}"
    for verb in ("look at", "look on", "have a look at", "take a look at", "check", "read", "use", "see")
    for again in ("", " again", " please", " once more", ", please")
)


def is_look(text: str) -> bool:
    """Whether a text says no more than that the page is to be looked at."""
    said = fold(text[:80]).text.strip(" .!?")
    for opening in _OPENINGS:
        said = said.removeprefix(opening)
    return said in _LOOK


def wider(profile: Profile, route: str) -> str:
    """The next route that sends the page; the last one has nothing above it."""
    after = profile.routes[profile.routes.index(route) + 1 :] if route in profile.routes else ()
    return next((each for each in after if profile.policies[each].image), profile.routes[-1])
