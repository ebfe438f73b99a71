""" "Look at the page": the previous question is asked again with more context.

It counts as regret, because needed context was left out before.
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
    """Whether a text only asks to look at the page."""
    request = fold(text[:80]).text.strip(" .!?")
    for opening in _OPENINGS:
        request = request.removeprefix(opening)
    return request in _LOOK


def wider(profile: Profile, route: str) -> str:
    """The next route that sends the page; the last route if there is none."""
    after = profile.routes[profile.routes.index(route) + 1 :] if route in profile.routes else ()
    return next((each for each in after if profile.policies[each].image), profile.routes[-1])
