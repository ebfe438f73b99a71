"""The answer about a home: yes or no if the question asks for that, a count if it counts, and then the states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from turnout.text.fold import fold

from .home import UNKNOWN, AskedThings, Home, Thing
from .judge import judge
from .terms import words_of

_ACTIVE = frozenset(("on", "open", "opening", "unlocked", "playing", "detected", "cleaning", "heating", "home"))
# Phrases that ask for the whole house.
_SUMMARIES = (
    *("house status", "home status", "house summary", "home summary", "house secure", "security status"),
    *("status of the house", "how is the house", "indoor sensors", "outdoor conditions", "outside conditions"),
)


def tell(question: str, asked: AskedThings, most: int) -> Iterator[str]:
    """The answer in lines."""
    # Text after the question tells how to answer: 'Answer "yes" or "no".'
    question = question.partition("?")[0]
    things, words = asked.things, words_of(question)
    if asked.unknown:
        yield f"Nothing here is called {asked.unknown!r}; of the same kind:"
    elif len(words) > 1 and not asked.acts:
        if words[:2] == ["how", "many"] and (counted := _count(question, things)):
            yield counted
        elif (verdict := _verdict(question, words, things)) is not None:
            yield "Yes." if verdict else "No."
    # Active things come first: of twenty lights the two that are on.
    ordered = sorted(things, key=lambda thing: thing.state not in _ACTIVE)
    for thing in ordered[:most]:
        yield f"{thing.name}: {describe(thing)}."
    if len(things) > most:
        yield f"And {len(things) - most} more."


def _verdict(question: str, words: Sequence[str], things: Sequence[Thing]) -> bool | None:
    """The answer to a yes-or-no question; None for any other."""
    lead = next((at for at, word in enumerate(words) if word in ("is", "are", "isn't", "aren't", "do", "does")), None)
    asks = lead is not None and not {"what", "which", "who", "how", "where", "when", "or"} & set(words)
    return judge(question, [thing.fact for thing in things]) if asks else None


def _count(question: str, things: Sequence[Thing]) -> str:
    """ "2 of 5 are on." """
    wanted = next((word for word in words_of(question) if word in _ACTIVE | {"off", "closed", "locked"}), "")
    if not wanted:
        return f"{len(things)}."
    names = [thing.name for thing in things if judge(f"it is {wanted}", [thing.fact])]
    verb, listed = "is" if len(names) == 1 else "are", f": {', '.join(names)}" if names else ""
    return f"{len(names)} of {len(things)} {verb} {wanted}{listed}."


def describe(thing: Thing) -> str:
    """A state as people say it."""
    if thing.state in UNKNOWN:
        return "not known"
    words = [quantity(thing.state, thing.unit)]
    details = thing.details
    match thing.domain:
        case "climate" | "water_heater":
            if "current_temperature" in details:
                words.append(f"{details['current_temperature']}° now")
            if "temperature" in details:
                words.append(f"set to {details['temperature']}°")
        case "weather":
            if "temperature" in details:
                words.append(quantity(str(details["temperature"]), str(details.get("temperature_unit") or "°C")))
            if "humidity" in details:
                words.append(f"humidity {details['humidity']}%")
            if "wind_speed" in details:
                words.append(f"wind {details['wind_speed']} {details.get('wind_speed_unit', '')}".strip())
        case "light" if isinstance(level := details.get("brightness"), int | float) and thing.state == "on":
            words.append(f"{round(level / 2.55)}%")  # Home Assistant counts to 255
        case "cover" | "valve" if "current_position" in details:
            words.append(f"at {details['current_position']}%")
        case "media_player" if "media_title" in details:
            words.append(str(details["media_title"]))
    return ", ".join(words)


def quantity(value: str, unit: str) -> str:
    return f"{value}{unit}" if unit in ("%", "") else f"{value} {unit}"


def summarise(question: str, home: Home) -> tuple[list[str], list[Thing]] | None:
    """The state of the whole house as lines and things, for a question about it; None for any other."""
    text, all_things = fold(question).text, home.things
    if not all_things or not any(phrase in text for phrase in _SUMMARIES):
        return None
    motion = ("motion", "occupancy")
    groups = {
        "Lights on": [one for one in all_things if one.domain == "light" and one.state == "on"],
        "Unlocked": [one for one in all_things if one.state == "unlocked"],
        "Open": [one for one in all_things if one.state in ("open", "opening")],
        "Motion": [one for one in all_things if one.device_class in motion and one.state == "detected"],
        "Low battery": [one for one in all_things if one.device_class == "battery" and judge("it is low", [one.fact])],
    }
    lines = [f"{name}: {', '.join(one.name for one in group) or 'none'}." for name, group in groups.items()]
    lines += [
        f"{one.name}: {describe(one)}."
        for one in all_things
        if one.device_class == "temperature" or one.domain in ("climate", "weather", "alarm_control_panel")
    ][:10]
    return lines, [one for group in groups.values() for one in group]
