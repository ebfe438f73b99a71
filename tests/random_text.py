"""Texts nobody wrote: every script, invisible characters, and the profiles' own phrases, whole and damaged.

Two sources: a seeded `Salad` for thousands of texts, and hypothesis strategies (`texts`) for properties, which shrink.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

import turnout
from turnout.config.load import shipped

SCRIPTS: dict[str, str] = {
    "latin": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "accented": "áàâäãåæçčďéèêëěğíìîïıİłñňóòôöõøœřśšßťúùûüůýžÉÑÖǅﬁﬃſ",
    "cyrillic": "абвгдеёжзийклмнопрстуфхцчшщъыьэюяіјѕАВЕКМНОРСТХЁЙ",
    "greek": "αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώϊϋΐΰΑΒΕΖΗΙΚΜΝΟΡΤΥΧΣᾳῼ",
    "arabic": "ابتثجحخدذرزسشصضطظعغفقكلمنهوي٠١٢٣٤٥ًٌٍَُِّْـﷺﻼ،؟",
    "hebrew": "אבגדהוזחטיךכלםמןנסעףפץצקרשתְֱֲֳִֵֶַָׁשּׂ׳״",
    "devanagari": "अआइईउऊएऐओऔकखगघचछजझटठडढणतथदधनपफबभमयरलवशषसहािीुूेैोौ्ंःँ़क़०१२३४५६७८९।",
    "thai": "กขคงจฉชซญดตถทธนบปผพฟภมยรลวศสหอฮะัาำิีึืุูเแโใไ็่้๊๋์๐๑๒๓ฯๆ",
    "han": "的一是不了人我在有他这中大来上国个到说们为子和你地出道也时年什么定义第步然后问题𠀀𪚥々〆〇",
    "kana": "あいうえおかきくけこさしすせそたちつてとがぎぐげごアイウエオガギグゴッャュョーｱｲｳﾞﾟゝヽ",
    "hangul": "가나다라마바사아자차카타파하각난답를은는이가을에서의로한국어ㄱㄴㄷㅏㅑ\u1100\u1161\u11a8",
    "emoji": "😀😂🤔👍🏽👩\u200d💻🇫🇷❤\ufe0f🧪🚀\U0001f9d1\u200d\U0001f680✨⚠\ufe0f1\ufe0f\u20e3",
    "marks": "\u0300\u0301\u0302\u0303\u0308\u030a\u0327\u0328\u0323\u0344\u0345\u20d7\u3099\u1ab0\U0001d165aeоиn",
    "punctuation": ".,;:!?¿¡…·‘’‚“”„«»()[]{}<>—–-‐‑−_/\\|*&%$#@^~`'\"°´′″、。「」！？（）〜・",
    "digits": "0123456789²³½¼①Ⅷ٣३๓〇０１２٫",
    "control": "\x00\x01\x07\x08\t\n\x0b\x0c\r\x1b\x1f\x7f\x85\xa0\xad\u1680\u2003\u2028\u2029\u202f\u3000\u2800",
    "surrogate": "\ud800\ud83d\udbff\udc00\ude00\udfff",
}

# One of each kind the fold drops: C0 and C1 controls, soft hyphen, joiners, bidi marks, fillers, selectors, tags.
INVISIBLE = (
    "\x00\x01\x08\x0e\x1f\x7f\x80\x9f\xad\u034f\u061c\u115f\u17b4\u180b\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c"
    "\u202d\u202e\u2060\u2061\u2066\u2067\u2068\u2069\u206f\u3164\ufe00\ufe0f\ufeff\uffa0\ufff9\U0001bca0\U0001d173"
    "\U000e0001\U000e0020\U000e0041\U000e007a\U000e007f\U000e0100"
)

# What may stand between two words: what separates them, what glues them, and what only seems to do either.
JOINTS = (
    *(" ", " ", " ", " ", " ", "  ", "\n", "\t", ", ", ". ", "? ", "-", "'", "/", '"', "…", "\u00a0", "\u2028"),
    *("", "_", "7", "é", "ж", "λ", "ع", "ת", "क", "ि", "ไ", "你", "ー", "한", "😀"),
    *("\u0301", "\u200b", "\x00", "\ud800"),
)

LOOKALIKES = dict(zip("aeopcyxijsdhqwg", "аеорсухіјѕԁһԛԝɡ", strict=True))


@functools.cache
def router(name: str) -> turnout.Router:
    return turnout.load(name, config="")


def words_of(resolved: Mapping[str, Any]) -> list[str]:
    """Every phrase a profile's layers name, in the order of the file."""
    keys = ("words", "ordered", "whole", "any", "all", "none")

    def strings(value: object) -> Iterator[str]:
        if isinstance(value, str):
            yield from value.split("|")
        elif isinstance(value, list):
            for item in value:
                yield from strings(item)

    found: list[str] = []
    for layer in resolved["layers"]:
        rules = [rule["when"] for rule in layer.get("rules", ())]
        conditions = [one for when in rules for one in (when if isinstance(when, list) else [when])]
        found += [word for phrases in layer.get("phrases", {}).values() for word in strings(phrases)]
        for entry in (*layer.get("signals", ()), *conditions):
            found += [word for key in keys for word in strings(entry.get(key, []))]
    return list(dict.fromkeys(found))


@functools.cache
def vocabulary() -> tuple[str, ...]:
    """The phrases of all shipped profiles, and what their patterns ask for."""
    extra = ("first", "then", "step 3", "1. ", "2+2", "(3 - 1) x 4 =", "on the far right", "in the left figure", "???")
    words = [word for name in shipped() for word in words_of(router(name).profile.resolved)]
    return tuple(dict.fromkeys((*words, *extra)))


def damage(word: str, random: random.Random) -> str:
    """The phrase, nearly."""
    at = random.randrange(len(word) + 1)
    head, tail = word[:at], word[at:]
    match random.randrange(12):
        case 0:
            return word.upper()
        case 1:
            return word.title()
        case 2:
            return word.replace(" ", random.choice(("  ", "\n", "\u00a0", "\t", "-", " x ", "")))
        case 3:
            return f"{head}{random.choice(INVISIBLE)}{tail}"
        case 4:
            return f"{head}\u0301{tail}"
        case 5:
            return f"{head}{random.choice('sed1_éж字')}{tail}"
        case 6:
            return head + tail[1:]
        case 7:
            return "".join(LOOKALIKES.get(letter, letter) if random.random() < 0.5 else letter for letter in word)
        case 8:
            return "".join(chr(ord(letter) + 0xFEE0) if "!" <= letter <= "~" else letter for letter in word)
        case 9:
            return f"{word}{random.choice('sed')}"
        case 10:
            return f"{random.choice(('re', 'un', 'im', 'É', '好'))}{word}"
        case _:
            return word.replace("'", "’")


class Salad:
    """Seeded texts of a few pieces: phrases, damaged phrases and stray characters, joined in every way."""

    def __init__(self, seed: str, words: Sequence[str], letters: str, *, longest: int = 8) -> None:
        # Seeded by a string: the same texts on every machine and in every order of tests.
        self.random = random.Random(seed)
        self.words = words
        self.letters = letters
        self.longest = longest

    def piece(self) -> str:
        random = self.random
        roll = random.random()
        if roll < 0.45:
            return random.choice(self.words)
        if roll < 0.65:
            return damage(random.choice(self.words), random)
        return "".join(random.choices(self.letters, k=random.randint(1, 6)))

    def text(self) -> str:
        random = self.random
        parts = [self.piece()]
        for _ in range(random.randrange(self.longest)):
            parts += (random.choice(JOINTS), self.piece())
        return "".join(parts)

    def texts(self, count: int) -> Iterator[str]:
        return (self.text() for _ in range(count))


@functools.cache
def texts() -> st.SearchStrategy[str]:
    """Any text at all, mostly made of what the profiles look for."""
    stray = sorted({letter for letters in SCRIPTS.values() for letter in letters} | set(INVISIBLE))
    # One choice a piece is what makes an example cheap; repetition gives joints their share.
    pieces = st.sampled_from((*vocabulary(), *JOINTS * 10, *stray))
    salad = st.lists(pieces, max_size=10).map("".join)
    return st.one_of(salad, salad, salad, st.text(st.characters(exclude_categories=()), max_size=16))


@functools.cache
def ascii_texts() -> st.SearchStrategy[str]:
    """The same in ASCII: phrases, filler, punctuation, controls."""
    words = [word for word in vocabulary() if word.isascii()]
    stray = [chr(code) for code in range(128)]
    pieces = st.sampled_from((*words, *stray, *[" "] * 200))
    return st.lists(pieces, max_size=12).map("".join)


@st.composite
def hidden(draw: st.DrawFn) -> tuple[str, str]:
    """A text, and the same with invisible characters anywhere in it."""
    text = draw(texts())
    places = st.tuples(st.integers(0, len(text)), st.text(INVISIBLE, min_size=1, max_size=3))
    changed = text
    # From the back, so that earlier places stay where they were.
    for at, unseen in sorted(draw(st.lists(places, min_size=1, max_size=4)), reverse=True):
        changed = changed[:at] + unseen + changed[at:]
    return text, changed
