"""forecast, ha, uptime and changes: what is the case, as facts and as sentences."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.sources.at_home import ALIASES, AREA_OF, AREAS, STATES, ask, opened, state
from turnout.apps.sources.changes import ChangesSource, FolderSnapshots, WatchedSource, differences
from turnout.apps.sources.forecast import place_in
from turnout.apps.sources.ha import READS_ONLY
from turnout.apps.sources.home import Home, Thing, is_request, look
from turnout.apps.sources.judge import judge
from turnout.apps.sources.source import (
    Cause,
    Empty,
    EntityState,
    Failure,
    Health,
    MonitorState,
    Result,
    SourceAnswer,
    SourceQuestion,
)
from turnout.apps.sources.telling import tell
from turnout.apps.sources.terms import words_of
from turnout.apps.sources.weather import span_of
from turnout.testing.source import Day, HomeDouble, KumaDouble, MeteoDouble

# A Wednesday.
NOW = datetime(2026, 3, 4, 15, 30, tzinfo=UTC)
HA = '[sources.ha]\nurl = "{url}"\ntoken = {{ env = "TEST_TOKEN" }}\n'


class When(NamedTuple):
    question: str
    first: str
    days: float
    grain: str = "days"


WHEN = [
    When("what's the weather", "2026-03-04 00", 1),
    When("will it rain tomorrow", "2026-03-05 00", 1),
    When("the day after tomorrow", "2026-03-06 00", 1),
    When("this weekend", "2026-03-07 00", 2),
    When("on friday", "2026-03-06 00", 1),
    When("on Wednesday", "2026-03-04 00", 1),
    When("this week", "2026-03-04 00", 7),
    When("next week", "2026-03-09 00", 7),
    When("in three days", "2026-03-07 00", 1),
    When("tonight", "2026-03-04 18", 0.5, "hours"),
    When("later today", "2026-03-04 15", 1 / 24 * 8.5, "hours"),
    When("is it raining", "2026-03-04 15", 1 / 24, "now"),
    When("how warm is it outside", "2026-03-04 15", 1 / 24, "now"),
]


@pytest.mark.parametrize("case", WHEN, ids=lambda case: case.question)
def test_span(case: When) -> None:
    span = span_of(case.question, NOW)
    assert f"{span.first:%Y-%m-%d %H}" == case.first
    assert span.last - span.first == timedelta(days=case.days)
    assert span.grain == case.grain


def test_the_weekend_on_a_sunday_is_what_is_left_of_it() -> None:
    sunday = datetime(2026, 3, 8, 15, tzinfo=UTC)
    assert span_of("this weekend", sunday).last == datetime(2026, 3, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("question", "place"),
    [
        ("weather in Phoenix", "Phoenix"),
        ("will it rain in New York tomorrow?", "New York"),
        ("weather for Monday", ""),
        ("is it cold in here", ""),
        ("forecast", ""),
    ],
)
def test_place(question: str, place: str) -> None:
    assert place_in(question) == place


class TestForecast:
    async def _ask(self, folder: Path, question: str, days: Sequence[Day] = (), units: str = "metric") -> Result:
        places = {"Berlin": (52.52, 13.41), "Phoenix": (33.4, -112.0)}
        async with MeteoDouble(days, places) as meteo:
            text = f'[sources.forecast]\nurl = "{meteo.url}"\ngeocoding = "{meteo.url}"\nplace = "Berlin"\n'
            async with opened(folder, f'{text}units = "{units}"\n') as sources:
                return await ask(sources.sources["forecast"], question)

    def test_facts_are_those_of_the_time_asked_about(self, tmp_path: Path) -> None:
        days = [Day(code=95, chance=100, rain_mm=20), Day(code=0, chance=5)]
        today = asyncio.run(self._ask(tmp_path, "will it rain today?", days))
        tomorrow = asyncio.run(self._ask(tmp_path, "it rains tomorrow", days))
        assert isinstance(today, SourceAnswer)
        assert isinstance(tomorrow, SourceAnswer)
        assert judge("it rains", today.facts) is True
        # "Clear, 5 % chance of rain" is not rain, whatever its words are.
        assert "chance of precipitation" in tomorrow.text
        assert judge("it rains tomorrow", tomorrow.facts) is False

    def test_hours_and_now(self, tmp_path: Path) -> None:
        for question in ("tonight", "later today", "is it raining right now"):
            result = asyncio.run(
                self._ask(tmp_path, question, [Day(code=63, chance=90, rain_mm=24), Day(code=63, chance=90)])
            )
            assert isinstance(result, SourceAnswer)
            assert judge("it rains", result.facts) is True
            assert len(result.text.splitlines()) == 1

    def test_another_place_and_other_units(self, tmp_path: Path) -> None:
        result = asyncio.run(self._ask(tmp_path, "weather in Phoenix", [Day(high=40.0, low=25.0)], "imperial"))
        assert isinstance(result, SourceAnswer)
        assert "Phoenix, today: clear, 77 to 104 °F" in result.text
        assert isinstance(asyncio.run(self._ask(tmp_path, "weather in Atlantis")), Empty)

    def test_the_week_in_lines(self, tmp_path: Path) -> None:
        result = asyncio.run(self._ask(tmp_path, "the weather this week"))
        assert isinstance(result, SourceAnswer)
        assert len(result.text.splitlines()) == len(result.facts) == 7


class QuestionCase(NamedTuple):
    question: str
    text: str
    """How the answer begins."""
    acts: bool = False


ASKED = [
    QuestionCase("Is the kitchen light on?", "Yes.\nKitchen Light: on, 50%."),
    QuestionCase("is the bedroom light on", "No.\nBedroom Light: off."),
    QuestionCase("is the night lamp off?", "Yes.\nBedroom Light: off."),
    QuestionCase("which lights are on", "Kitchen Light: on"),
    QuestionCase("how many lights are on?", "1 of 3 is on: Kitchen Light."),
    QuestionCase("are the doors locked?", "No."),
    QuestionCase("is the front door locked?", "Yes.\nFront Door: locked."),
    QuestionCase("is the back door unlocked?", "Yes."),
    QuestionCase("is the garage closed?", "Yes.\nGarage Door: closed."),
    QuestionCase("how warm is the bedroom?", "Bedroom Thermometer: 21.5 °C."),
    QuestionCase("is the front door battery low?", "Yes.\nFront Door Battery: 15%."),
    QuestionCase("is the hall light on?", "Hall Light: not known."),
    QuestionCase("is the kitchen window open?", "Yes.\nKitchen Window: open."),
    QuestionCase("is anyone home?", "Yes.\nAnna: home."),
    QuestionCase("turn off the kitchen light", "Kitchen Light: on, 50%.", True),
    QuestionCase("Kitchen light off", "Kitchen Light: on, 50%.", True),
    QuestionCase("could you please lock the back door", "Back Door: unlocked.", True),
    QuestionCase("set the thermostat to 23", "Thermostat: heat, 20° now, set to 21°.", True),
    QuestionCase("house status", "Lights on: Kitchen Light."),
    QuestionCase("is the attic light on?", "Nothing here is called 'attic'; of the same kind:\nKitchen Light: on"),
    QuestionCase("what is the battery level of the front door?", "Front Door Battery: 15%."),
]


class TestHome:
    @pytest.mark.parametrize("case", ASKED, ids=lambda case: case.question)
    def test_asked(self, case: QuestionCase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TEST_TOKEN", "token")

        async def main() -> None:
            async with HomeDouble(STATES, AREAS, AREA_OF, ALIASES) as home:
                async with opened(tmp_path, HA.format(url=home.url)) as sources:
                    result = await ask(sources.sources["ha"], case.question)
                assert isinstance(result, SourceAnswer)
                assert result.text.startswith(case.text)
                assert result.note == (READS_ONLY if case.acts else "")
                assert home.switched == 0
                assert {method for method, path in home.requests if "template" not in path} == {"GET"}

        asyncio.run(main())

    def test_what_is_not_there_is_not_judged(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TEST_TOKEN", "token")

        async def main() -> None:
            home = HomeDouble(STATES, AREAS, AREA_OF, ALIASES)
            async with home, opened(tmp_path, HA.format(url=home.url)) as sources:
                attic = await ask(sources.sources["ha"], "the attic light is on")
                any_light = await ask(sources.sources["ha"], "any lights are currently on")
            assert isinstance(attic, SourceAnswer)
            assert isinstance(any_light, SourceAnswer)
            assert judge("the attic light is on", attic.facts) is None
            assert judge("any lights are currently on", any_light.facts) is True

        asyncio.run(main())

    @pytest.mark.parametrize("registries", [True, False])
    def test_areas_by_either_way(self, registries: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TEST_TOKEN", "token")

        async def main() -> None:
            rooms = [state("light.a", "on", "Lamp"), state("light.b", "off", "Lamp")]
            placed = {"light.a": "attic", "light.b": "cellar"}
            async with HomeDouble(rooms, {"attic": "Attic", "cellar": "Cellar"}, placed, registries=registries) as home:
                async with opened(tmp_path, HA.format(url=home.url)) as sources:
                    result = await ask(sources.sources["ha"], "is the light in the cellar on?")
                assert isinstance(result, SourceAnswer)
                assert result.text == "No.\nLamp: off."
                assert [fact.area for fact in result.facts if isinstance(fact, EntityState)] == ["Cellar"]
                paths = [path for _, path in home.requests]
                assert ("/api/template" in paths) is not registries

        asyncio.run(main())

    def test_words_and_what_it_does_not_know(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TEST_TOKEN", "token")

        async def main() -> None:
            home = HomeDouble(STATES, AREAS, AREA_OF, ALIASES)
            async with home, opened(tmp_path, HA.format(url=home.url)) as sources:
                source = sources.sources["ha"]
                assert source.words() == ()
                assert isinstance(await ask(source, "what is a black hole"), Empty)
                words = source.words()
            assert {"Kitchen Light", "night lamp", "Front Door"} <= set(words)
            assert "Home" not in words

        asyncio.run(main())

    def test_a_token_it_does_not_take(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TEST_TOKEN", "wrong-token")

        async def main() -> None:
            async with HomeDouble(STATES) as home, opened(tmp_path, HA.format(url=home.url)) as sources:
                result = await ask(sources.sources["ha"], "lights")
                assert isinstance(result, Failure)
                assert result.why is Cause.DENIED
                assert "wrong-token" not in result.said

        asyncio.run(main())

    @settings(max_examples=60)
    @given(st.text(max_size=60), st.lists(st.tuples(st.text(max_size=20), st.text(max_size=10)), max_size=5))
    def test_any_question_about_any_home(self, question: str, things: list[tuple[str, str]]) -> None:
        home = Home(tuple(Thing(f"light.{n}", (name or "x",), said) for n, (name, said) in enumerate(things)))
        asked = look(question, home)
        assert {thing.id for thing in asked.things} <= {thing.id for thing in home.things}
        assert all(isinstance(line, str) for line in tell(question, asked, 20))

    @pytest.mark.parametrize(
        ("said", "acts"),
        [
            ("turn off the lights", True),
            ("please could you open the garage", True),
            ("if it is above 23 then set the target to 22", True),
            ("kitchen light off", True),
            ("are the lights on", False),
            ("please tell me, are the sprinklers on?", False),
            ("which lights are on", False),
            ("", False),
            ("please", False),
        ],
    )
    def test_request(self, said: str, acts: bool) -> None:
        assert is_request(words_of(said)) is acts


class TestUptime:
    def test_names_and_states(self, tmp_path: Path) -> None:
        odd = 'a "quoted" \\ name'

        async def main() -> None:
            monitors = {"Plex": 1, "Downloader": 1, odd: 0, "Backup": 3, "New one": 2}
            async with (
                KumaDouble(monitors) as kuma,
                opened(tmp_path, f'[sources.uptime]\nurl = "{kuma.url}"\n') as sources,
            ):
                source = sources.sources["uptime"]
                result = await ask(source, "is everything up?")
                assert isinstance(result, SourceAnswer)
                assert result.text.splitlines() == [
                    "2 of 5 services are up.",
                    f"Down: {odd}.",
                    "Paused or not checked yet: Backup, New one.",
                ]
                plex = await ask(source, "is plex down?")
                assert isinstance(plex, SourceAnswer)
                assert plex.facts == (MonitorState("Plex", True),)
                assert plex.text == "Plex is up."
                general = await ask(source, "are any new services down?")
                assert isinstance(general, SourceAnswer)
                assert general.text == result.text
                # What is not watched cannot be judged by what is.
                other = await ask(source, "is jellyfin up?")
                assert isinstance(other, SourceAnswer)
                assert other.text.startswith("No monitor is called 'jellyfin'.")
                assert judge("jellyfin is up", other.facts) is None
                assert set(source.words()) == set(monitors)

        asyncio.run(main())


class ScriptedSource:
    """A source that says what it is told to."""

    name, description = "uptime", ""

    def __init__(self) -> None:
        self.result: Result = Empty()

    async def ask(self, question: SourceQuestion) -> Result:
        return self.result

    async def check(self) -> Health:
        return Health("ok")

    def words(self) -> Sequence[str]:
        return ()


def up(**states: bool) -> SourceAnswer:
    return SourceAnswer("", facts=tuple(MonitorState(name, state) for name, state in states.items()))


class TestChanges:
    def test_since_last_time_and_across_a_restart(self, tmp_path: Path) -> None:
        source, clock = ScriptedSource(), [NOW]

        def fresh() -> ChangesSource:
            return ChangesSource("changes", [WatchedSource(source)], FolderSnapshots(tmp_path), now=lambda: clock[0])

        async def main() -> None:
            source.result = up(Plex=True, Web=True)
            first = await ask(fresh(), "what changed?")
            assert isinstance(first, SourceAnswer)
            # There was nothing to compare with, and "nothing has changed" would be a guess.
            assert first.text.startswith("Seen for the first time: uptime.")
            clock[0] += timedelta(hours=1)
            source.result = up(Plex=False, Web=True, Mail=True)
            second = await ask(fresh(), "what changed?")
            assert isinstance(second, SourceAnswer)
            assert second.text.splitlines() == ["Plex: up → down", "New: Mail (up)"]
            # Since this morning: compared with the first, not with the last.
            clock[0] += timedelta(hours=1)
            since = await fresh().ask(SourceQuestion("since then", since=NOW + timedelta(minutes=5)))
            assert isinstance(since, SourceAnswer)
            assert "Plex: up → down" in since.text

        asyncio.run(main())

    def test_asked_twice_in_a_row(self, tmp_path: Path) -> None:
        """The answer stays the same: what was there a moment ago is not "last time"."""
        source, clock = ScriptedSource(), [NOW]
        changes = ChangesSource("changes", [WatchedSource(source)], FolderSnapshots(tmp_path), now=lambda: clock[0])

        async def main() -> None:
            source.result = up(Plex=True)
            await changes.take()
            clock[0] += timedelta(hours=8)
            source.result = up(Plex=False)
            for _ in range(3):
                clock[0] += timedelta(seconds=20)
                result = await ask(changes, "what changed?")
                assert isinstance(result, SourceAnswer)
                assert result.text == "Plex: up → down"

        asyncio.run(main())

    def test_a_source_that_fails_is_named_and_not_gone(self, tmp_path: Path) -> None:
        good, bad = ScriptedSource(), ScriptedSource()
        good.name = "ha"
        good.result, bad.result = up(Plex=True), Failure(Cause.UNREACHABLE, "uptime: no connection")
        changes = ChangesSource("changes", [WatchedSource(good), WatchedSource(bad)], FolderSnapshots(tmp_path))
        result = asyncio.run(ask(changes, "what changed?"))
        assert isinstance(result, SourceAnswer)
        assert result.note == "Not compared: uptime: no connection"
        alone = ChangesSource("changes", [WatchedSource(bad)], FolderSnapshots(tmp_path))
        assert isinstance(asyncio.run(ask(alone, "what changed?")), Failure)

    def test_what_is_new_to_it_is_not_unchanged(self, tmp_path: Path) -> None:
        old, new, clock = ScriptedSource(), ScriptedSource(), [NOW]
        old.name, old.result, new.result = "ha", up(Lamp=True), up(Plex=True)
        kept = FolderSnapshots(tmp_path)
        asyncio.run(ChangesSource("changes", [WatchedSource(old)], kept, now=lambda: clock[0]).take())
        clock[0] += timedelta(hours=1)
        both = ChangesSource("changes", [WatchedSource(old), WatchedSource(new)], kept, now=lambda: clock[0])
        result = asyncio.run(ask(both, "what changed?"))
        assert isinstance(result, SourceAnswer)
        assert (result.text, result.note) == (
            "Nothing has changed.",
            "Not compared: uptime was seen for the first time",
        )

    def test_with_nothing_to_watch_it_is_not_configured(self, tmp_path: Path) -> None:
        result = asyncio.run(ask(ChangesSource("changes", [], FolderSnapshots(tmp_path)), "what changed?"))
        assert isinstance(result, Failure)
        assert result.why is Cause.NOT_CONFIGURED

    def test_where_nothing_can_be_written(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        source = ScriptedSource()
        source.result = up(Plex=True)
        result = asyncio.run(
            ask(ChangesSource("changes", [WatchedSource(source)], FolderSnapshots(tmp_path / "file")), "what changed?")
        )
        assert isinstance(result, Failure)
        assert "cannot be written" in result.said

    def test_a_damaged_file_is_a_first_time(self, tmp_path: Path) -> None:
        (tmp_path / "uptime.json").write_text("{")
        source = ScriptedSource()
        source.result = up(Plex=True)
        result = asyncio.run(
            ask(ChangesSource("changes", [WatchedSource(source)], FolderSnapshots(tmp_path)), "what changed?")
        )
        assert isinstance(result, SourceAnswer)

    @pytest.mark.parametrize(
        ("old", "new", "lines"),
        [
            ({"T": "21.5°C"}, {"T": "21.7°C"}, []),
            ({"T": "21.5°C"}, {"T": "29°C"}, ["T: 21.5°C → 29°C"]),
            ({"Door": "locked"}, {"Door": "unlocked"}, ["Door: locked → unlocked"]),
            ({"https://a": "Old"}, {"https://b": "Fresh"}, ["New: Fresh"]),
            ({"Lamp": "on"}, {}, ["Gone: Lamp"]),
        ],
    )
    def test_differences(self, old: dict[str, str], new: dict[str, str], lines: list[str]) -> None:
        assert list(differences(old, new)) == lines

    @given(st.dictionaries(st.text(), st.text()))
    def test_nothing_differs_from_itself(self, values: dict[str, Any]) -> None:
        assert list(differences(values, dict(values))) == []
