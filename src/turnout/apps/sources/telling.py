"""What is told of a home: a yes or a no where a question asks for one, a count where it counts, and then the states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from turnout.text.fold import fold

from .home import UNKNOWN, AskedThings, Home, Thing
from .judge import LOW_BATTERY, judge
from .terms import words_of

_ACTIVE = frozenset(("on", "open", "opening", "unlocked", "playing", "detected", "cleaning", "heating", "home"))
# What asks for the whole house.
_SUMMARIES = (
    *("house status", "home status", "house summary", "home summary", "house secure", "security status"),
    *("status of the house", "how is the house", "indoor sensors", "outdoor conditions", "outside conditions"),
)


def tell(question: str, asked: AskedThings, most: int) -> Iterator[str]:
    """The answer in lines."""
    # What follows the question says how it is to be answered: 'Answer "yes" or "no".'
    question = question.partition("?")[0]
    things, words = asked.things, words_of(question)
    if asked.unknown:
        yield f"Nothing here is called {asked.unknown!r}; of the same kind:"
    elif len(words) > 1 and not asked.acts:
        if words[:2] == ["how", "many"] and (counted := _count(question, things)):
            yield counted
        elif (verdict := _verdict(question, words, things)) is not None:
            yield "Yes." if verdict else "No."
    # What is so comes before what is not: of twenty lights the two that are on.
    ordered = sorted(things, key=lambda thing: thing.state not in _ACTIVE)
    for thing in ordered[:most]:
        yield f"{thing.name}: {describe(thing)}."
    if len(things) > most:
        yield f"And {len(things) - most} more."


def _verdict(question: str, words: Sequence[str], things: Sequence[Thing]) -> bool | None:
    """Yes or no, for a question that asks for it."""
    lead = next((at for at, word in enumerate(words) if word in ("is", "are", "isn't", "aren't", "do", "does")), None)
    asks = lead is not None and not {"what", "which", "who", "how", "where", "when", "or"} & set(words)
    return judge(question, [thing.fact for thing in things]) if asks else None


def _count(question: str, things: Sequence[Thing]) -> str:
    """ "2 of 5 are on." """
    wanted = next((word for word in words_of(question) if word in _ACTIVE | {"off", "closed", "locked"}), "")
    if not wanted:
        return f"{len(things)}."
    so = [thing.name for thing in things if judge(f"it is {wanted}", [thing.fact])]
    return f"{len(so)} of {len(things)} {'is' if len(so) == 1 else 'are'} {wanted}{': ' if so else ''}{', '.join(so)}."


def describe(thing: Thing) -> str:
    """A state as people say it."""
    if thing.state in UNKNOWN:
        return "not known"
    said = [quantity(thing.state, thing.unit)]
    details = thing.details
    degrees = str(details.get("temperature_unit") or "°C") if thing.domain == "weather" else "°"
    match thing.domain:
        case "climate" | "water_heater":
            if "current_temperature" in details:
                said.append(f"{details['current_temperature']}{degrees} now")
            if "temperature" in details:
                said.append(f"set to {details['temperature']}{degrees}")
        case "weather":
            if "temperature" in details:
                said.append(quantity(str(details["temperature"]), degrees))
            if "humidity" in details:
                said.append(f"humidity {details['humidity']}%")
            if "wind_speed" in details:
                said.append(f"wind {details['wind_speed']} {details.get('wind_speed_unit', '')}".strip())
        case "light" if isinstance(level := details.get("brightness"), int | float) and thing.state == "on":
            said.append(f"{round(level / 2.55)}%")  # Home Assistant counts to 255
        case "cover" | "valve" if "current_position" in details:
            said.append(f"at {details['current_position']}%")
        case "media_player" if "media_title" in details:
            said.append(str(details["media_title"]))
        case _:
            pass
    return ", ".join(said)


def quantity(value: str, unit: str) -> str:
    return f"{value}{unit}" if unit in ("%", "") else f"{value} {unit}"


def summarise(question: str, home: Home) -> tuple[list[str], list[Thing]] | None:
    """The state of the whole house, for a question about it; None for any other."""
    said = fold(question).text
    if not home.things or not any(phrase in said for phrase in _SUMMARIES):
        return None
    groups = {
        "Lights on": [thing for thing in home.things if thing.domain == "light" and thing.state == "on"],
        "Unlocked": [thing for thing in home.things if thing.state == "unlocked"],
        "Open": [thing for thing in home.things if thing.state in ("open", "opening")],
        "Motion": [
            thing
            for thing in home.things
            if thing.device_class in ("motion", "occupancy") and thing.state == "detected"
        ],
        "Low battery": [thing for thing in home.things if thing.device_class == "battery" and is_low(thing)],
    }
    lines = [f"{name}: {', '.join(thing.name for thing in group) or 'none'}." for name, group in groups.items()]
    lines += [
        f"{thing.name}: {describe(thing)}."
        for thing in home.things
        if thing.device_class == "temperature" or thing.domain in ("climate", "weather", "alarm_control_panel")
    ][:10]
    return lines, [thing for group in groups.values() for thing in group]


def is_low(thing: Thing) -> bool:
    try:
        return float(thing.state) < LOW_BATTERY
    except ValueError:
        return thing.state == "low"
