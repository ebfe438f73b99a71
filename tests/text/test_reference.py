"""Which questions need the conversation: tables of both kinds, then properties, then hostile input."""

import re
from typing import NamedTuple, get_args

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from random_text import hidden
from timing import is_linear, is_within
from turnout.text.fold import fold
from turnout.text.reference import LONG, SENTENCES, WINDOW, Kind, _cues, find_reference, needs_history

MANY = settings(max_examples=200, deadline=None, derandomize=True)


class Case(NamedTuple):
    id: str
    text: str
    kind: Kind
    words: str = ""
    """What is pointed out; left out where it does not matter."""


POINTING = [
    # Pronouns that nothing in the question explains
    Case("it", "How does it work?", "pronoun", "it work"),
    Case("it-last", "commit it", "pronoun", "it"),
    Case("it-imperative", "rewrite it in Rust", "pronoun"),
    Case("it-passive", "Was it painted?", "pronoun"),
    Case("it-copula", "is it free?", "pronoun"),
    Case("it-raising", "Was it able to float?", "pronoun"),
    Case("it-takes-place", "Where did it take place?", "pronoun"),
    Case("it-what-if", "What if it is not a square matrix?", "pronoun"),
    Case("it-contracted", "what's it made of?", "pronoun"),
    Case("he", "When was he born?", "pronoun", "he born"),
    Case("she-after-object", "Which prize did she win?", "pronoun", "she win"),
    Case("they", "Why did they split up?", "pronoun"),
    Case("not-they", "Why didn't they tour?", "pronoun"),
    Case("his", "What was his job?", "pronoun"),
    Case("their-inside-a-noun", "What is the title of their second novel?", "pronoun", "their second"),
    Case("her-inside-a-film", "Is there a film about her life?", "pronoun"),
    Case("him-beside-subject", "Does Nora like him?", "pronoun", "him"),
    Case("it-beside-subject", "Did the museum buy it?", "pronoun"),
    Case("it-behind-verb-and-preposition", "What did the critics think of it?", "pronoun"),
    Case("he-is-no-thing", "Did the storm delay him?", "pronoun"),
    Case("he-is-no-plural", "What do people say about his paintings?", "pronoun"),
    Case("he-then-comma", "After he left, who took over?", "pronoun"),
    Case("capitals", "WHO IS HE?", "pronoun"),
    # Demonstratives and places
    Case("this", "this", "deictic", "this"),
    Case("this-question", "When was this?", "deictic"),
    Case("this-noun", "What does this error mean?", "deictic", "this error"),
    Case("this-time", "What did the club do during this time?", "deictic"),
    Case("these-years", "Who ruled in these early years?", "deictic"),
    Case("that", "Is that true?", "deictic", "that true"),
    Case("that-last", "translate that", "deictic", "that"),
    Case("that-one", "that one", "deictic", "that one"),
    Case("that-one-object", "play that one again", "deictic"),
    Case("that-after-preposition", "What happened after that?", "deictic"),
    Case("that-determiner", "Who won the cup in that year?", "deictic"),
    Case("that-to", "change that to blue", "deictic"),
    Case("does-that", "what does that mean?", "deictic"),
    Case("those", "Where are those sold?", "deictic"),
    Case("there-place", "Who lived there?", "deictic", "there"),
    # What was said
    Case("previous-one", "the previous one", "earlier", "the previous one"),
    Case("former", "the former", "earlier"),
    Case("latter", "Is the latter cheaper?", "earlier"),
    Case("second-one", "and the second one?", "earlier"),
    Case("your-answer", "Rewrite your previous answer: no adverbs, please.", "earlier", "your previous answer"),
    Case("your-solution", "What is wrong in your solution?", "earlier"),
    Case("you-said", "Can you back up what you said?", "earlier"),
    Case("above", "Explain the above.", "earlier"),
    Case("the-rest", "and the rest?", "earlier"),
    # Gaps
    Case("why", "why?", "ellipsis", "why"),
    Case("how-so", "how so?", "ellipsis"),
    Case("where", "Where?", "ellipsis"),
    Case("who-left", "Who left?", "ellipsis"),
    Case("which-city", "Which city?", "ellipsis"),
    Case("how-many", "How many goals?", "ellipsis"),
    Case("what-kind", "What kind of boats?", "ellipsis"),
    Case("in-which", "In which opera?", "ellipsis"),
    Case("and-name", "and Texas?", "ellipsis", "and texas"),
    Case("what-about", "what about Spain?", "ellipsis", "what about"),
    Case("how-about", "How about Norway?", "ellipsis"),
    Case("in-language", "in Dutch, please", "ellipsis"),
    Case("next", "What happened next?", "ellipsis"),
    Case("since-then", "Who has led since then?", "ellipsis"),
    Case("if-so", "If so, by how much?", "ellipsis"),
    # Going on
    Case("yes", "yes", "continuation"),
    Case("no-thanks", "No, thank you!", "continuation"),
    Case("go-on", "ok, go on", "continuation"),
    Case("shorter", "shorter please", "continuation"),
    Case("more-formal", "a bit more formal", "continuation"),
    Case("translate-to", "Now translate to Welsh", "continuation"),
    Case("explain-again", "could you explain again?", "continuation"),
    Case("tell-me-more", "Tell me more.", "continuation"),
    Case("but", "But I have no oven", "continuation"),
    Case("now", "Now add a second column: the price.", "continuation"),
    Case("then-why", "Then why is the sea salty?", "continuation"),
    # Comparing
    Case("what-else", "What else did Lovelace publish?", "comparative", "what else"),
    Case("anyone-else", "Did anyone else reach the pole?", "comparative"),
    Case("any-other", "Any other rivers?", "comparative"),
    Case("what-other", "What other islands were visited?", "comparative"),
    Case("another", "give me another example", "comparative"),
    Case("which-is-better", "Which is better?", "comparative"),
    Case("which-is-likelier", "Which is more likely?", "comparative"),
    Case("which-one", "Which one should I buy?", "comparative"),
    # A courtesy names nothing
    Case("after-greeting", "Hi there! Why?", "ellipsis"),
    Case("below-greeting", "Hello,\n\nhow does it work?", "pronoun"),
    Case("sentence-without-a-name", "Great. And then?", "ellipsis"),
    # Spanish
    Case("esto", "¿Qué significa esto?", "deictic", "esto"),
    Case("eso", "eso", "deictic", "eso"),
    Case("ese", "¿Cómo arreglo ese error?", "deictic"),
    Case("allí", "¿Quién vive allí?", "deictic"),
    Case("él", "¿Cuándo nació él?", "pronoun"),
    Case("su", "¿Cuál es su capital?", "pronoun", "su capital"),
    Case("lo-clitic", "¿Quién lo escribió?", "pronoun"),
    Case("explícalo", "explícalo mejor", "pronoun", "explícalo"),
    Case("explicalo-bare", "explicalo", "pronoun"),
    Case("hazlo", "hazlo más corto", "pronoun", "hazlo"),
    Case("resumirlo", "¿Puedes resumirlo?", "pronoun"),
    Case("lo-anterior", "Resume lo anterior", "earlier", "lo anterior"),
    Case("tu-respuesta", "Acorta tu respuesta", "earlier"),
    Case("dijiste", "¿Por qué dijiste que no?", "earlier"),
    Case("y-en", "¿y en Madrid?", "ellipsis", "y en madrid"),
    Case("y-nombre", "¿Y Portugal?", "ellipsis"),
    Case("por-qué", "¿Por qué?", "continuation"),
    Case("qué-hay-de", "¿Qué hay de Bolivia?", "ellipsis"),
    Case("cuándo-nació", "¿Cuándo nació?", "ellipsis"),
    Case("cuántos-tiene", "¿Cuántos puertos tiene?", "ellipsis"),
    Case("sí", "sí, por favor", "continuation"),
    Case("más-corto", "más corto, por favor", "continuation"),
    Case("traduce-al", "traduce al alemán", "continuation"),
    Case("ahora-en", "Ahora en gallego", "ellipsis"),
    Case("quién-más", "¿Quién más cruzó el río?", "comparative"),
    Case("otro-ejemplo", "Dame otro ejemplo", "comparative"),
    Case("cuál-es-mejor", "¿Cuál es mejor?", "comparative"),
]


@pytest.mark.parametrize("case", POINTING, ids=lambda case: case.id)
def test_finds_what_points_outside(case: Case) -> None:
    found = find_reference(case.text)
    assert found is not None
    assert (found.kind, found.words) == (case.kind, case.words or found.words)
    assert needs_history(case.text)
    assert found == find_reference(case.text, broad=True)


class Alone(NamedTuple):
    id: str
    text: str


STANDING_ALONE = [
    # Something before the pronoun
    Alone("earlier-sentence", "It is raining in Paris; will it stop?"),
    Alone("earlier-clause", "My kettle leaks, can I still use it?"),
    Alone("subject-of-the-same-clause", "Did Ada Lovelace publish under her own name?"),
    Alone("two-persons", "Did Nora tell Hugo that he or she would have to go with him or her?"),
    Alone("subordinate-clause", "How old was Mozart when he first toured?"),
    Alone("subordinate-clause-first", "When Curie moved to Paris, did she speak French?"),
    Alone("before-it-expires", "How do I renew my passport before it expires?"),
    Alone("its", "Can a gecko regrow its tail?"),
    Alone("their", "Do penguins recognise their own chicks?"),
    Alone("someone-their", "Can someone lose their citizenship by voting abroad?"),
    Alone("badger-his", "Can a badger defend his burrow?"),
    Alone("lid-on-it", "Does the box have a lid on it?"),
    Alone("named-beside", "Was Leo his given name?"),
    Alone("lower-case-name", "how old was mozart when he first toured"),
    Alone("points-ahead", "If she were rich, would Nora Quinn still work?"),
    Alone("people-of-a-place", "What do they eat in Iceland at Christmas?"),
    # It that stands for nothing
    Alone("weather", "is it raining in Paris?"),
    Alone("weather-later", "Will it be cold in Oslo tonight?"),
    Alone("possible-to", "is it possible to fly to Mars?"),
    Alone("safe-for-to", "Is it safe for cats to drink milk?"),
    Alone("degree-to", "Is it really that much harder to learn Finnish?"),
    Alone("true-that", "Is it true that bees dance?"),
    Alone("allowed-to", "Is it allowed to fish in the Seine?"),
    Alone("how-hard-to", "How hard is it to juggle?"),
    Alone("why-is-it-that", "Why is it that ice floats?"),
    Alone("what-time", "what time is it in Tokyo"),
    Alone("what-day", "can you tell me what day it is?"),
    Alone("how-far", "How far is it to Rome?"),
    Alone("how-long-to", "How long does it take to boil an egg?"),
    Alone("how-much-to", "How much does it cost to ship a piano?"),
    Alone("mean-to", "what does it mean to be human"),
    Alone("feel-to", "how does it feel to skydive?"),
    Alone("like-to", "What is it like to live in Malta?"),
    Alone("matter", "Does it matter which fuse I use?"),
    Alone("appreciate-it-if", "I would appreciate it if you listed the moons of Mars"),
    Alone("do-it-yourself", "Where can I buy do it yourself furniture?"),
    # That, this and there that do not point
    Alone("relative-that", "Which is the opera that opened La Scala?"),
    Alone("relative-that-bare", "the book that won"),
    Alone("conjunction-that", "Who proved that pi is irrational?"),
    Alone("is-that-clause", "The trouble is that my oven smokes"),
    Alone("that-one-clause", "Who spread the belief that one can own land?"),
    Alone("so-that", "Sort a list so that zeros come last"),
    Alone("this-week", "Which films open this week?"),
    Alone("this-year", "How hot was this year in Spain?"),
    Alone("this-fine-day", "How are you this fine day?"),
    Alone("at-this-time", "Which museums are open at this time of night?"),
    Alone("those-who", "What happens to those who skip jury duty?"),
    Alone("those-able", "Are those eligible for parole told in advance?"),
    Alone("there-is", "there is a wasp in my office"),
    Alone("are-there", "Are there any lakes in Malta?"),
    Alone("told-before", "I want to exchange pounds for euros, how do I do that?"),
    Alone("plenty-before", "Which Kenyan runner broke the Boston marathon record set there?"),
    # The text brings it
    Alone("colon", "Translate this: good morning"),
    Alone("quotes", 'What does this mean: "caveat emptor"?'),
    Alone("next-line", "Fix it\nprint('a)"),
    Alone("long", "Explain this " + "and the tale of the miller and the heron " * 6),
    # No gap and no comparison after all
    Alone("why-sentence", "Why is the sky blue?"),
    Alone("how-about-a", "how about a joke"),
    Alone("and-sentence", "And what is the capital of Peru?"),
    Alone("former-president", "Who is the former president of Chile?"),
    Alone("last-king", "Who was the last king of Italy?"),
    Alone("else-besides", "What else besides Java runs on the JVM?"),
    Alone("other-than", "Which planets other than Saturn have rings?"),
    Alone("translate-object", "translate hello to French"),
    Alone("summarise-object", "Summarise the French Revolution"),
    Alone("instead-of", "Instead of butter, can I use oil?"),
    Alone("another-account", "How do I move money to another account?"),
    Alone("thanks", "Thanks!"),
    Alone("hello", "hello"),
    Alone("name", "OAuth"),
    Alone("blank", " \n "),
    Alone("punctuation", "?!"),
    # Spanish
    Alone("es-capital", "¿Cuál es la capital de Francia?"),
    Alone("es-weather", "¿Está lloviendo en Madrid?"),
    Alone("es-esta-semana", "¿Qué tiempo hace esta semana en Bilbao?"),
    Alone("es-lo-mejor", "¿Qué es lo mejor de Oaxaca?"),
    Alone("es-este", "¿Qué países hay al este de Polonia?"),
    Alone("es-antecedent", "Tengo un error en Python, ¿cómo lo arreglo?"),
    Alone("es-enclitic-antecedent", "Escribe un poema y tradúcelo al inglés"),
    Alone("es-su-antecedent", "¿Cómo protege una loba a sus crías?"),
    Alone("es-águilas", "¿Cuántas águilas hay en Ávila?"),
    Alone("es-he", "no he recibido mi tarjeta"),
    Alone("es-por-favor", "por favor"),
    Alone("es-qué-pasa", "¿Qué pasa?"),
    Alone("es-otro-que", "¿Qué más países que Chile tocan el Pacífico?"),
]


@pytest.mark.parametrize("case", STANDING_ALONE, ids=lambda case: case.id)
def test_lets_stand_what_stands_alone(case: Alone) -> None:
    assert find_reference(case.text) is None
    assert not needs_history(case.text)


BROAD = [
    Case("definite", "Was the album a success?", "definite", "the album"),
    Case("definite-lower-case", "how did the match end, did the crowd leave", "definite"),
    Case("article", "How does the article end?", "definite"),
    Case("open", "Were there any complaints?", "open"),
    Case("open-subject", "Who painted such ceilings?", "open"),
    Case("so", "So Nora never came back?", "continuation"),
    Case("any", "Any cousins?", "ellipsis"),
    Case("others", "What did the other sailors do?", "comparative"),
    Case("too", "Did Nora paint too?", "comparative"),
    Case("time", "Who was mayor at the time?", "earlier"),
    Case("es-y", "¿Y cuándo llegó Colón a América?", "continuation"),
    Case("es-otros", "¿Ganó otros premios?", "comparative"),
]


@pytest.mark.parametrize("case", BROAD, ids=lambda case: case.id)
def test_a_conversation_in_progress_is_read_broadly(case: Case) -> None:
    assert find_reference(case.text) is None
    found = find_reference(case.text, broad=True)
    assert found is not None
    assert (found.kind, found.words) == (case.kind, case.words or found.words)


ALONE_EVEN_BROADLY = [
    Alone("named", "Was the album Nevermind a success?"),
    Alone("lower-case-name", "did nirvana sell well"),
    Alone("long-definite", "what was the green lantern league"),
    Alone("picked-out", "Who was the first dentist?"),
    Alone("told-which", "Who was the inventor of dynamite?"),
    Alone("one-of-a-kind", "How was the moon formed?"),
    Alone("present", "How does the heart pump blood?"),
    Alone("own-past", "Why was my card declined?"),
    Alone("article-with-its-text", "What did the author mean?\nOnce upon a time there was a heron."),
]


@pytest.mark.parametrize("case", ALONE_EVEN_BROADLY, ids=lambda case: case.id)
def test_stands_alone_even_broadly(case: Alone) -> None:
    assert find_reference(case.text, broad=True) is None


def test_says_why() -> None:
    found = find_reference("What about Spain?")
    assert found is not None
    assert found.code == "reference.ellipsis"
    assert (found.reason.code, found.reason.text) == (
        "reference.ellipsis",
        '"what about" is only complete after an earlier question',
    )


def test_every_kind_has_a_sentence_and_a_case() -> None:
    # Cases of what only turns before it explain are in test_followup.py.
    assert set(SENTENCES) == set(get_args(Kind)) == {case.kind for case in (*POINTING, *BROAD)} | {"followup"}


def test_every_cue_compiles_and_none_is_doubled() -> None:
    for language in ("en", "es"):
        cues, _ = _cues(language)
        assert len({cue.find for cue in cues}) == len(cues)
        # A cue that starts or ends inside a word would match there.
        assert [cue.find for cue in cues if not cue.find.startswith((" ", "^"))] == []
        # A piece that no file names would be left in braces.
        assert [cue for cue in cues if re.search(r"\{[a-z]", cue.find + cue.unless)] == []


def test_only_the_opening_counts() -> None:
    assert needs_history("Great. What is it?")
    assert not needs_history("Madrid is hot. What is it?")
    assert needs_history("What is it? Madrid is hot.")


def test_a_long_opening_stands_alone_but_for_what_was_said() -> None:
    long = "the heron and " * (LONG // 3 + 1)
    assert not needs_history(f"he saw {long}")
    assert needs_history(f"Rewrite your previous answer with {long}")
    assert not needs_history("x" * WINDOW + " it")


PIECES = [
    *("it", "this", "that", "he", "her", "their", "there", "the other one", "what about", "why", "and", "else", "yes"),
    *(
        "is",
        "did",
        "was",
        "to",
        "of",
        "Nora",
        "heron",
        "a",
        "the",
        "album",
        "n't",
        "'s",
        "week",
        "your previous answer",
    ),
    *("esto", "eso", "lo", "su", "explícalo", "¿y", "más", "qué", "la", "gato", "él", "Ávila"),
    *(
        " ",
        " ",
        " ",
        ", ",
        ". ",
        "? ",
        "\n",
        ": ",
        '"',
        "-",
        "'",
        "(",
        "7",
        "é",
        "ж",
        "好",
        "\ud800",
        "\u200b",
        "\u0301",
    ),
]
questions = st.lists(st.sampled_from(PIECES), max_size=24).map("".join) | st.lists(
    st.sampled_from(PIECES), max_size=16
).map(" ".join)


@MANY
@given(questions | st.text(max_size=60), st.booleans())
@example("it", False)
@example("\x1cHe", False)
def test_total_and_deterministic(text: str, broad: bool) -> None:
    found = find_reference(text, broad=broad)
    assert found == find_reference(text, broad=broad)
    assert needs_history(text, broad=broad) is (found is not None)
    if found is not None:
        assert found.words
        assert all(word in fold(text).text for word in found.words.split())
        assert found.reason.code == f"reference.{found.kind}"


@MANY
@given(questions)
def test_broad_finds_at_least_as_much(text: str) -> None:
    strict = find_reference(text)
    assert strict is None or find_reference(text, broad=True) == strict


@MANY
@given(hidden(), st.booleans())
@example(("Did Nora say he left?", "Did No\u200bra say h\u00ade left?"), False)
@example(("Did Nora say he left?", "Did \u3164Nora say he left?"), True)
def test_invisible_characters_change_nothing(pair: tuple[str, str], broad: bool) -> None:
    text, changed = pair
    assert find_reference(changed, broad=broad) == find_reference(text, broad=broad)


@MANY
@given(st.sampled_from(POINTING), st.sampled_from(["  {}  ", "\n{}\n", "{}!", "\u200b{}", "¿{}?"]))
def test_what_is_around_a_question_changes_nothing(case: Case, around: str) -> None:
    assert needs_history(around.format(case.text))


HOSTILE = [
    *(
        "it ",
        "this ",
        "¿y ",
        "he ",
        "his heron ",
        "Nora he ",
        "that that ",
        "yes, ",
        "ok please ",
        "now ",
        "the former ",
    ),
    *("explícalo ", "a", "n't", "a'", "a-", ". ", "x\n", '"', "A\u0301", "é", "好", "\u200b", "\x1c", "B\u200b "),
]
# The promise: 200 ms for a megabyte, folding included. A busy runner may be this much slower.
SLACK = 3


@pytest.mark.parametrize("before", ["", "Did Nora say he "], ids=["alone", "after-a-question"])
@pytest.mark.parametrize("unit", HOSTILE, ids=ascii)
def test_a_hostile_megabyte_is_read_at_once(unit: str, before: str) -> None:
    needs_history("why"), needs_history("¿y eso?")  # compiled once, not on this clock
    text = before + unit * (1_000_000 // len(unit))
    assert is_within(0.2 * SLACK, lambda: find_reference(text, broad=True))


@pytest.mark.parametrize("unit", HOSTILE, ids=ascii)
def test_time_is_linear_in_the_length(unit: str) -> None:
    short, long = (unit * (size // len(unit)) for size in (60_000, 480_000))
    # Quadratic work would show 64 times.
    assert is_linear(lambda: find_reference(short), lambda: find_reference(long), most=24, grain=0.05)
