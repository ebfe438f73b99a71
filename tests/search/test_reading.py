"""Passages, words and their ranking, without a database."""

from hypothesis import given
from hypothesis import strategies as st

from turnout.search.analysis import plain, read_words, runs, stem
from turnout.search.cut import cut
from turnout.search.fuse import fuse
from turnout.search.rank import Judge, read_question, weigh

texts = st.text(st.sampled_from("ab é\n.!?日本語 \u0301W"), max_size=300)


@given(texts, st.integers(10, 80))
def test_passages_are_the_text(text: str, size: int) -> None:
    found = cut(text, size)
    assert all(text[start : start + len(said)] == said and len(said) <= size for start, said in found)
    assert "".join("".join(said for _, said in found).split()) == "".join(text.split())


@given(texts, texts)
def test_what_a_passage_covers_is_a_share(question: str, passage: str) -> None:
    asked = read_question(question, "en", ("de",))
    fit = Judge(asked, weigh(asked, {}, 10), 50.0).rate(passage, "en")
    assert fit.score >= 0
    assert 0 <= fit.coverage <= 1 + 1e-9


@given(st.text(max_size=100))
def test_a_stem_needs_no_quotes(text: str) -> None:
    for word in read_words(text):
        for made in (word, stem(word, "en"), stem(word, "de"), plain(word)):
            assert made
            assert not set(made) & set(" '\"\\:|&!()*")


def test_words() -> None:
    assert read_words("It's Straße 12, 東京都!") == ["it", "s", "strasse", "12", "東京", "京都"]
    assert stem("running", "en") == stem("runs", "en") == "run"
    assert stem("gestión", "es") == stem("gestion", "es")
    assert runs("ab") == {" ab "}


def test_without_vectors_the_order_is_that_of_full_text() -> None:
    assert [ident for ident, *_ in fuse({"b": 2.0, "a": 1.0}, {})] == ["b", "a"]


def test_vectors_alone_do_not_overrule_a_clear_first() -> None:
    assert fuse({"a": 9.0, "b": 1.0}, {"b": 0.9, "a": 0.8})[0][0] == "a"
