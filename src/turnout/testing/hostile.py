"""Texts that break programs, and a few ordinary ones.

Each has broken some program: very long text, text without letters or without a UTF-8 form, text that reads right to
left, looks like another text, or looks like a template.
"""

from __future__ import annotations

from collections.abc import Mapping

from turnout.core.query import Query, Turn

MEBIBYTE = 1024 * 1024

ORDINARY: Mapping[str, str] = {
    "greeting": "hello",
    "definition": "Define entropy very concisely.",
    "page": "Explain what complexity means in the definition on the far right of this page",
    "code": "Write a function that returns the first duplicate in a list, then prove step by step that it is linear.",
    "task": "First read file setup.py, then update the database schema, deploy it and make sure the tests pass.",
    "several": "What is a monad? Who uses one? When was it invented? Why would I want one?",
}

_TEXTS: Mapping[str, str] = {
    "empty": "",
    "blank": " \t\r\n\v\f\u00a0\u2003\u3000",
    "one letter": "a",
    "one million letters": "a" * MEBIBYTE,
    "one million of words": "define the page " * (MEBIBYTE // 16),
    "one million of lines": "?\n" * (MEBIBYTE // 2),
    "one million of Greek": "λόγος " * (MEBIBYTE // 6),
    "nul": "what\0is\0this\0",
    "only nul": "\0" * 1000,
    "controls": "".join(map(chr, range(32))) + "\x7f\x80\x9f",
    "lone surrogates": "what is \ud800 and \udfff?",
    "only surrogates": "\ud83d" * 1000,
    "emoji": "👩‍👩‍👧‍👦 👍🏽 🏳️‍🌈 🇺🇳 what is this?",
    "mixed scripts": "Define раураl, Ελλάδα, 漢字かな, עברית, العربية, हिन्दी, ภาษาไทย, 한국어 and ქართული",
    "right to left": "\u202edefine\u202c \u2067entropy\u2069",
    "invisible": "de\u200bfi\u200cne\u2060 e\u00adntropy\ufeff\U000e0041",
    "marks": "e" + "\u0301" * 5000,
    "full width": "ｄｅｆｉｎｅ　ｅｎｔｒｏｐｙ",
    "private use": "\ue000\uf8ff\U0010ffff\uffff",
    "templates": "{n} {confidence} %s %(x)s ${x} {{x}} {0} {0.__class__}",
    "patterns": r"(((([[[[.*+?^$|\b\d\1(?=x)(?P<y>",
    "quotes": "'\"`´''''\"\"\"``` \\ \\\\ \\u0000",
    "markup": "<think>x</think> </user> <!-- [[ ]] --> [INST] ```json\n{}\n```",
    "numbers": "1e999 -0 NaN inf 0x10 ¹²³ ٣ ⅷ 10" + "0" * 500,
    "one line end": "\n",
    "separators": "a\u2028b\u2029c\x85d\x1ce",
}


def hostile_queries(routes: tuple[str, ...] = ()) -> dict[str, Query]:
    """Queries by name: every text, then queries with unusual values in other fields."""
    queries = {name: Query(text) for name, text in {**ORDINARY, **_TEXTS}.items()}
    queries["turns"] = Query(turns=(Turn("system", "be brief"), Turn("user", "what is this?"), Turn("assistant", "a")))
    queries["turns without a user"] = Query(turns=(Turn("assistant", "well"), Turn("", ""), Turn("tool", "\0")))
    queries["many turns"] = Query(turns=tuple(Turn("user" if i % 2 else "assistant", f"turn {i}") for i in range(2000)))
    queries["attachments"] = Query("what is this?", attachments=("", "image/png", "\ud800", "x" * 10_000))
    queries["names"] = Query("what is this?", session="\0" * 100, tenant="\ud800")
    for route in routes[:1]:
        queries["declared"] = Query("", declared=f"  {route.upper()}\n")
        queries["ceiling"] = Query("what is this?", ceiling=route)
    return queries
