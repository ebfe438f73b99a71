"""The matcher: what each kind of pattern finds, then 20,000 texts in all scripts against plain `re`."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from hypothesis import given, settings

from oracles import LAST_LETTER, UNDECIDED, PlainMatcher, is_word, patterns_of, tidy
from random_text import SCRIPTS, Salad, router, texts
from turnout.config.load import shipped
from turnout.core.query import Query, Reading
from turnout.text.fold import fold, fold_javascript
from turnout.text.match import (
    Lexicon,
    Matcher,
    OrderedPhrases,
    Pattern,
    Phrase,
    Regex,
    Substring,
    UnwrappableRegex,
    WholePhrase,
    wrap_regex,
)

MANY = settings(max_examples=200, deadline=None, derandomize=True)


class Case(NamedTuple):
    id: str
    pattern: Pattern
    found: tuple[str, ...]
    missing: tuple[str, ...]


PROVE = Phrase(("prove", "proves"))
GREETING = WholePhrase(("hi", "thank you", "привет", "你好"))

CASES = [
    Case(
        "phrase",
        PROVE,
        ("prove", "Prove it", "he PROVES it", "(prove)", "don't-prove", "prove.", "a\nprove\nb", "'prove'", "prove…"),
        ("", "improve", "proved", "prov e", "prove_it", "_prove", "prove2", "2prove"),
    ),
    Case(
        "phrase-beside-other-scripts",
        PROVE,
        ("请prove它", "proveを", "ให้prove", "prove가", "prove😀", "prove،", "prove»", "prove\ud800"),
        ("éprove", "proveé", "prove\u0301", "жprove", "proveλ", "ñproves", "proveع", "proveक", "prove٣"),
    ),
    Case(
        "phrase-in-disguise",
        PROVE,
        ("ｐｒｏｖｅ", "pr\u200bove", "рrоvе", "𝐩𝐫𝐨𝐯𝐞", "pro\u00adve", "p\u202erove", "PROVE\ufe0f", "\x00prove\x00"),
        ("próve",),
    ),
    Case(
        "phrase-of-words",
        Phrase(("step by step",)),
        ("step by step", "step  by \t step", "Step\u00a0by\u3000step", "a step by step b"),
        ("step\nby step", "stepby step", "step by steps", "footstep by step", "step-by-step"),
    ),
    Case("phrase-of-signs", Phrase(("```",)), ("```", "a```b", "````", "é```é"), ("``", "` ``")),
    Case("phrase-ends-in-sign", Phrase(("c++",)), ("c++", "c+++", "c++x", "我用c++"), ("abc++", "éc++", "c+")),
    Case("phrase-starts-with-sign", Phrase((".net",)), (".net", "a.net", "é.net"), (".nets", ".neté", "net")),
    Case("phrase-with-apostrophe", Phrase(("don't",)), ("don't", "DON’T", "don`t don´t"), ("dont", "don't_")),
    Case(
        "spanish",
        Phrase(("qué es", "définition")),
        ("qué es", "¿Qué es?", "QUÉ ES", "que\u0301 es", "la définition."),
        ("que es", "aqué es", "qué est", "équé es", "qué esé"),
    ),
    Case("one-accented-letter", Phrase(("à",)), ("à", "À", "a à b"), ("voilà", "àé", "a", "_à", "à1")),
    Case("russian", Phrase(("что такое",)), ("Что такое X?", "это что  такое"), ("ничто такое", "что такоеж")),
    Case("greek", Phrase(("τι είναι",)), ("ΤΙ ΕΊΝΑΙ;", "τι είναι αυτό"), ("ότι είναι", "τι ειναι")),
    Case("arabic", Phrase(("ما هو",)), ("ما هو الحل", "؟ما هو"), ("لما هو", "ما هوا")),
    Case("hebrew", Phrase(("מה זה",)), ("מה זה?",), ("כמה זה", "מה זהב")),
    Case("hindi", Phrase(("क्या है",)), ("यह क्या है?",), ("कक्या है",)),
    Case("chinese", Phrase(("什么是",)), ("什么是熵", "请问什么是entropy", "éa什么是b"), ("什么", "什 么是")),
    Case("japanese", Phrase(("とは",)), ("エントロピーとは何", "entropyとは", "ﾄはとは"), ("と は",)),
    Case("thai", Phrase(("คืออะไร",)), ("เอนโทรปีคืออะไร",), ("คือ อะไร",)),
    Case("korean", Phrase(("무엇",)), ("이것은 무엇입니까", "\u1106\u116e\u110b\u1165\u11ba"), ("무 엇",)),
    Case("emoji", Phrase(("🤔",)), ("🤔", "hm🤔hm", "🤔\ufe0f"), ("😀",)),
    Case("german-folds", Phrase(("Straße",)), ("straße", "STRASSE", "die Strasse."), ("strassen", "hauptstraße")),
    Case(
        "ordered",
        OrderedPhrases("what does", "mean"),
        ("what does it mean", "What does a b c mean?", "x\nwhat does it mean\ny", "what does (x) ,  mean"),
        (
            *("what does mean", "what does  mean", "mean what does", "what does it\nmean", "what does\nit mean"),
            *("what does it meaning", "somewhat does it mean", "what doesit mean", "what does itmean"),
        ),
    ),
    Case(
        "ordered-russian",
        OrderedPhrases("что значит", "слово"),
        ("что значит это слово?", "Что значит 字 слово"),
        ("что значит слово", "что значит\nэто слово", "что значит это словом"),
    ),
    Case(
        "whole",
        GREETING,
        (
            "hi",
            "Hi!",
            "hi, thank you",
            "¡hi! … thank  you?",
            "Привет, hi",
            "你好你好",
            "hi\nhi",
            "“hi”",
            "hi\u200b",
            "hi😀 $",
        ),
        ("", "!", "😀", "hi there", "hithank you", "hi 2", "hi é", "ahi", "приветы", "hi_", "hi\u20e3"),
    ),
    Case(
        "regex",
        Regex(r"\bstep\s+\d"),
        ("step 1", "Step\n\n2", "字step 3", "step\u30004"),
        ("footstep 1", "éstep 1", "step x", "step1", "step ٣"),
    ),
    Case(
        "regex-line",
        Regex(r"\bfirst\b[^\n]*\bthen\b"),
        ("first then", "first é then", "first, 字 then"),
        ("first\nthen", "éfirst then", "first thené", "first athen"),
    ),
    Case("regex-accented", Regex(r"\bétapes?\s+\d"), ("étape 1", "ÉTAPES 22"), ("etape 1", "uétape 1", "étapeé 1")),
    Case("regex-han", Regex(r"第\d+步"), ("第12步", "a第1步b"), ("第步", "第 1步")),
    Case("regex-word-letters", Regex(r"\bcaf\w+\s"), ("café x", "cafés x", "caf字 x", "cafe x"), ("caf x", "décafé x")),
    Case("regex-class", Regex(r"[×÷]\s*\d"), ("é ×2", "÷ 3"), ("x2",)),
    Case("substring", Substring("prove"), ("prove", "improved", "éprové prove"), ("prov",)),
    Case("substring-accented", Substring("fé"), ("café", "CAFÉS", "fé"), ("cafe", "éf")),
]


def finds(pattern: Pattern, text: str) -> bool:
    return Matcher([pattern]).scan(fold(text).text) == (0,)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_finds(case: Case) -> None:
    assert [text for text in case.found if not finds(case.pattern, text)] == []
    assert [text for text in case.missing if finds(case.pattern, text)] == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_plain_re_agrees(case: Case) -> None:
    """The second opinion used below is itself held to the table."""
    plain = PlainMatcher([case.pattern])
    assert [text for text in case.found if plain.scan(fold(text).text) != (0,)] == []
    assert [text for text in case.missing if plain.scan(fold(text).text) != ()] == []


def test_every_character_bounds_a_word_or_belongs_to_it() -> None:
    """A word character is Python's, without the unspaced scripts; asked of every character there is."""
    matcher = Matcher([Phrase(("go",))])
    wrong = [
        hex(code)
        for code in (*range(0xD800), *range(0xE000, LAST_LETTER + 1), *range(0xE0000, 0xE0200))
        for character in (chr(code),)
        if not UNDECIDED.match(character) and bool(matcher.scan(f"go{character}")) == is_word(character)
    ]
    assert wrong == []


# Phrases beyond what the shipped profiles ask for: every script, every form, signs at either end.
FOREIGN: list[Pattern] = [
    *(Phrase((words,)) for words in ("qué es", "definición", "paso a paso", "año", "à", "c'est-à-dire", "Straße")),
    *(Phrase((words,)) for words in ("что такое", "объясни", "докажи", "ёлка", "и", "τι είναι", "ορισμός")),
    *(Phrase((words,)) for words in ("ما هو", "لماذا", "מה זה", "क्या है", "अर्थ", "คืออะไร", "什么是", "第一步", "定义")),
    *(Phrase((words,)) for words in ("とは", "ステップ", "무엇", "설명", "🤔", "c++", "c#", ".net", "№ 5", "ﬁnd", "½")),
    Phrase(("explica", "explicar", "explicación")),
    Phrase(("докажите", "доказать", "proof")),
    OrderedPhrases("qué significa", "palabra"),
    OrderedPhrases("что значит", "слово"),
    OrderedPhrases("什么", "意思"),
    OrderedPhrases("step", "字"),
    WholePhrase(("привет", "hola", "你好", "γεια σου", "γεια", "שלום", "नमस्ते", "สวัสดี", "안녕", "hi")),
    Regex(r"\bпервое\b[^\n]*\bзатем\b"),
    Regex(r"\bшаг\s+\d"),
    Regex(r"\bétape\s+\d"),
    Regex(r"第\d+步"),
    Regex(r"\bcaf\w+\s+\w+"),
    Regex(r"(?:año|jahr)\s[^\n]{0,20}\bη\b"),
    Substring("prove"),
    Substring("ñ"),
    Substring("слов"),
    Substring("步"),
]


def shipped_patterns() -> Iterator[Pattern]:
    """All that the shipped profiles look for word by word; the one that looks inside words has an oracle of its own."""
    for name in shipped():
        resolved = router(name).profile.resolved
        if resolved.get("text", {}).get("fold", "unicode") == "unicode":
            yield from patterns_of(resolved)


PATTERNS = list(dict.fromkeys((*shipped_patterns(), *FOREIGN)))
# A set that asks for ASCII letters only has a shorter way past most texts.
ASCII_ONLY = [
    i for i, pattern in enumerate(PATTERNS) if not any(sign.isalpha() and sign > "\x7f" for sign in repr(pattern))
]
WORDS = [
    word
    for pattern in PATTERNS
    for word in (
        *(pattern.forms if isinstance(pattern, Phrase | WholePhrase) else ()),
        *((pattern.text,) if isinstance(pattern, Substring) else ()),
        *((f"{pattern.first} x {pattern.then}",) if isinstance(pattern, OrderedPhrases) else ()),
    )
]
WORDS += ["первое", "затем", "шаг 1", "étape 2", "第3步", "cafés con", "año η", "first", "then", "step 4", "5. ", "2+2"]
WORDS += ["7 × 6 =", "on the far right", "in the page", "from the upper left table"]
# What the regular expressions of the shipped profiles look for, a few each.
WORDS += ["80 % of my quota", "my plan", "3 credits", "do i have credits", "you have credits", "how many credits"]
WORDS += ["write a function", "script that", "write alerts", "in this function", "refactor", "20 % less", "account for"]
WORDS += ["plan is to", "plan es usar", "limit 5 offset", "más calor fuera que dentro", "plus froid dehors que dedans"]
WORDS += ["warmer inside than outside", "draußen wärmer als drinnen", "wärmer als draußen", "más calor que fuera"]
WORDS += ["plus chaud que dehors", "colder out than in", "humidity outside and inside", "warm inside or outside"]

TEXTS = 20_000
PER_SCRIPT = -(-TEXTS // len(SCRIPTS))


class Opinions(NamedTuple):
    """Three on the same text: all patterns together, those of ASCII letters alone, and `re`."""

    whole: Matcher
    ascii_only: Matcher
    plain: PlainMatcher

    def agree(self, text: str) -> tuple[int, ...]:
        folded = fold(text).text
        wanted = self.plain.scan(folded)
        found = self.whole.scan(folded)
        assert found == wanted, (text, [PATTERNS[i] for i in set(found) ^ set(wanted)])
        assert [ASCII_ONLY[i] for i in self.ascii_only.scan(folded)] == [i for i in wanted if i in ASCII_ONLY], text
        return wanted


@pytest.fixture(scope="module")
def opinions() -> Opinions:
    assert len(ASCII_ONLY) > 150
    assert len(PATTERNS) > len(ASCII_ONLY) + 30
    return Opinions(Matcher(PATTERNS), Matcher([PATTERNS[i] for i in ASCII_ONLY]), PlainMatcher(PATTERNS))


@pytest.mark.alike(15)
@pytest.mark.parametrize("script", SCRIPTS)
def test_agrees_with_plain_re(script: str, opinions: Opinions) -> None:
    """Of 20,000 texts in all scripts, each pattern is found in exactly those in which `re` finds it."""
    hits: set[int] = set()
    texts_hit = 0
    for text in Salad(f"match {script}", WORDS, SCRIPTS[script]).texts(PER_SCRIPT):
        found = opinions.agree(text)
        texts_hit += bool(found)
        hits.update(found)
    # Agreement on silence would prove nothing: most texts have hits, and nearly all patterns are hit.
    assert texts_hit > 0.5 * PER_SCRIPT
    assert len(hits) > 0.85 * len(PATTERNS)


def test_agrees_with_plain_re_on_long_texts_of_everything(opinions: Opinions) -> None:
    letters = "".join(SCRIPTS.values())
    for text in Salad("match everything", WORDS, letters, longest=60).texts(300):
        opinions.agree(text)


@MANY
@given(texts())
def test_agrees_with_plain_re_on_any_text(opinions: Opinions, text: str) -> None:
    opinions.agree(text)


def test_without_wrapping_boundaries_are_ascii() -> None:
    lexicon = Lexicon()
    lexicon.add(Regex(r"\bprove\b"), "a")
    lexicon.add(Substring("prove"), "b")
    lexicon.add(Substring("fé"), "c")
    matcher = lexicon.compile(wrap=False)
    assert matcher.scan(fold_javascript("Éprove").text) == (0, 1)
    assert matcher.scan(fold_javascript("improve café").text) == (1, 2)


def test_names_hits_in_ascending_order() -> None:
    matcher = Matcher([Phrase((word,)) for word in "dcbae"])
    assert matcher.scan("a b c d") == (0, 1, 2, 3)


def test_without_patterns_nothing_is_found() -> None:
    assert Matcher([]).scan("anything") == ()


def test_the_longest_text_of_one_word_is_scanned_whole() -> None:
    matcher = Matcher([PROVE])
    assert matcher.scan("a " * 500_000 + "prove") == (0,)
    assert matcher.scan("é " * 500_000 + "prove") == (0,)


def test_mutes_by_code() -> None:
    lexicon = Lexicon()
    for word, code in (("a", "signals.x"), ("b", "signals.y"), ("c", "signals.x")):
        lexicon.add(Phrase((word,)), code)
    reading = Reading(Query("a b c"), "a b c", "a b c", 5, lexicon.compile().scan("a b c"))
    muted = lexicon.mute(reading, frozenset(("signals.x",)))
    assert (muted.hits, muted.muted) == ((1,), frozenset(("signals.x",)))
    assert lexicon.mute(reading, frozenset(("signals.z",))).hits == reading.hits


def test_a_letter_inside_brackets_cannot_be_wrapped() -> None:
    with pytest.raises(UnwrappableRegex, match="é"):
        wrap_regex(r"caf[eé]")


# In the wrapped view a letter stands on both sides of every non-ASCII one; no pattern may notice.
FOOLED = [
    Case("underscore-at-the-start", Phrase(("_config",)), ("_config",), ("éconfig",)),
    Case("underscore-at-the-end", Phrase(("x_",)), ("x_",), ("xé",)),
    Case("underscore-substring", Substring("a_"), ("a_",), ("aé",)),
    Case("one-word-letter", Regex(r"\bcaf\w\b"), ("cafe", "café"), ("cafés",)),
    Case("any-character", Regex(r"\bcaf.\b"), ("cafe", "café"), ("cafés",)),
    Case("letter-by-number", Regex(r"\bcaf\x{e9}\b"), ("café",), ("cafe",)),
    Case("letter-by-property", Regex(r"\bcaf\pL\b"), ("cafe", "café"), ("caf1",)),
]


@pytest.mark.parametrize("case", FOOLED, ids=lambda case: case.id)
def test_is_not_fooled_by_its_own_view(case: Case) -> None:
    test_finds(case)


def test_runs_of_blanks_read_as_one(opinions: Opinions) -> None:
    for text in Salad("match blanks", WORDS, " \t\n.é字", longest=6).texts(1000):
        folded = fold(text).text
        assert opinions.whole.scan(folded) == opinions.whole.scan(tidy(folded)), text
