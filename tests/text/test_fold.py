"""The fold: what readers cannot tell apart is one text, twice is once, and no run of marks makes it slow."""

import re
import unicodedata
from typing import NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from random_text import INVISIBLE, SCRIPTS, hidden, texts
from timing import is_within
from turnout.text.fold import MAX_MARKS, WINDOW, fold, fold_javascript

MANY = settings(max_examples=200, deadline=None, derandomize=True)


class Case(NamedTuple):
    id: str
    text: str
    folded: str
    units: int | None = None
    """UTF-16 units; the length of the text when left out."""


CASES = [
    Case("empty", "", ""),
    Case("plain", "what is it", "what is it"),
    Case("ascii-case", "What IS It", "what is it"),
    Case("ascii-ends", "  a b \n", "a b"),
    Case("ascii-spaces", "a \t  b", "a b"),
    Case("ascii-spaces-around-newline", "a \n  b", "a\nb"),
    Case("ascii-newlines-stay", "a\n\n\nb", "a\n\n\nb"),
    Case("ascii-cr-vt-ff", "a\rb\vc\fd", "a\nb\nc\nd"),
    Case("ascii-controls", "a\x00\x01b\x1f\x7f", "ab", 2),
    Case("ascii-only-controls", "\x00\x00", "", 0),
    Case("case", "ÉCOLE Привет ΣΊΣΥΦΟΣ", "école привет σίσυφοσ"),
    Case("sharp-s", "Straße STRASSE", "strasse strasse"),
    Case("dotted-i", "İ", "i̇"),
    Case("ligature", "ﬁnd ofﬁce", "find office"),
    Case("fullwidth", "Ｐｒｏｖｅ　ｉｔ", "prove it"),
    Case("mathematical", "𝐩𝐫𝐨𝐯𝐞 𝓲𝓽 ⓝⓞⓦ", "prove it now", 19),
    Case("superscript", "x² ½ ①", "x2 1/2 1"),
    Case("composed", "cafe\u0301", "café"),
    Case("halfwidth-kana", "ｶﾞ", "ガ"),
    Case("hangul-jamo", "\u1112\u1161\u11ab", "한"),
    Case("quotes", "what‘s what’s don‛t ‚x‚ dont´t", "what's what's don't 'x' dont't"),
    Case("double-quotes", "“a” „b‟ «c»", '"a" "b" "c"'),
    Case("modifier-apostrophe", "ŉ donʼt", "'n don't"),
    Case("dashes", "step‐by‑step–and—so − 1", "step-by-step-and-so - 1"),
    Case("fraction-slash", "3⁄4", "3/4"),
    Case("ellipsis", "wait…", "wait..."),
    Case("spaces", "a\u00a0b\u1680c\u2003d\u202fe\u3000f", "a b c d e f"),
    Case("line-separators", "a\u2028b\u2029c\u0085d é", "a\nb\nc\nd é"),
    Case("zero-width", "pr\u200bo\u200dve\ufeff", "prove", 5),
    Case("soft-hyphen", "the\u00adorem", "theorem", 7),
    Case("bidi", "\u202eevorp\u202c \u2066x\u2069", "evorp x", 7),
    Case("variation", "❤\ufe0f", "❤", 1),
    Case("tags", "hi\U000e0070\U000e0072\U000e006f\U000e0076\U000e0065", "hi", 2),
    Case("combining-joiner", "a\u034fb", "ab", 2),
    Case("hangul-filler", "a\u3164b\uffa0c", "abc", 3),
    Case("only-invisible", "\u200b\u2060\ufeff", "", 0),
    Case("emoji-astral-units", "😀", "😀", 2),
    Case("surrogate-alone", "a\ud800b", "a\ufffdb", 3),
    Case("surrogate-pair-joined", "\ud83d\ude00", "😀", 2),
    Case("lookalike-cyrillic", "рrоvе the тheоrem", "prove the theorem"),
    Case("lookalike-greek", "prονe", "prove"),
    Case("lookalike-armenian", "fսոction", "function"),
    Case("lookalike-latin", "desıɡn", "design"),
    Case("lookalike-capital", "РRОVЕ", "prove"),
    Case("lookalike-beside-digit", "k8ѕ", "k8s"),
    Case("lookalike-behind-mark", "b\u0336аsе", "b\u0336ase"),
    Case("lookalike-under-mark", "bа\u030aа", "båa"),
    Case("cyrillic-word-stays", "как this работает", "как this работает"),
    Case("greek-word-stays", "τι is this", "τι is this"),
    Case("arabic-stays", "ما هو", "ما هو"),
    Case("han-stays", "什么是 entropy", "什么是 entropy"),
]


def tidy(folded: str) -> str:
    """Runs of blanks as patterns read them: as one, and none at a line's ends."""
    return re.sub(" *\n *", "\n", re.sub(" +", " ", folded)).strip()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_folds(case: Case) -> None:
    units = len(case.text) if case.units is None else case.units
    folded = fold(case.text)
    assert (tidy(folded.text), folded.units, folded.windowed) == (case.folded, units, False)


# More different characters than are worth replacing one by one, none of which joins its neighbour.
MANY_OTHERS = "".join(chr(0x4E00 + i) for i in range(40))


@pytest.mark.parametrize("beside", ["字", "ж", "😀", "\ud800", MANY_OTHERS], ids=ascii)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_folds_the_same_beside_other_scripts(case: Case, beside: str) -> None:
    """There are faster ways for plainer texts; which is taken does not show."""
    alone = fold(f"x {case.text} x")
    together = fold(f"x {case.text} x\n{beside}")
    assert together.text == f"{alone.text}\n{beside}".replace("\ud800", "\ufffd")
    assert together.units == alone.units + 1 + len(beside.encode("utf-16-le", "surrogatepass")) // 2


@MANY
@given(texts())
@example("a\r\nb")
@example("\u0301")
@example("ɡ")
def test_folds_any_text_the_same_beside_other_scripts(text: str) -> None:
    alone = fold(f"x {text} x")
    for beside in ("ж", MANY_OTHERS):
        together = fold(f"x {text} x\n{beside}")
        assert (together.text, together.units) == (f"{alone.text}\n{beside}", alone.units + 1 + len(beside))


@pytest.mark.parametrize("gap", ["\r\n", "\r\x00\n", "\r\u200b\n"], ids=ascii)
@pytest.mark.parametrize("word", ["a", "é", "ж", "\ud800"], ids=ascii)
def test_a_carriage_return_ends_the_line_it_ends(word: str, gap: str) -> None:
    folded = fold(f"{word}{gap}b")
    assert re.fullmatch(f"{word}\n+b".replace("\ud800", "\ufffd"), folded.text)
    assert folded == fold(f"{word}\r\nb")


@MANY
@given(texts())
@example("bа\u030aа")
@example("\u00a8")
@example("α\u0345\u0301")
def test_twice_is_once(text: str) -> None:
    once = fold(text).text
    assert fold(once).text == once


def test_every_character_twice_is_once() -> None:
    # Two planes hold everything that has case, compatibility forms or marks.
    changed = [
        hex(code)
        for code in range(0x20000)
        for once in (fold(f"a{chr(code)}b").text,)
        if once != f"a{chr(code)}b" and fold(once).text != once
    ]
    assert changed == []


def test_every_default_ignorable_character_is_dropped() -> None:
    # Unicode's property Default_Ignorable_Code_Point, written out: the standard library does not have it.
    ranges = (
        *((0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F)),
        *((0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF)),
        *((0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
    )
    codes = [code for first, last in ranges for code in range(first, last + 1)]
    assert [hex(code) for code in codes if fold(f"a{chr(code)}b") != fold("ab")] == []


def test_every_control_is_dropped_or_a_line_end() -> None:
    folded = {fold(f"a{chr(code)}b").text for code in range(0xA0) if unicodedata.category(chr(code)) == "Cc"}
    assert folded == {"ab", "a b", "a\nb"}


@MANY
@given(hidden())
@example(("a\r\nb", "a\r\x00\nb"))
@example(("é\r\nb", "é\r\u200b\nb"))
@example(("hi", "\u200bhi"))
def test_invisible_characters_change_nothing(pair: tuple[str, str]) -> None:
    text, changed = pair
    assert fold(changed) == fold(text)


@MANY
@given(texts())
def test_leaves_one_case_one_kind_of_blank_and_nothing_invisible(text: str) -> None:
    folded = fold(text).text
    assert folded == folded.strip()
    assert re.search(r"[A-Z\t\r\v\f\u00a0\u2028]", folded) is None
    assert not set(folded) & set(INVISIBLE)


@MANY
@given(st.text([chr(code) for code in range(128)], max_size=60))
def test_case_of_ascii_changes_nothing(text: str) -> None:
    assert fold(text.swapcase()) == fold(text)


@MANY
@given(texts())
def test_units_are_never_more_than_the_original_has(text: str) -> None:
    assert 0 <= fold(text).units <= len(text.encode("utf-16-le", "surrogatepass")) // 2


class Slow(NamedTuple):
    id: str
    text: str


MARKS = SCRIPTS["marks"][:-5]
SLOW = [
    Slow("one-mark", "a" + "\u0301" * 200_000),
    Slow("marks-out-of-order", "a" + "\u0301\u0323\u0327\u0345" * 50_000),
    Slow("marks-above-the-first-plane", "a" + "\U0001d165\U0001d16d" * 50_000),
    Slow("runs-just-under-the-cap", ("a" + "\u0301\u0323" * 15) * 6_000),
    Slow("joiners-between-marks", "a" + "\u0301\u034f\u0323\u200d" * 50_000),
    Slow("every-mark", "a" + MARKS * 10_000),
    Slow("expanding", "ﷺ" * 100_000),
    Slow("one-mixed-word", "аb" * 100_000),
    Slow("no-latin-in-a-long-word", "п" * 200_000),
    Slow("blanks", "é" + " \u00a0" * 100_000 + "é"),
    Slow("lines", "é" + " \n" * 100_000),
]


@pytest.mark.parametrize("case", SLOW, ids=lambda case: case.id)
def test_is_never_slow(case: Slow) -> None:
    # The quadratic part of NFKC alone would take 5 s and more here; linear work takes 10 to 60 ms.
    assert is_within(0.6, lambda: fold(case.text))


def test_runs_of_marks_are_capped() -> None:
    run = "x" + "\u0323" * 100
    assert fold(run + "." * 2000).text == "x" + "\u0323" * MAX_MARKS + "." * 2000
    few = "x" + "\u0323" * MAX_MARKS
    assert fold(few).text == few


# A mark may join any letter before it, so a text with one is never folded character by character. Nothing joins a `q`.
MARKED = "q\u0301"


def test_a_very_long_text_with_marks_is_read_at_both_ends() -> None:
    half = WINDOW // 2
    text = MARKED + "a" * half + "m" * 100 + "b" * half
    folded = fold(text)
    assert folded.windowed
    assert folded.units == len(text)
    assert folded.text == f"{MARKED}{'a' * (half - len(MARKED))}\n{'b' * half}"
    assert fold(folded.text).text == folded.text


def test_a_very_long_ascii_text_is_read_whole() -> None:
    folded = fold("A" * 2_000_000)
    assert (len(folded.text), folded.windowed) == (2_000_000, False)


def test_up_to_the_window_nothing_is_left_out() -> None:
    most = MARKED + "a" * (WINDOW - len(MARKED))
    assert fold(most).text == most
    assert not fold(most).windowed
    assert fold(f"{most}a").windowed
    # Invisible characters do not push a text over it.
    assert not fold("\u200b".join(most)).windowed


JAVASCRIPT = [
    Case("empty", "", ""),
    Case("lower", "Prove IT", "prove it"),
    Case("nothing-else", "  a\u00a0’\u200b\r\n", "  a\u00a0’\u200b\r\n"),
    Case("astral", "A😀", "a😀", 3),
    Case("surrogate", "A\ud800", "a\ud800", 2),
    Case("final-sigma", "ΟΔΟΣ", "οδος"),
    Case("longer-in-lower-case", "İ", "i̇", 1),
]


@pytest.mark.parametrize("case", JAVASCRIPT, ids=lambda case: case.id)
def test_folds_as_javascript_does(case: Case) -> None:
    units = len(case.text) if case.units is None else case.units
    folded = fold_javascript(case.text)
    assert (folded.text, folded.units, folded.windowed) == (case.folded, units, False)
