"""Time is linear in the length, whatever is written: bodies chosen to be slow for some step, in every profile.

CPU time, the best of a few runs if need be, compared with itself at an eighth of the length. The absolute limits are
three times what is promised (50 ms for a megabyte of ASCII, 200 ms for anything else), so that a busy machine passes.
"""

from functools import partial
from typing import NamedTuple

import pytest

from random_text import INVISIBLE, SCRIPTS, router, vocabulary
from timing import is_within, quickest, slowness
from turnout import Router
from turnout.config.load import shipped

MIB = 2**20
SLACK = 3
ASCII_S = 0.050 * SLACK
OTHER_S = 0.200 * SLACK
# Eight times the text, at most twenty times the time, where the square would be sixty-four: a megabyte of wide
# characters fits no processor's cache and takes its own time. Below the noise floor a ratio says nothing.
SHARE = 8
RATIO = 20
NOISE_S = 0.015


class Body(NamedTuple):
    id: str
    piece: str
    head: str = ""
    slow: int = 1
    """Known to take longer than promised, by about this factor."""

    def text(self, size: int) -> str:
        """About `size` characters."""
        return self.head + self.piece * ((size - len(self.head)) // len(self.piece))


ASCII = [
    Body("letter", "a"),
    Body("blanks", " ", "what does"),
    Body("newlines", "\n"),
    Body("controls", "\x00"),
    Body("carriage-returns", "\r\n\r"),
    Body("half-a-gap", "what does "),
    Body("explain-what", "explain what x "),
    Body("first", "first "),
    Body("step-blanks", "step" + " " * 60),
    Body("on-the-a-a-a", "on the a a "),
    Body("the-words-before-a-page", "in the far upper "),
    Body("small-talk", "hi "),
    Body("almost-small-talk", "thank you so "),
    Body("arithmetic", "1+"),
    Body("arithmetic-blanks", "1 - ( ", "1"),
    Body("numbers", "1.1,"),
    Body("questions", "?"),
    Body("underscores", "_a"),
    Body("fences", "```"),
    Body("all-phrases", " ".join(word for word in vocabulary() if word.isascii()) + " "),
]

OTHER = [
    Body("accents", "é"),
    Body("accented-words", "été à l'école "),
    Body("cyrillic", "что такое энтропия "),
    Body("mixed-words", "рrоvе "),
    Body("one-mixed-word", "аa"),
    Body("one-cyrillic-word", "п", "a"),
    Body("greek", "Τι είναι η εντροπία; "),
    Body("han", "什么是熵"),
    Body("hangul-jamo", "\u1112\u1161\u11ab"),
    Body("halfwidth-kana", "ｶﾞ"),
    Body("devanagari", SCRIPTS["devanagari"]),
    Body("emoji", "👩\u200d💻"),
    Body("marks", "\u0301", "a"),
    Body("marks-out-of-order", "\u0301\u0323\u0327", "a"),
    Body("marks-on-letters", "a\u0323\u0301 "),
    Body("expanding", "ﷺ"),
    Body("fullwidth", "ｗｈａｔ ｉｓ "),
    Body("quotes", "“’”"),
    Body("invisible", "".join(INVISIBLE)),
    Body("hidden-phrases", "pro\u200bve "),
    Body("tags", "\U000e0070\U000e0072", "hi"),
    Body("surrogates", "\ud800", slow=3),
    Body("line-separators", "\u2028\u00a0"),
    Body("one-accent", "prove the theorem ", "é"),
    Body("every-letter", "".join(chr(code) for code in range(0xA1, 0x3000))),
    Body("all-scripts", "".join(SCRIPTS.values())),
]


def seconds(router: Router, text: str, runs: int, enough: float = 0.0) -> float:
    return quickest(lambda: router.route_sync(text), enough=enough, tries=runs)


@pytest.mark.alike(12)
@pytest.mark.parametrize("name", shipped())
@pytest.mark.parametrize("body", [*ASCII, *OTHER], ids=lambda body: body.id)
def test_time_is_linear(name: str, body: Body) -> None:
    one = router(name)
    one.route_sync(body.text(4096))
    limit = ASCII_S if body in ASCII else OTHER_S
    limit *= body.slow
    # Once is enough for most; before calling it a fault, again with patience: the best of many runs is undisturbed.
    for runs in (1, 8):
        limit *= 1 if runs == 1 else slowness()
        part = seconds(one, body.text(MIB // SHARE), runs)
        enough = min(part * RATIO + NOISE_S, limit)
        whole = seconds(one, body.text(MIB), runs, enough)
        if whole < enough:
            return
    pytest.fail(
        f"{part * 1000:.0f} ms for an eighth, {whole * 1000:.0f} ms for a megabyte (limit {limit * 1000:.0f} ms)"
    )


SHORT_S = 0.01


@pytest.mark.alike(2)
@pytest.mark.parametrize("name", shipped())
def test_short_texts_take_no_time(name: str) -> None:
    """A fixed cost hidden somewhere would pass the ratio test."""
    one = router(name)
    for body in (*ASCII, *OTHER):
        text = body.text(1024)
        one.route_sync(text)
        assert is_within(SHORT_S, partial(one.route_sync, text), tries=20), body.id
