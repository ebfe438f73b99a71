"""Which language a text is in, and that it is not said where it cannot be told."""

from typing import NamedTuple

import pytest

from turnout.text.language import ASKED, WRITTEN, asking_words, guess, stop_words


class Case(NamedTuple):
    text: str
    lang: str


CASES = (
    Case("Who founded the company?", "en"),
    Case("¿Cuándo se fundó la empresa?", "es"),
    Case("Wer hat das Unternehmen gegründet?", "de"),
    Case("Qui a fondé cette entreprise et pourquoi ?", "fr"),
    Case("Perché il treno è in ritardo?", "it"),
    Case("Onde fica a estação e quem é você?", "pt"),
    Case("Waarom heeft hij het boek niet?", "nl"),
    Case("Varför är det så kallt på vintern?", "sv"),
    Case("東京の人口は?", "ja"),
    Case("日本的首都是哪里", "zh"),
    Case("서울의 인구", "ko"),
    Case("Когда началась война?", "ru"),
    Case("Коли почалася війна?", "uk"),
    Case("Πότε άρχισε;", "el"),
    Case("iPhone 17 の値段 Apple", "ja"),
    Case("Berlin Paris", ""),
    Case("", ""),
    Case("12 + 30", ""),
    Case("die", ""),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.text)
def test_guess(case: Case) -> None:
    assert guess(case.text) == case.lang


def test_every_language_has_its_function_words() -> None:
    assert all(len(stop_words(lang)) > 80 for lang in WRITTEN)
    assert stop_words("xx") == frozenset()


def test_what_questions_are_made_with_is_no_function_word() -> None:
    assert all(asking_words(lang) and not asking_words(lang) & stop_words(lang) for lang in ASKED)
    assert asking_words("xx") == frozenset()
