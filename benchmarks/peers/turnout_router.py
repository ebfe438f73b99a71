"""Turnout as a contender: a decision counts as made when it has been explained and encoded.

The clock covers routing, reading the reasons and encoding the JSON; a peer is only asked for its own return value.
"""

from timing import Contender, Crew, serve

PROFILES = ("tiers", "tiers-seed", "study", "study-seed", "sources", "claims", "assist")


def contender(profile: str) -> Contender:
    import turnout

    route = turnout.load(profile).route_sync

    def explain(text: str) -> tuple[turnout.Decision, tuple[turnout.Reason, ...], bytes]:
        decision = route(text)
        return decision, decision.reasons, decision.json()

    return Contender(explain, lambda explained: explained[0].route)


def assemble() -> Crew:
    import turnout

    return Crew(turnout.__version__, {profile: contender(profile) for profile in PROFILES})


if __name__ == "__main__":
    serve(assemble)
