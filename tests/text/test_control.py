"""JSON in which nothing steers what shows it, and which says what it said."""

import json
import unicodedata

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnout.text.control import BIDI, SEPARATORS, escape_json

SCALARS = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]


def is_unsafe(character: str) -> bool:
    """Said another way than the product says it."""
    return unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp") or 0xE0000 <= ord(character) < 0xE1000


def test_every_character_there_is() -> None:
    for start in range(0, len(SCALARS), 0x1000):
        text = "".join(SCALARS[start : start + 0x1000])
        for encoded in (msgspec.json.encode(text), json.dumps(text, ensure_ascii=False).encode()):
            written = escape_json(encoded)
            assert json.loads(written) == msgspec.json.decode(written) == text
            found = set(written.decode())
            assert not [character for character in found if is_unsafe(character)]
            shown = {character for character in text if not is_unsafe(character) and character not in '"\\'}
            assert shown <= found, "what is seen stays as it is"


CASES = [
    ("C1", "\x85\x9b31m", '"\\u0085\\u009b31m"'),
    ("DEL", "a\x7fb", '"a\\u007fb"'),
    ("bidi", "a\u202eb\u2066", '"a\\u202eb\\u2066"'),
    ("zero width", "a\u200bb\u200d\ufeff", '"a\\u200bb\\u200d\\ufeff"'),
    ("tags", "\U000e0041\U000e007f", '"\\udb40\\udc41\\udb40\\udc7f"'),
    ("separators", "\u2028\u2029", '"\\u2028\\u2029"'),
    ("beside a backslash", "\\\u202e\\u202e", '"\\\\\\u202e\\\\u202e"'),
    ("letters stay", "é日本😀", '"é日本😀"'),
]


@pytest.mark.parametrize(("text", "written"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_how_it_is_written(text: str, written: str) -> None:
    assert escape_json(msgspec.json.encode(text)).decode() == written


def test_what_is_no_string_stays() -> None:
    for raw in (b"", b'{"a":\n  [1, 2]}\n', '{\n\t"é": 1\r\n}'.encode(), b"\xff\xfe", b'"\xff\xc2\x9b"'):
        found = escape_json(raw)
        assert found == raw.replace(b"\xc2\x9b", b"\\u009b")


TEXTS = st.text(st.sampled_from(BIDI + SEPARATORS + '\x7f\x9b"\\aé\U000e0041\n'))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 60), 1 << 60) | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(VALUES)
def test_a_value_reads_back(value: object) -> None:
    written = escape_json(msgspec.json.encode(value))
    assert msgspec.json.decode(written) == value
    assert escape_json(written) == written
    assert not any(is_unsafe(character) for character in written.decode())
