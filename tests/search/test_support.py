"""Whether a passage supports a sentence: tables in four languages, then properties, then hostile input."""

import string
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timing import is_linear
from turnout.search.number import Number, agree
from turnout.search.statement import read_statement
from turnout.search.support import Supported, Unsupported, Why, check
from turnout.search.vocabulary import guess_language


class Case(NamedTuple):
    id: str
    sentence: str
    passage: str
    why: Why | None = None  # None: it is supported


BRIDGE = (
    "The old bridge over the Elbe was built in 1897 by Carl Weber. It is 1,250 metres long and cost 3.2 million marks. "
    "It is not open to cars. Cyclists may use it."
)
PUENTE = (
    "El puente viejo sobre el Ebro fue construido en 1897 por Carlos Ruiz. Mide 1.250 metros y costó 3,2 millones de "
    "pesetas. No está abierto a los coches. La luz del puente está apagada."
)
BRUECKE = (
    "Die alte Brücke über die Elbe wurde 1897 von Carl Weber gebaut. Sie ist 1.250 Meter lang und kostete 3,2 "
    "Millionen Mark. Sie ist für Autos nicht geöffnet. Das Licht der Brücke ist aus."
)
PONT = (
    "Le vieux pont sur la Loire a été construit en 1897 par Charles Leroux. Il mesure 1 250 mètres et a coûté 3,2 "
    "millions de francs. Il n'est pas ouvert aux voitures. La lumière du pont est éteinte."
)
HOME = "Kitchen light: on. Garage door: closed. Bedroom: 21.5 °C. Plex is up. 12 of 14 services are up."

CASES = [
    # English
    Case("en", "The old bridge over the Elbe was built in 1897.", BRIDGE),
    Case("en-paraphrase", "Carl Weber constructed the bridge over the Elbe in 1897.", BRIDGE),
    Case("en-year", "The old bridge over the Elbe was built in 1879.", BRIDGE, Why.NUMBER),
    Case("en-thousands", "The bridge is 1250 metres long.", BRIDGE),
    Case("en-thousands-changed", "The bridge is 1,350 metres long.", BRIDGE, Why.NUMBER),
    Case("en-unit", "The bridge is 1,250 miles long, the old one.", BRIDGE, Why.NUMBER),
    Case("en-million", "The bridge cost 3,200,000 marks.", BRIDGE),
    Case("en-million-changed", "The bridge cost 3.2 billion marks.", BRIDGE, Why.NUMBER),
    Case("en-negation", "The bridge is not open to cars.", BRIDGE),
    Case("en-negation-short", "The bridge isn't open to cars.", BRIDGE),
    Case("en-negation-removed", "The bridge is open to cars.", BRIDGE, Why.POLARITY),
    Case("en-negation-opposite", "The bridge is closed to cars.", BRIDGE),
    Case("en-negation-inserted", "Cyclists may not use the bridge.", BRIDGE, Why.POLARITY),
    Case("en-other-subject", "The cathedral of Dresden was consecrated by a bishop.", BRIDGE, Why.WORDS),
    Case("en-not-only", "Not only cyclists use the old bridge over the Elbe.", BRIDGE),
    Case("en-question-denies-nothing", "Her hair fell out.", "Didn't her hair fall out? It did."),
    Case("en-no-number", "Bus no. 5 stops here.", "Bus 5 stops here."),
    Case("en-spelled-out", "Twelve people were hurt in the storm.", "The storm hurt 12 people."),
    Case("en-spelled-out-changed", "Eleven people were hurt in the storm.", "The storm hurt 12 people.", Why.NUMBER),
    Case("en-hundreds", "Two hundred and fifty houses burned.", "The fire burned 250 houses."),
    Case("en-about", "About 250 houses burned.", "The fire burned 248 houses."),
    Case("en-exactly", "Exactly 250 houses burned.", "The fire burned 248 houses.", Why.NUMBER),
    Case("en-over", "More than 250 houses burned.", "The fire burned 263 houses."),
    Case("en-over-less", "More than 250 houses burned.", "The fire burned 240 houses.", Why.NUMBER),
    Case("en-rounded", "Oslo has 1.2 million inhabitants.", "Oslo has 1,213,554 inhabitants."),
    Case("en-date", "The treaty was signed on 5 May 1955.", "The treaty was signed on May 5th, 1955."),
    Case("en-date-iso", "The treaty was signed on 5 May 1955.", "1955-05-05: the treaty was signed."),
    Case(
        "en-date-changed",
        "The treaty was signed on 6 May 1955.",
        "It was signed on May 5, 1955: the treaty.",
        Why.NUMBER,
    ),
    Case("en-month-changed", "The treaty was signed in June 1955.", "The treaty was signed in May 1955.", Why.NUMBER),
    Case("en-dateline", "The mayor resigned on 3 March 2019.", "March 3, 2019\n\nThe mayor resigned this morning."),
    Case("en-decade", "Punk arose in the 1970s.", "Punk arose in 1974."),
    Case("en-decade-changed", "Punk arose in the 1980s.", "Punk arose in 1974.", Why.NUMBER),
    Case("en-percent", "Sales rose by 5 percent.", "Sales rose 5% last year."),
    Case("en-increase", "Sales fell by 5 percent.", "Sales rose 5% last year.", Why.POLARITY),
    Case("en-version", "Python 3.11.2 fixes this crash.", "The crash is fixed in Python 3.11.2."),
    Case("en-version-changed", "Python 3.11.3 fixes this crash.", "The crash is fixed in Python 3.11.2.", Why.NUMBER),
    Case("en-money", "The firm paid $5m for the patent.", "The company paid 5 million dollars for the patent."),
    Case("en-other-number", "Weber built 1897 bridges.", "In 1897 it rained. Weber built bridges.", None),
    Case("en-accents", "Malmo lies in Sweden.", "Malmö lies in Sweden."),
    Case("en-nothing", "It is so.", BRIDGE, Why.NOTHING_STATED),
    # The home
    Case("home-on", "The kitchen light is on.", HOME),
    Case("home-off", "The kitchen light is off.", HOME, Why.POLARITY),
    Case("home-closed", "The garage door is closed.", HOME),
    Case("home-open", "The garage door is open.", HOME, Why.POLARITY),
    Case("home-not-open", "The garage door is not open.", HOME),
    Case("home-temperature", "The bedroom has 21.5 °C.", HOME),
    Case("home-temperature-changed", "The bedroom has 22.5 °C.", HOME, Why.NUMBER),
    Case("home-down", "Plex is down.", HOME, Why.POLARITY),
    Case("home-count", "12 services are up.", HOME),
    Case("home-count-changed", "13 services are up.", HOME, Why.NUMBER),
    # Spanish
    Case("es", "El puente viejo sobre el Ebro fue construido en 1897.", PUENTE),
    Case("es-year", "El puente viejo sobre el Ebro fue construido en 1987.", PUENTE, Why.NUMBER),
    Case("es-thousands", "El puente mide 1250 metros.", PUENTE),
    Case("es-million", "El puente costó 3.200.000 pesetas.", PUENTE),
    Case("es-negation", "El puente no está abierto a los coches.", PUENTE),
    Case("es-negation-removed", "El puente está abierto a los coches.", PUENTE, Why.POLARITY),
    Case("es-state", "La luz del puente está encendida.", PUENTE, Why.POLARITY),
    Case("es-inserted", "El puente no fue construido por Carlos Ruiz.", PUENTE, Why.POLARITY),
    Case("es-other", "La catedral de Burgos tiene dos torres góticas.", PUENTE, Why.WORDS),
    Case("es-date", "El tratado se firmó el 5 de mayo de 1955.", "El 5 de mayo de 1955 se firmó el tratado."),
    Case("es-spelled-out", "Murieron doce personas en la tormenta.", "La tormenta: 12 personas murieron."),
    Case("es-over", "Más de 250 casas ardieron.", "El fuego: 263 casas ardieron."),
    Case("es-short", "La luz está apagada.", "Luz: apagada"),
    # German
    Case("de", "Die alte Brücke über die Elbe wurde 1897 gebaut.", BRUECKE),
    Case("de-year", "Die alte Brücke über die Elbe wurde 1898 gebaut.", BRUECKE, Why.NUMBER),
    Case("de-thousands", "Die Brücke ist 1250 Meter lang.", BRUECKE),
    Case("de-million", "Die Brücke kostete 3.200.000 Mark.", BRUECKE),
    Case("de-negation", "Die Brücke ist für Autos nicht geöffnet.", BRUECKE),
    Case("de-negation-removed", "Die Brücke ist für Autos geöffnet.", BRUECKE, Why.POLARITY),
    Case("de-state", "Das Licht der Brücke ist an.", BRUECKE, Why.POLARITY),
    Case("de-inserted", "Carl Weber baute die Brücke über die Elbe nicht.", BRUECKE, Why.POLARITY),
    Case("de-other", "Der Kölner Dom hat zwei gotische Türme.", BRUECKE, Why.WORDS),
    Case("de-date", "Der Vertrag wurde am 5. Mai 1955 unterzeichnet.", "05.05.1955: Der Vertrag wurde unterzeichnet."),
    Case("de-spelled-out", "Im Sturm starben zwölf Menschen.", "Der Sturm: 12 Menschen sind gestorben."),
    Case("de-over", "Mehr als 250 Häuser brannten.", "Das Feuer: 263 Häuser brannten."),
    Case("de-short", "Das Garagentor ist geschlossen.", "Garagentor: geschlossen"),
    # French
    Case("fr", "Le vieux pont sur la Loire a été construit en 1897.", PONT),
    Case("fr-year", "Le vieux pont sur la Loire a été construit en 1899.", PONT, Why.NUMBER),
    Case("fr-thousands", "Le pont mesure 1250 mètres.", PONT),
    Case("fr-million", "Le pont a coûté 3 200 000 francs.", PONT),
    Case("fr-negation", "Le pont n'est pas ouvert aux voitures.", PONT),
    Case("fr-negation-removed", "Le pont est ouvert aux voitures.", PONT, Why.POLARITY),
    Case("fr-state", "La lumière du pont est allumée.", PONT, Why.POLARITY),
    Case("fr-inserted", "Charles Leroux n'a pas construit le pont sur la Loire.", PONT, Why.POLARITY),
    Case("fr-born", "Charles Leroux est né à Nantes.", "Charles Leroux, né à Nantes, était ingénieur."),
    Case("fr-other", "La cathédrale de Reims possède deux tours gothiques.", PONT, Why.WORDS),
    Case("fr-over", "Plus de 250 maisons ont brûlé.", "Le feu : 263 maisons ont brûlé."),
    Case("fr-date", "Le traité fut signé le 5 mai 1955.", "Le traité : signé le 5 mai 1955."),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_check(case: Case) -> None:
    result = check(case.sentence, [case.passage])
    assert (result.why if isinstance(result, Unsupported) else None) == case.why, result


@pytest.mark.parametrize(
    ("text", "lang"), [(BRIDGE, "en"), (PUENTE, "es"), (BRUECKE, "de"), (PONT, "fr"), ("", "en"), ("12 %", "en")]
)
def test_the_language_is_told_by_small_words(text: str, lang: str) -> None:
    assert guess_language(text) == lang


@pytest.mark.parametrize(
    ("text", "lang", "values"),
    [
        ("1,234.5 and 1,234,567", "en", [1234.5, 1234567]),
        ("1.234,5 und 1.234.567", "de", [1234.5, 1234567]),
        ("1 234,5 et 1 234 567", "fr", [1234.5, 1234567]),
        ("1.234 and 0.5", "en", [1.234, 0.5]),
        ("1.234 y 0,5", "es", [1234, 0.5]),
        ("twenty-five and two hundred and fifty", "en", [25, 250]),
        ("-5 °C, 10-15", "en", [-5, 10, 15]),
        ("three hundred thousand", "en", [300000]),
        ("the 3rd, the third", "en", [3, 3]),
        ("K4 and A380 and 9" + "9" * 400, "en", [float("9" * 40)]),
    ],
)
def test_numbers_are_values(text: str, lang: str, values: list[float]) -> None:
    assert [number.value for number in read_statement(text, lang).numbers] == values


@given(st.floats(0, 1e9), st.floats(0, 1e9))
def test_a_number_agrees_with_itself_and_with_no_other(one: float, other: float) -> None:
    assert agree(Number(one), Number(one))
    assert agree(Number(one), Number(other)) == (abs(one - other) <= 1e-9 * one)


# --- what holds for every sentence and passage

TOLD = [case for case in CASES if case.why is None]
# Words that no sentence of the tables has.
UNRELATED = st.text(string.ascii_lowercase, min_size=4, max_size=9).map(lambda word: f"zq{word}")


@given(st.sampled_from(TOLD), st.lists(UNRELATED, min_size=1, max_size=8), st.booleans())
def test_an_unrelated_sentence_removes_no_support(case: Case, words: list[str], first: bool) -> None:
    more = " ".join(words).capitalize() + "."
    passage = f"{more}\n\n{case.passage}" if first else f"{case.passage}\n\n{more}"
    # Of so few words the language would be guessed anew.
    if guess_language(passage) == guess_language(case.passage):
        assert isinstance(check(case.sentence, [passage]), Supported)


@given(st.sampled_from(TOLD), st.sampled_from(CASES))
def test_an_unrelated_passage_removes_no_support(case: Case, other: Case) -> None:
    if check(case.sentence, [other.passage]).score == 0:
        assert isinstance(check(case.sentence, [case.passage, other.passage]), Supported)


@given(st.text(max_size=300), st.lists(st.text(max_size=300), max_size=3))
def test_every_sentence_has_one_result(sentence: str, passages: list[str]) -> None:
    result = check(sentence, passages)
    assert result == check(sentence, passages)
    assert 0 <= result.score <= 1


@pytest.mark.parametrize("case", TOLD, ids=lambda case: case.id)
def test_a_sentence_supports_itself(case: Case) -> None:
    assert isinstance(check(case.sentence, [case.sentence]), Supported)


# --- hostile input

HOSTILE = [
    "a ",
    "word. ",
    "1 ",
    "1. ",
    "not ",
    "May 5 ",
    "two hundred ",
    "'",
    "x'y",
    "- a\n",
    "5 km. ",
    "日本",
    "。",
    "1.1.1.",
]


@pytest.mark.alike(3)
@pytest.mark.parametrize("unit", HOSTILE)
def test_time_is_linear_in_the_passage(unit: str) -> None:
    sentence = f"A word is not 1, nor 5 km. {unit}"
    short, long = unit * (4_000 // len(unit)), unit * (32_000 // len(unit))
    assert is_linear(lambda: check(sentence, [short]), lambda: check(sentence, [long]), most=16, grain=0.01)
