"""Second opinions: the matcher and the two scorers written again, plainly, from their specifications.

Nothing here imports what it judges but the pattern types and the fold (which has tests of its own). The matcher is the
standard `re` on the folded text, one search a pattern. A *word character* is what Python calls `\\w`, except letters of
scripts written without spaces (Thai, Lao, Myanmar, Khmer, Han, kana, bopomofo, Hangul): those never make a boundary.
The scorers are loops over the published tables.
"""

from __future__ import annotations

import functools
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from turnout.text.fold import fold
from turnout.text.match import OrderedPhrases, Pattern, Phrase, Regex, Substring, WholePhrase

# --- words ----------------------------------------------------------------------------------------------------------

# How Unicode's own names of the letters begin.
UNSPACED_NAMES = (
    *("THAI", "LAO", "MYANMAR", "KHMER", "CJK", "KANGXI", "IDEOGRAPHIC", "VERTICAL IDEOGRAPHIC", "HANGZHOU", "MASU"),
    *("HIRAGANA", "KATAKANA", "HALFWIDTH KATAKANA", "HENTAIGANA", "VERTICAL KANA", "BOPOMOFO"),
    *("HANGUL", "HALFWIDTH HANGUL"),
)
# Letters of minority languages in blocks of their own, and tally marks: with spaces or without, nobody promised.
UNDECIDED = re.compile("[\ua9e0-\ua9ff\uaa60-\uaa7f\U0001d372-\U0001d376]")
# Nothing is assigned between the last Han extension and the tags, which are no letters.
LAST_LETTER = 0x3FFFF


@functools.cache
def unspaced() -> str:
    """The letters of unspaced scripts as the inside of a character class."""
    return _class(
        code
        for code in range(0x80, LAST_LETTER + 1)
        if unicodedata.name(chr(code), "").startswith(UNSPACED_NAMES) and not UNDECIDED.match(chr(code))
    )


@functools.cache
def signs() -> str:
    """Punctuation and symbols, emoji among them."""
    return _class(code for code in range(LAST_LETTER + 1) if unicodedata.category(chr(code)).startswith(("P", "S")))


def _class(codes: Iterable[int]) -> str:
    ranges: list[list[int]] = []
    for code in codes:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)


@functools.cache
def word() -> str:
    """One word character."""
    return rf"[^\W{unspaced()}]"


def is_word(character: str) -> bool:
    return re.match(word(), character) is not None


@functools.cache
def boundary() -> str:
    return rf"(?:(?<={word()})(?!{word()})|(?<!{word()})(?={word()}))"


def bounded(form: str) -> str:
    text = fold(form).text
    left = rf"(?<!{word()})" if is_word(text[0]) else ""
    right = rf"(?!{word()})" if is_word(text[-1]) else ""
    return f"{left}{re.escape(text)}{right}"


# --- the matcher ----------------------------------------------------------------------------------------------------


def tidy(folded: str) -> str:
    """Phrases read a run of blanks as one, and none at a line's ends."""
    return re.sub(r" ?\n ?", "\n", re.sub(" +", " ", folded))


def finder(pattern: Pattern) -> Callable[[str], bool]:
    """Whether the pattern is in a folded text, tidied unless the pattern is a regular expression."""
    match pattern:
        case Phrase(forms):
            parts = [(fold(form).text, re.compile(bounded(form)).search) for form in forms]
            # What is not there as plain characters is not there as words.
            return lambda text: any(plain in text and search(text) is not None for plain, search in parts)
        case Substring(part):
            return lambda text: part in text
        case OrderedPhrases(first, then):
            pair = re.compile(f"{bounded(first)} .* {bounded(then)}").search
            plain = fold(first).text
            return lambda text: plain in text and pair(text) is not None
        case WholePhrase(forms):
            gap = rf"[\s{signs()}]*"
            whole = re.compile(f"{gap}(?:(?:{'|'.join(bounded(form) for form in forms)}){gap})+").fullmatch
            return lambda text: whole(text) is not None
        case Regex(source):
            found = re.compile(to_python(source)).search
            return lambda text: found(text) is not None


# RE2's own meaning of the shorthand classes is ASCII; `\w` is documented to mean the letters of every script.
_OUTSIDE = {r"\d": "[0-9]", r"\s": "[\t\n\f\r ]", r"\z": r"\Z"}
_INSIDE = {r"\d": "0-9", r"\s": "\t\n\f\r "}


def to_python(source: str) -> str:
    """An RE2 pattern in Python's spelling."""
    inside = False

    def spell(part: str) -> str:
        nonlocal inside
        if part in ("[", "]"):
            inside = part == "["
        if part.startswith(r"\x{"):
            return f"\\U{int(part[3:-1], 16):08x}"
        if part == r"\b" and not inside:
            return boundary()
        return (_INSIDE if inside else _OUTSIDE).get(part, part)

    return "".join(spell(part) for part in re.findall(r"\\x\{[0-9a-f]+\}|\\.|.", source, re.DOTALL))


class PlainMatcher:
    """The matcher as anybody would write it first. A regular expression reads runs of blanks as they are."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self.finders = [(finder(pattern), isinstance(pattern, Regex)) for pattern in patterns]

    def scan(self, folded: str) -> tuple[int, ...]:
        text = tidy(folded)
        return tuple(i for i, (find, verbatim) in enumerate(self.finders) if find(folded if verbatim else text))


def patterns_of(resolved: Mapping[str, Any]) -> list[Pattern]:
    """Every pattern a profile's layers look for, read from its data."""
    found: list[Pattern] = []
    for layer in resolved["layers"]:
        for signal in layer.get("signals", ()):
            found += [Phrase(tuple(words.split("|"))) for words in signal.get("words", ())]
            found += [OrderedPhrases(first, then) for first, then in signal.get("ordered", ())]
            found += [WholePhrase(tuple(signal["whole"]))] if signal.get("whole") else []
            found += [Regex(source) for source in signal.get("patterns", ())]
        for rule in layer.get("rules", ()):
            alternatives = rule["when"] if isinstance(rule["when"], list) else [rule["when"]]
            for when in (*alternatives, *([rule["unless"]] if "unless" in rule else [])):
                for group in (when.get("any", ()), *when.get("all", ()), when.get("none", ())):
                    found += [Phrase(tuple(words.split("|"))) for words in group]
                found += [OrderedPhrases(first, then) for first, then in when.get("ordered", ())]
                found += [WholePhrase(tuple(when["whole"]))] if when.get("whole") else []
                found += [Regex(source) for key in ("patterns", "none_patterns") for source in when.get(key, ())]
        phrases = layer.get("phrases", {})
        found += [Phrase(tuple(words.split("|"))) for words in (one for group in phrases.values() for one in group)]
    return found


# --- tiers, to the letter -------------------------------------------------------------------------------------------

_CODE = "function, class, import, def, select, async, await, const, let, var, return, ```"
_REASONING = "prove, theorem, derive, step by step, chain of thought, formally, mathematical, proof, logically"
_TECHNICAL = "algorithm, optimize, architecture, distributed, kubernetes, microservice, database, infrastructure"
_CREATIVE = "story, poem, compose, brainstorm, creative, imagine, write a"
_SIMPLE = "what is, define, translate, hello, yes or no, capital of, how old, who is, when was"
_IMPERATIVE = "build, create, implement, design, develop, construct, generate, deploy, configure, set up"
_CONSTRAINT = "under, at most, at least, within, no more than, maximum, minimum, limit, budget"
_FORMAT = "json, yaml, xml, table, csv, markdown, schema, format as, structured"
_REFERENCE = "above, below, previous, following, the docs, the api, the code, earlier, attached"
_NEGATION = "don't, do not, avoid, never, without, except, exclude, no longer"
_DOMAIN = "quantum, fpga, vlsi, risc-v, asic, photonics, genomics, proteomics, topological, homomorphic, zero-knowledge"
_AGENTIC = (
    "read file, look at, check the, open the, edit, modify, update the, change the, write to, create file, execute, "
    "deploy, install, npm, pip, compile, after that, once done, step 1, step 2, fix, debug, until it works, iterate, "
    "make sure, verify, confirm"
)

TIER_WORDS: dict[str, list[str]] = {
    name: words.split(", ")
    for name, words in {
        "codePresence": _CODE,
        "reasoningMarkers": _REASONING,
        "technicalTerms": _TECHNICAL,
        "creativeMarkers": _CREATIVE,
        "simpleIndicators": _SIMPLE,
        "imperativeVerbs": _IMPERATIVE,
        "constraintCount": _CONSTRAINT,
        "outputFormat": _FORMAT,
        "referenceComplexity": _REFERENCE,
        "negationComplexity": _NEGATION,
        "domainSpecificity": _DOMAIN,
        "agenticTask": _AGENTIC,
    }.items()
}


class Dimension(NamedTuple):
    name: str
    weight: float
    low_at: int = 0
    low: float = 0.0
    high_at: int = 0
    high: float = 0.0


DIMENSIONS = (
    Dimension("tokenCount", 0.08),
    Dimension("codePresence", 0.14, 1, 0.5, 2, 1.0),
    Dimension("reasoningMarkers", 0.17, 1, 0.7, 2, 1.0),
    Dimension("technicalTerms", 0.09, 2, 0.5, 4, 1.0),
    Dimension("creativeMarkers", 0.05, 1, 0.5, 2, 0.7),
    Dimension("simpleIndicators", 0.11, 1, -1.0, 2, -1.0),
    Dimension("multiStepPatterns", 0.11),
    Dimension("questionComplexity", 0.04),
    Dimension("imperativeVerbs", 0.03, 1, 0.3, 2, 0.5),
    Dimension("constraintCount", 0.04, 1, 0.3, 3, 0.7),
    Dimension("outputFormat", 0.03, 1, 0.4, 2, 0.7),
    Dimension("referenceComplexity", 0.02, 1, 0.3, 2, 0.5),
    Dimension("negationComplexity", 0.01, 2, 0.3, 3, 0.5),
    Dimension("domainSpecificity", 0.02, 1, 0.5, 2, 0.8),
    Dimension("agenticTask", 0.06, 2, 0.5, 4, 1.0),
)

_JS_SPACE = "[\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]"
_JS_LINE_END = re.compile("[\n\r\u2028\u2029]")
_NUMBERED_STEP = re.compile(f"step{_JS_SPACE}+[0-9]")
_NUMBERED_ITEM = re.compile(rf"[0-9]\.{_JS_SPACE}")


class Tier(NamedTuple):
    score: float
    confidence: float
    tier: str
    needs_llm: bool


def js_length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _has_steps(lower: str) -> bool:
    for line in _JS_LINE_END.split(lower):
        first = line.find("first")
        if first >= 0 and line.find("then", first + len("first")) >= 0:
            return True
    return _NUMBERED_STEP.search(lower) is not None or _NUMBERED_ITEM.search(lower) is not None


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-12 * x))


def score_tiers(text: str) -> Tier:
    length = js_length(text)
    tokens = length // 4
    lower = text.lower()
    found = {name: sum(keyword in lower for keyword in keywords) for name, keywords in TIER_WORDS.items()}
    steps = _has_steps(lower)
    score = 0.0
    for dimension in DIMENSIONS:
        match dimension.name:
            case "tokenCount":
                value = -1.0 if tokens < 50 else 1.0 if tokens > 500 else 0.0
            case "multiStepPatterns":
                value = 0.5 if steps else 0.0
            case "questionComplexity":
                value = 0.5 if lower.count("?") > 3 else 0.0
            case name:
                count = found[name]
                value = dimension.high if count >= dimension.high_at else dimension.low
                value = value if count >= dimension.low_at else 0.0
        score += value * dimension.weight

    if tokens > 100_000:
        return Tier(score, 0.95, "COMPLEX", False)
    if found["reasoningMarkers"] >= 2:
        return Tier(score, max(0.85, _sigmoid(score)), "REASONING", False)
    work = found["technicalTerms"] + found["imperativeVerbs"] + found["agenticTask"]
    if work >= 4 and (steps or length > 300):
        return Tier(score, max(0.85, _sigmoid(score)), "COMPLEX", False)

    if score < 0.0:
        tier, distance = "SIMPLE", 0.0 - score
    elif score < 0.15:
        tier, distance = "MEDIUM", min(score - 0.0, 0.15 - score)
    elif score < 0.35:
        tier, distance = "COMPLEX", min(score - 0.15, 0.35 - score)
    else:
        tier, distance = "REASONING", score - 0.35
    confidence = _sigmoid(distance)
    return Tier(score, confidence, tier, confidence < 0.70)


# --- study ----------------------------------------------------------------------------------------------------------

STUDY_SIGNALS = {
    name: re.compile(source)
    for name, source in {
        "definition": (
            r"\b(define|definition|what is|what's|who is|meaning|what does .* mean|explain what .* means)\b"
        ),
        "explain": r"\bexplain\b",
        "concision": r"\b(very concisely|concisely|briefly|in short|quickly|quick summary)\b",
        "doc_ref": (
            r"\b(page|paper|book|text|paragraph|section|definition|figure|table|equation|line|column|caption|graph|chart)\b"
        ),
        "deictic": r"\b(this|that|here|there|above|below)\b",
        "spatial": r"\b(left|right|far right|far left|top|bottom|upper|lower|middle|center)\b",
        "on_page": (
            r"\b(on|in|from)\s+the\s+([a-z]+\s+){0,3}"
            r"(page|paragraph|section|figure|table|equation|left|right|top|bottom)\b"
        ),
        "general": (
            r"\b(summarize|walk me through|what is happening|what does this section mean|what does that section mean)\b"
        ),
    }.items()
}


class Study(NamedTuple):
    scores: dict[str, float]
    confidence: float
    margin: float
    route: str
    accepted: bool


def score_study(text: str) -> Study:
    """The published formulas on an ASCII question; runs of blanks are one, as everywhere behind the fold."""
    lower = re.sub(r" ?\n ?", "\n", re.sub(r"[ \t]+", " ", text.lower())).strip()
    fired = {name for name, signal in STUDY_SIGNALS.items() if signal.search(lower)}

    def total(**weights: float) -> float:
        return sum(weight for name, weight in weights.items() if name in fired)

    definition = total(definition=0.55, explain=0.18, concision=0.16)
    page = total(doc_ref=0.30, deictic=0.22, spatial=0.25, on_page=0.24)
    contextual = 0.24 + total(general=0.44, deictic=0.16, doc_ref=0.10)

    standalone = 1.12 * definition - 0.68 * page
    if "concision" in fired:
        standalone += 0.08
    grounded = page
    if definition > 0.60:
        grounded += 1.25 * (definition - 0.60)
    if {"spatial", "doc_ref"} <= fired:
        grounded += 0.22
    general = contextual + 0.70 * page
    if definition > 0.75 and page > 0.35:
        general -= 0.16

    scores = {
        "standalone_definition": max(0.0, standalone),
        "page_grounded_definition": max(0.0, grounded),
        "general_contextual": max(0.0, general),
    }
    # The first of equals wins: `max` keeps the earlier one.
    route = max(scores, key=scores.__getitem__)
    top = scores[route]
    second = max(score for name, score in scores.items() if name != route)
    if second <= 0:
        confidence = 0.99 if top > 0 else 0.34
    else:
        confidence = min(0.99, max(0.0, 0.5 + (top - second) / (top + second + 1e-6)))
    if route == "page_grounded_definition" and {"spatial", "doc_ref"} <= fired:
        confidence = max(confidence, 0.86)
    return Study(scores, confidence, top - second, route, confidence >= 0.75 and top - second >= 0.20)


# --- sentences, as the seed cut them ---------------------------------------------------------------------------------

_SEED_SENTENCE = re.compile(r"[^.!?]+(?:[.!?]+|$)")


def compat_split(text: str) -> list[str]:
    return [part for chunk in _SEED_SENTENCE.findall(text.strip()) if (part := chunk.strip())]


def compat_limit(text: str, max_sentences: int | None) -> str:
    clean = text.strip()
    if max_sentences is None or max_sentences < 1:
        return clean
    parts = compat_split(clean)
    return clean if len(parts) <= max_sentences else " ".join(parts[:max_sentences])
