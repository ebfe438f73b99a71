"""Sentence ends: tables of what must and must not be cut, then properties over every chunking, then hostile input."""

from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from oracles import compat_limit, compat_split
from timing import is_linear, is_within
from turnout.text.sentence import SentenceStream, limit, split


class Case(NamedTuple):
    id: str
    marked: str  # the text with "‖" at every cut


CASES = [
    Case("plain", "One. ‖Two! ‖Three? ‖Four"),
    Case("lower-case-style", "it fell. ‖then it rose."),
    Case("decimal", "Pi is 3.14 or so. ‖Next."),
    Case("decimal-last", "Pi is 3.14. ‖Next."),
    Case("version", "Use v2.0 now. ‖Use v2.0. ‖It works."),
    Case("eg", "Shapes, e.g. circles, are round. ‖Next."),
    Case("eg-capital", "Bands, e.g. The Beatles, play."),
    Case("eg-comma", "Shapes, e.g., circles."),
    Case("eg-bracket", "Shapes (e.g. circles) are round."),
    Case("ie", "Round, i.e. without corners. ‖Next."),
    Case("etc-runs-on", "Cats, dogs, etc. and birds."),
    Case("etc-ends", "Cats, dogs, etc. ‖Birds too."),
    Case("etc-bracket", "Pets (cats, etc.) are nice. ‖Pets (cats, etc.) ‖They are nice."),
    Case("title", "Ask Dr. Smith or Mrs. Jones. ‖Mr. No left."),
    Case("title-bold", "Ask **Dr.** Smith."),
    Case("title-line", "Ask\nDr. Smith."),
    Case("acronym", "U.S. law is old. ‖The U.S. Congress met."),
    Case("acronym-ends", "It is made in the U.S. ‖The price fell. ‖He has a Ph.D. ‖It took years."),
    Case("acronym-all-caps-next", "The U.S. IT sector grew."),
    Case("acronym-question", "Is it in the U.S.? ‖Yes."),
    Case("initials", "J. R. R. Tolkien and C. S. Lewis wrote. ‖Others read."),
    Case("initial-ends", "Choose plan B. ‖Then go. ‖Take vitamin C. ‖It helps."),
    Case("variable", "Solve for x. ‖Substitute the value."),
    Case("unit-or-title", "It takes 5 ms. ‖The rest is idle. ‖Ms. Jones left."),
    Case("species", "E. coli is a bacterium."),
    Case("suffix", "Apple Inc. CEO Tim Cook spoke. ‖He works at Apple Inc. ‖It is big."),
    Case("street", "St. Louis is a city. ‖She lives on Main St. ‖It is quiet."),
    Case("number-sign", "See No. 5 and no. 6. ‖No. ‖I will not."),
    Case("pages", "See pp. 3-5 and p. 7 of vol. 2. ‖Next."),
    Case("figure", "Fig. 3 and fig. B show it. ‖See Fig. ‖The rest is text."),
    Case("et-al", "Smith et al. (2020) and Li et al. 2021 agree. ‖So do Roe et al. ‖Others differ."),
    Case("versus", "Batman vs. The Joker, approx. five hours."),
    Case("month", "On Jan. 5 it began. ‖It was Jan. ‖Snow fell."),
    Case("time-runs-on", "We met at 5 p.m. today."),
    Case("time-ends", "It is 5 p.m. ‖Then we left."),
    Case("interrobang", "Really?! ‖Yes."),
    Case("many-marks", "No!!! ‖Why??? ‖So."),
    Case("ellipsis-runs-on", "Well… maybe. ‖Well... maybe."),
    Case("ellipsis-ends", "Well… ‖Then no. ‖Well... ‖Then no."),
    Case("ellipsis-spaced", "Well . . . maybe. ‖Now."),
    Case("ellipsis-question", "What...? ‖yes."),
    Case("quote", 'He said "No." ‖Then he left. ‖“No.” ‖Then ‘no.’ ‖So «no.» ‖So.'),
    Case("quote-runs-on", 'He said "No." and left. ‖"Stop!" she cried. ‖“Why?” — he asked.'),
    Case("quote-german", "„Nein.“ ‖Dann ging er."),
    Case("quote-opens", 'He left. ‖"Why?" ‖(Nobody knows.) ‖So.'),
    Case("bracket", "It fell (hard.) ‖Then it rose [slowly.] ‖So."),
    Case("inline-code", "Use `.` to separate and `a.b.` to join. ‖See `x.` ‖Then stop."),
    Case("citation", "Paris is big.[1] ‖Rome is old.[2][^3] ‖Both are nice.¹ ‖So."),
    Case("emphasis", "**Bold.** ‖Then _slanted._ ‖So."),
    Case("invisible", "One.\u200b ‖Two."),
    Case("file", "Open main.py and ~/.bashrc now. ‖Open main.py. ‖Then run."),
    Case("url", "See https://example.com/a.b?c=d. ‖See example.com. ‖Mail a.b@example.org. ‖Done."),
    Case("leading-dot", "The .NET framework and Node.js run."),
    Case(
        "no-space",
        "One.Two is a path, asyncio.Queue a class. ‖It is over.‖The end came.‖Mr. Smith asked why?‖Nobody knew.",
    ),
    Case("no-space-name", "Assert.That(x) and Inc.One differ from a?b:c and Yahoo!mail."),
    Case("list-in-a-line", "1. Mix it ‖2. Bake it at 200. ‖3. Eat it"),
    Case("list-in-brackets", "You need: ‖(1) flour, ‖(2) sugar and 3 eggs"),
    Case("list-of-letters", "a) Mix it ‖b) Bake it"),
    Case("no-list", "Of 5) and 6) nobody knows. ‖It rose by 2. ‖3. was next."),
    Case(
        "address-last",
        "See https://example.com/a ‖It says so. ‖Ask the https://example.com API or mail a@example.org soon.",
    ),
    Case("two-addresses", "https://example.com/a ‖https://example.com/b"),
    Case("emoticon", "It works! :) ‖They said: 'no'. ‖Fine. :-)"),
    Case("time-first", "At 5 a.m. Mr. Smith left. ‖He came at 6 p.m. ‖Mr. Jones did not."),
    Case("pronoun", "It was you and I. ‖Did you see Albert I. Jones?"),
    Case("left-out", '"Bohr [...] used [...]" (Smith 55). ‖So did others.'),
    Case("dots-apart", "It is . . . I mean it. ‖“Less complex. . . .”"),
    Case("stop-apart", "It is so . ‖and it works . ‖Yes ."),
    Case("name-with-a-mark", "She works at Yahoo! in accounting. ‖She likes Yahoo! ‖He does not."),
    Case("space-before-mark", "Quoi ? ‖Oui !"),
    Case("spanish", "¿Qué es? ‖¡Una prueba! ‖El Sr. Gil y la Sra. Ruiz, p. ej. ellos, van. ‖Fin."),
    Case("spanish-plural", "En EE. UU. hay leyes. ‖Vive en EE. UU. ‖Luego volvió. ‖Gracias a Ud. por venir."),
    Case("before-christ", "Murió en el 44 a. C. en Roma. ‖Murió en el 44 a. C. ‖Luego nada."),
    Case("german-abbreviation", "Nimm z. B. Holz. ‖Gut."),
    Case("cjk", "好。‖再见！‖真的？！‖是。 ‖对"),
    Case("cjk-quote", "“不。”‖他走了。‖（好。）‖“是。”"),
    Case("cjk-opening-quote", "好。‖“不。”"),
    Case("cjk-reported", "「本当？」と聞いた。‖「はい。」‖次。"),
    Case("devanagari", "राम गया। ‖वह आया।‖फिर"),
    Case("arabic", "هل هذا صحيح؟ ‖نعم."),
    Case("paragraph", "A line\n\n‖Another\n \t\n‖A third"),
    Case("paragraph-crlf", "A line\r\n\r\n‖Another"),
    Case("paragraph-after-abbreviation", "Ask Dr.\n\n‖Smith"),
    Case("wrapped-line", "A line\nthat runs on. ‖Next\nline"),
    Case("wrapped-initial", "By\nJ. R. R. Tolkien."),
    Case("numbered", "1. First item\n‖2. Second\n‖3) Third. ‖More\n‖(4) Fourth"),
    Case("numbered-bold", "**1. Roots**\n‖**2.** Leaves\n‖- 3. Fruit"),
    Case("lettered", "a. First\n‖b. Second\n‖ii. Third\n‖c) Fourth"),
    Case("lettered-capital", "A. The first option"),
    Case("year-line", "It began in\n1990. ‖It ended"),
    Case("bullets", "These:\n‖- one\n  ‖* two\n‖• three\nand on"),
    Case("bullet-like", "It is\n-5 or\n**bold**"),
    Case("heading", "# Title\n‖Text. ‖More\n‖## 1. Part\n‖Text"),
    Case("quote-block", "> One\n‖> 1. Two. ‖Three\n‖>\n> Four\n> five."),
    Case("empty-heading", "# \nOne line\nruns on. ‖Two."),
    Case("rule", "Intro.\n\n‖---\n\nBody. ‖End."),
    Case("leading-space", " \n\n One. ‖Two."),
    Case("leading-stops", "... One. ‖Two."),
    Case("emoji", "Great! ‖😊 Next. ‖Last."),
    Case("fence", "Code:\n‖```py\na. B = 1\n\nC! D\n```\n‖After. ‖End."),
    Case("fence-tilde", "~~~\nA. B\n```\nC. D\n~~~\n‖After."),
    Case("fence-longer", "````\nA. B\n```\nC. D\n````  \n‖After."),
    Case("fence-indented", "- x\n  ‖```\n  A. B\n  ```\n‖After."),
    Case("fence-open", "```\nA. B\n\nC. D\n``` x\nE. F"),
    Case("fence-inline", "```a. B``` is code. ‖Next.\n\n‖Last"),
    Case("fence-mid-line", "Write ``` to open. ‖Next."),
    Case("wide-gap", "Ask Dr. Smith, etc." + " " * 80 + "‖and so on"),
    Case("empty", ""),
    Case("blank", " \n\n "),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_cuts(case: Case) -> None:
    text = case.marked.replace("‖", "")
    assert split(text) == [part for part in case.marked.split("‖") if part]
    assert "".join(_stream(text, list(text), None)[0]) == text


class Limit(NamedTuple):
    id: str
    text: str
    most: int | None
    expected: str


LIMITS = [
    Limit("none", "One. Two. ", None, "One. Two. "),
    Limit("below", "One. Two. ", 3, "One. Two. "),
    Limit("exact", "One. Two. \n", 2, "One. Two."),
    Limit("exact-open", "One. Two \n", 2, "One. Two"),
    Limit("above", "One.  Two.  Three.", 2, "One.  Two."),
    Limit("keeps-inner-space", " One.\n\nTwo. Three", 2, " One.\n\nTwo."),
    Limit("list", "Two kinds:\n- one\n- two", 2, "Two kinds:\n- one"),
    Limit("fence", "See:\n```\na. B\n```\nDone.", 2, "See:\n```\na. B\n```"),
    Limit("abbreviation", "Ask Dr. Smith, e.g. today. Or not.", 1, "Ask Dr. Smith, e.g. today."),
]


@pytest.mark.parametrize("case", LIMITS, ids=lambda case: case.id)
def test_limit(case: Limit) -> None:
    assert limit(case.text, case.most) == case.expected


@pytest.mark.parametrize("most", [0, -1])
def test_a_cap_below_one_is_refused(most: int) -> None:
    with pytest.raises(ValueError, match=f"max_sentences is {most}; it must be at least 1"):
        limit("One.", most)


class Arrival(NamedTuple):
    id: str
    fed: str
    emitted: str  # by then, and not later


ARRIVALS = [
    Arrival("needs-a-space", "One.", ""),
    Arrival("one-more", "One. ", ""),
    Arrival("mark-may-go-on", "One?", ""),
    Arrival("mark", "One?! T", "One?!"),
    Arrival("quote-needs-a-letter", '"One." ', ""),
    Arrival("quote", '"One." T', '"One."'),
    Arrival("ellipsis", "One… Tw", "One…"),
    Arrival("abbreviation", "One, etc. Tw", "One, etc."),
    Arrival("starter-needs-its-end", "In the U.S. The", ""),
    Arrival("starter", "In the U.S. The ", "In the U.S."),
    Arrival("cjk", "好。", ""),
    Arrival("cjk-next", "好。再", "好。"),
    Arrival("paragraph", "One\n\n", "One\n"),
    Arrival("marker-needs-its-end", "One\n2.", ""),
    Arrival("marker-needs-its-head", "One\n2. ", "One\n"),
    Arrival("bullet", "One\n- ", "One\n"),
    Arrival("bullet-needs-its-space", "One\n-", ""),
    Arrival("heading", "# One\n", "# One"),
    Arrival("fence-opens", "One\n```p", "One\n"),
    Arrival("fence-holds", "```\nOne. Two\n\n```", ""),
    Arrival("fence-closes", "```\nOne. Two\n\n```\n", "```\nOne. Two\n\n```"),
]


@pytest.mark.parametrize("case", ARRIVALS, ids=lambda case: case.id)
def test_emits_as_soon_as_decidable(case: Arrival) -> None:
    assert "".join(map(SentenceStream().feed, case.fed)) == case.emitted
    capped = SentenceStream(1)
    assert "".join(map(capped.feed, case.fed)) == case.emitted.rstrip()
    assert capped.full is bool(case.emitted)


def test_a_full_stream_takes_nothing_more() -> None:
    stream = SentenceStream(2)
    assert [stream.feed("One. Tw"), stream.feed("o. Three. Four"), stream.feed(" five. ")] == ["One.", " Two.", ""]
    assert stream.full
    assert stream.finish() == ""


def test_finish_gives_the_open_sentence_once() -> None:
    stream = SentenceStream(2)
    assert stream.feed("One. Two") == "One."
    assert not stream.full
    assert stream.finish() == " Two"
    assert stream.full
    assert stream.finish() == ""


PIECES = [
    *"aBé1.!?…。？।‖ \n\t\"'”“()[]*_#>-`~,中と」\u200b¹",
    *(
        "Dr",
        "e.g.",
        "etc.",
        "U.S.",
        "p.m.",
        "J. ",
        "The ",
        "Then",
        "word",
        "[1]",
        "...",
        "?!",
        "\n\n",
        "\r\n",
        " " * 70,
    ),
    *(
        "\n- ",
        "\n1. ",
        "\n# ",
        "\n```",
        "\n~~~\n",
        "\n```\n",
        "``",
        "“No.” ",
        "3.14",
        "main.py",
        "。」と",
        "." * 30,
        "x" * 30,
    ),
    *("1. ", " 2. ", " 2) ", "(1) ", " (2) ", "a) ", " b) ", "• 9. ", " • 10. ", "⁃9. ", ": "),
    *("http://", "https://x.y ", "www.", "a@b ", " :)", " ;-) ", " . . .", "[...]", "I. ", "and I. ", "Yahoo! "),
    *("At 5 a.m. ", "over.The ", "why?Now", "Mr. "),
]
texts = st.lists(st.sampled_from(PIECES), max_size=40).map("".join) | st.text(max_size=60)
caps = st.none() | st.integers(1, 4)


@st.composite
def chunked(draw: st.DrawFn) -> tuple[str, list[str]]:
    text = draw(texts)
    if draw(st.booleans()):
        return text, list(text)
    cuts = draw(st.lists(st.integers(0, len(text)), max_size=12).map(sorted))
    return text, [text[start:end] for start, end in pairwise([0, *cuts, len(text)])]


def _stream(text: str, chunks: list[str], most: int | None) -> tuple[list[str], SentenceStream]:
    stream = SentenceStream(most)
    return [*map(stream.feed, chunks), stream.finish()], stream


@given(texts)
def test_split_loses_nothing(text: str) -> None:
    parts = split(text)
    assert "".join(parts) == text
    assert all(parts)
    assert not any(part[0].isspace() for part in parts[1:])


@given(chunked(), caps)
@example(("```a. B```", list("```a. B```")), 1)
def test_any_chunking_emits_the_limit(cut: tuple[str, list[str]], most: int | None) -> None:
    text, chunks = cut
    emitted, stream = _stream(text, chunks, most)
    assert "".join(emitted) == limit(text, most)
    assert text.startswith("".join(emitted))
    assert stream.full or "".join(emitted) == text


@given(texts, st.integers(1, 4))
def test_limit_is_the_first_sentences(text: str, most: int) -> None:
    parts = split(text)
    whole = len(parts) < most or not text.strip()
    assert limit(text, most) == (text if whole else "".join(parts[:most]).rstrip())


@given(texts, st.integers(1, 4))
@example("a？“ 。b", 1)
def test_limit_is_idempotent_and_holds(text: str, most: int) -> None:
    once = limit(text, most)
    assert limit(once, most) == once
    assert len(split(once)) <= most


@given(st.lists(texts, max_size=4).map("".join), st.integers(300, 400))
def test_a_sentence_longer_than_the_window_changes_nothing(text: str, length: int) -> None:
    long = "word " * (length // 5) + text
    emitted, _ = _stream(long, list(long), None)
    assert "".join(emitted) == long
    assert "".join(_stream(long, list(long), 2)[0]) == limit(long, 2)


HOSTILE = [".", "a.", '"', "e.g. ", "a", "word ", " ", "\n", "。", '."', ">", "`", "(", "\n>", ".[", "```"]
COSTLY = ["好。", "? \n", "U.S. (", "\n- a", "\n1. ", "```\n", "\n~~~ ", ". ", "```\na. b\n", "# a\n", "“a.” ", "- "]
# The promise: 300 ms for a megabyte, 1 s for 100 KB in single characters. A busy runner may be this much slower.
SLACK = 3


@pytest.mark.alike(3)
@pytest.mark.parametrize("unit", HOSTILE, ids=repr)
def test_a_hostile_megabyte_is_split_at_once(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    assert is_within(0.3 * SLACK, lambda: split(text))


@pytest.mark.alike(5)
@pytest.mark.parametrize("unit", HOSTILE + COSTLY, ids=repr)
def test_a_hostile_stream_of_single_characters_keeps_up(unit: str) -> None:
    text = unit * (100_000 // len(unit))
    assert is_within(1 * SLACK, lambda: _stream(text, list(text), None))


@pytest.mark.alike(5)
@pytest.mark.parametrize("unit", HOSTILE + COSTLY, ids=repr)
def test_time_is_linear_in_the_length(unit: str) -> None:
    short, long = (unit * (size // len(unit)) for size in (30_000, 240_000))
    # Quadratic work would show 64 times.
    assert is_linear(lambda: split(short), lambda: split(long), most=24, grain=0.05)


class Seed(NamedTuple):
    id: str
    text: str
    most: int | None
    expected: str


SEED = [
    Seed("no-cap", "  One. Two.  ", None, "One. Two."),
    Seed("zero-is-no-cap", " One. Two. ", 0, "One. Two."),
    Seed("within", " One.  Two. ", 2, "One.  Two."),
    Seed("joined-by-one-space", "One.\n\nTwo!  Three?", 2, "One. Two!"),
    Seed("breaks-decimals", "Pi is 3.14 or so. Next.", 1, "Pi is 3."),
    Seed("run-of-marks", "What?! Yes... No.", 2, "What?! Yes..."),
    Seed("leading-marks-lost", "...One. Two. Three.", 1, "One."),
    Seed("open-end", "One. Two", 1, "One."),
    Seed("empty", "  ", 2, ""),
]


@pytest.mark.parametrize("case", SEED, ids=lambda case: case.id)
def test_compat(case: Seed) -> None:
    assert compat_limit(case.text, case.most) == case.expected


def test_compat_split() -> None:
    assert compat_split(" One.  Two?! .. Three ") == ["One.", "Two?!", "..", "Three"]
