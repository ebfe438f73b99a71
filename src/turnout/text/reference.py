"""Does this question need the conversation to be understood?

A word that points (a pronoun, a demonstrative, "the other one") or a gap (a question without a verb, a command without
an object) needs the conversation only if it cannot refer to anything in the question itself. So a pointing word is
found first, and then excused if there is a possible antecedent before it, a name in the clause it opens, or more text
to come (after a colon, on the next line, in quotes), or if it refers to nothing at all ("is it safe to", "there are",
"the book that won").

If the turns before are given, a question in which no word points may still depend on them ("any pets allowed?"):
`followup` decides that with a classifier.

Invariant: only the opening can need the conversation, which is everything up to the end of the first sentence that
names something; later words can refer to that. When in doubt, a question stands alone, because history could only bias
its decision. With `broad`, for a conversation in progress, doubt goes the other way: a past event without a name ("who
won?", "was the album a success?") is hardly ever a new subject.

The text is folded first. Capital letters serve only to tell names from nouns, and only in text with both cases. Time is
linear in the text, and only folding reads more than its beginning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from itertools import islice
from typing import Any, Final, Literal

import re2
from msgspec import Struct, convert
from msgspec.structs import replace

from turnout.core.verdict import Reason

from .fold import fold
from .followup import leans
from .match import Search, search_set
from .words import Words, read_table

EN: Final = Words("reference", "en")
ES: Final = Words("reference", "es")
_BOTH: Final = Words("reference", "en", "es")
_MARK: Final = frozenset('.,:"()')

Kind = Literal[
    "pronoun", "deictic", "earlier", "ellipsis", "continuation", "comparative", "definite", "open", "followup"
]

# Characters read of a text: a question that needs the conversation shows it in its first lines.
WINDOW: Final = 2_048
# An opening with more words explains itself; the longest of 3,430 follow-ups has 17 words.
LONG: Final = 48
# With this many names or nouns before it, a demonstrative is taken to mean one of them. 3 of 510 follow-ups have these.
PLENTY: Final = 4

# Characters of a follow-up that its reason shows.
SHOWN: Final = 60

# What people read after the words that were found. `definite` and `open` need `broad`, `followup` needs turns.
SENTENCES: Final[Mapping[Kind, str]] = {
    "pronoun": "stands for nothing in the question",  # he, its; él, explícalo
    "deictic": "points outside the question",  # this, that one, there; esto, allí
    "earlier": "speaks of something said before",  # the previous one, your last answer; lo anterior
    "ellipsis": "is only complete after an earlier question",  # why?, and Texas?; ¿y en Madrid?
    "continuation": "goes on from what was said before",  # yes, shorter please, now in French; más corto
    "comparative": "compares with something said before",  # what else, which is better; ¿quién más?
    "definite": "takes for granted which one is meant",  # was the album a success?
    "open": "asks about a past without naming whose",  # who won?, were there any problems?
    "followup": "leans on what was said before",  # any pets allowed?; ¿cuánto dura?
}


class Reference(Struct, frozen=True, gc=False):
    """The first words of a question that need the conversation, and why."""

    kind: Kind
    words: str
    """As folded."""

    @property
    def code(self) -> str:
        return f"reference.{self.kind}"

    @property
    def reason(self) -> Reason:
        return Reason(self.code, f'"{self.words}" {SENTENCES[self.kind]}')


def needs_history(text: str, history: Sequence[str] = (), *, broad: bool = False) -> bool:
    """Whether the question cannot be understood alone. `history` are the turns before it, oldest first."""
    return find_reference(text, history, broad=broad) is not None


def find_reference(text: str, history: Sequence[str] = (), *, broad: bool = False) -> Reference | None:
    """The words that refer to something outside the question. `broad` also finds what is likely only in a conversation
    in progress, `history` what depends on these turns."""
    question = _Question(text)
    if not question.words:
        return None
    found = _find(question, broad=broad)
    if found is None and history and leans(text, history, past=_find(question, broad=True) is not None):
        found = Reference("followup", " ".join(fold(text[:SHOWN]).text.split()).strip(" .,?!"))
    return found


def _find(question: _Question, *, broad: bool) -> Reference | None:
    find_pointer = _find_spanish_pointer if question.spanish else _find_pointer
    found = (None if question.long else find_pointer(question)) or _find_cue(question)
    if found is None and broad and not question.brings:
        found = _find_cue(question, broad=True) or (None if question.spanish else _find_past(question))
    return found


# ------------------------------------------------------------------------------------------------------------- the text

# n't and 's are words of their own; other apostrophes, hyphens, stops and commas inside a word or number belong to it.
_APART: Final = r"'(?:s|re|ve|d|m|ll)(?![^\W_])"
_TOKEN: Final = re.compile(
    rf"[^\W_]+?(?=n't(?![^\W_]))|n't(?![^\W_])|{_APART}|[^\W_]+(?:(?!{_APART})[-.,:'][^\W_]+)*|[.?!;\n]+|[,:\"()]"
)
_SPANISH_LETTER: Final = re.compile("[¿¡ñáéíóú]")
# A word from its first letter on. U+001C to U+001F are not white space here, because folding drops them as invisible.
_WRITTEN: Final = re.compile(r"[^\W\d_][\S\x1c-\x1f]*")
_BRINGING: Final = frozenset(':"\n')
_BLANK: Final = _MARK | {"\n"}


class _Question:
    """The part of a text that can need the conversation."""

    def __init__(self, text: str) -> None:
        self.text = text
        folded = fold(text).text
        seen = folded[:WINDOW]
        parts = ["\n" if "\n" in part else "." if part[0] in ".?!;" else part for part in _TOKEN.findall(seen)]
        first, last = 0, len(parts)
        while first < last and parts[first] in _BLANK:
            first += 1
        while first < last and parts[last - 1] in (".", ",", "\n"):
            last -= 1
        parts = parts[first:last]
        self.spanish = _is_spanish(parts, seen)
        self.lists = ES if self.spanish else EN
        end = self._end_of_opening(parts)
        self.words = ["." if part == "\n" else part for part in parts[:end]]
        """The opening; every sentence end in it is a full stop."""
        self.long = end > LONG
        start = next((at for at, part in enumerate(parts) if part not in _BOTH.courtesy and part not in _BLANK), 0)
        self.brings = self.long or len(folded) > WINDOW or not _BRINGING.isdisjoint(parts[start:])
        """Whether the text itself has what a word may refer to: after a colon, on a new line, in quotes, or because it
        is long."""
        self.flat = f" {' '.join(self.words)} "
        """The opening with one space around every word, for cues."""

    def _end_of_opening(self, parts: list[str]) -> int:
        named = False
        for at, part in enumerate(parts):
            if part in (".", "\n"):
                if named:
                    return at
            elif not named:
                named = _is_name(part, self.lists)
        return len(parts)

    @cached_property
    def names(self) -> frozenset[str] | None:
        """The words written with a capital, except everyday words; None if the text does not use both cases."""
        capital: set[str] = set()
        lower = False
        for match in islice(_WRITTEN.finditer(self.text), WINDOW):
            written = match[0][:WINDOW]
            # Some letters have no case, and some of those are invisible.
            initial = next((letter for letter in written if letter.isupper() or letter.islower()), "")
            lower = lower or initial.islower()
            if initial.isupper():
                capital.update(_TOKEN.findall(fold(written).text))
        return frozenset(capital - EN.plain) if lower and capital else None


def _is_spanish(parts: list[str], seen: str) -> bool:
    spanish = sum(part in ES.plain and part not in EN.plain for part in parts)
    english = sum(part in EN.plain and part not in ES.plain for part in parts)
    if spanish or english:
        return spanish > english
    return _SPANISH_LETTER.search(seen) is not None or any(map(_enclitic().fullmatch, parts[:4]))


def _is_name(word: str, lists: Words = EN) -> bool:
    """Whether a word may be a name or a noun."""
    return word not in lists.plain and word not in _MARK and len(word) > 1 and not word[0].isdigit() and word[0] != "'"


# ----------------------------------------------------------------------------------------------------------------- cues


class Cue(Struct, frozen=True, forbid_unknown_fields=True):
    """A pattern for what single words do not show. `en.toml` explains the fields."""

    kind: Kind
    find: str
    unless: str = ""
    bare: bool = False
    always: bool = False
    broad: bool = False


def _find_cue(question: _Question, *, broad: bool = False) -> Reference | None:
    cues, search = _cues("es" if question.spanish else "en")
    for at in sorted(search(question.flat.encode()) or ()):
        cue = cues[at]
        if cue.broad is not broad or (question.brings and not cue.always):
            continue
        if cue.unless and _compiled(cue.unless).search(question.flat):
            continue
        found = _compiled(cue.find).search(question.flat)
        before = question.flat[: found.start()].split()
        if not (cue.bare and any(_is_name(word, question.lists) for word in before)):
            return Reference(cue.kind, found[0].strip(" .,"))
    return None


@cache
def _cues(language: str) -> tuple[list[Cue], Search]:
    """The cues of a language, and a search for all of them in one pass."""
    lists, table = Words("reference", language), read_table("reference", language)
    patterns = table["pattern"]

    def fill(piece: re.Match[str]) -> str:
        name = piece[1]
        return spell(patterns[name]) if name in patterns else f"({'|'.join(sorted(getattr(lists, name)))})"

    def spell(source: str) -> str:
        return re.sub(r"\{([a-z]+)\}", fill, source.replace("\n", ""))

    cues = [replace(cue, find=spell(cue.find), unless=spell(cue.unless)) for cue in convert(table["cue"], list[Cue])]
    return cues, search_set(cue.find for cue in cues)


@cache
def _compiled(pattern: str) -> Any:
    return re2.compile(pattern)


# ------------------------------------------------------------------------------------------------------------- pronouns


def _find_pointer(question: _Question) -> Reference | None:
    words = question.words
    for at, word in enumerate(words):
        if word in EN.pronoun:
            # What "it" means may follow ("fix it: ..."); who "he" is hardly ever does.
            if question.brings and word in ("it", "its", "them"):
                continue
            if not (word == "it" and _is_expletive(words, at)) and not _has_antecedent(question, at):
                return Reference("pronoun", _with_next(words, at))
        elif word in _POINTERS and not question.brings and _POINTERS[word](words, at) and not _has_named(words, at):
            return Reference("deictic", _with_next(words, at))
    return None


def _with_next(words: list[str], at: int) -> str:
    after = words[at + 1 : at + 2]
    return words[at] if after == [] or after[0] in _MARK else f"{words[at]} {after[0]}"


def _is_expletive(words: list[str], at: int) -> bool:
    """Whether "it" stands for nothing: weather, time, or a clause that follows."""
    asked, after = words[max(0, at - 4) : at], words[at + 1 : at + 13]
    before = next((word for word in reversed(asked) if word not in ("n't", "not")), "")
    rest = [word for word in after if word not in EN.auxiliary]
    while rest and (rest[0] in EN.degree or rest[0].endswith("ly")):
        del rest[0]
    head, then = rest[0] if rest else "", [word for word in rest[1:] if word not in ("n't", "not")]
    is_said = before in EN.auxiliary or (after != [] and after[0] in EN.auxiliary)
    if before in EN.framing and any(word in EN.announced or word == "so" for word in after):
        return True
    if (not head or head in EN.now) and is_said and any(word in EN.clock for word in asked):
        return True
    if (
        head in EN.impersonal
        or head in EN.weather
        or (head in ("going", "supposed") and not EN.weather.isdisjoint(then[:3]))
    ):
        return True
    if head in EN.announced:
        # Is it that ..., how simple is it to ...; not: what is it to him.
        return head not in ("to", "what") or ("how" in asked and before in EN.be)
    if head in EN.lasting:
        return any(word in EN.announced or word == "for" for word in then) or (not then and head in ("take", "cost"))
    if (head in ("like", "considered") and "to" in then) or ("been" in after and not EN.span.isdisjoint(then)):
        return True
    if (
        not is_said
        or not then
        or head in EN.raising
        or head in _MARK
        or (head.endswith(("ed", "wn")) and head not in EN.allowed)
    ):
        return False
    return (
        then[0] in EN.announced or (then[0].endswith("ing") and len(then[0]) > 4) or (then[0] == "for" and "to" in then)
    )


_AGENT: Final = re.compile(r"[^\W\d_]{3,}(?:ist|ian|[^aeiou]er|[ts]or|woman|man|ess)")


def _has_antecedent(question: _Question, at: int) -> bool:
    """Whether a pronoun has an antecedent in the question."""
    words = question.words
    is_person = words[at] in EN.he
    if _asks_about(words, at):
        return _points_ahead(question, at)
    names = question.names if is_person else None
    holder = _holder(words, at)

    def may_mean(place: int) -> bool:
        # The word just before is the verb ("beat him") or the noun modified ("the day he left"), except a name before
        # "his" ("was Leo his name").
        beside = place == at - 1 and not (names and words[place] in names and words[at] == "his")
        if beside or place in holder:
            return False
        if is_person:
            return _is_noun(words, place) and _is_person(words, place, names)
        return _is_noun(words, place) or words[place] in EN.somebody

    if not any(map(may_mean, range(at))):
        return _points_ahead(question, at)
    return not _is_object_of_only_clause(words, at)


def _asks_about(words: list[str], at: int) -> bool:
    """Whether the pronoun is the subject of the question ("when did he", "what album is it"), so that no word before
    the verb can be its antecedent."""
    verb = next((place for place, word in enumerate(words[:9]) if word in EN.auxiliary or word in _MARK), -1)
    before = at - 1
    while before > verb and words[before] in EN.light:
        before -= 1
    if verb < 0 or before != verb or words[verb] in _MARK:
        return False
    # "When the ship was old was it ...": the first clause has a subject of its own.
    return words[0] not in EN.subordinator or not any(_is_noun(words, place) for place in range(1, verb))


def _holder(words: list[str], at: int) -> range:
    """The noun phrase that contains the pronoun ("the name of its author"), which cannot be its antecedent."""
    if at < 2 or words[at - 1] not in EN.preposition or words[at - 1] in EN.subordinator or not _is_name(words[at - 2]):
        return range(0)
    start = at - 2
    if words[at - 1] in ("of", "about", "regarding"):
        while start > 0 and _is_name(words[start - 1]):
            start -= 1
    return range(start, at - 1)


def _is_noun(words: list[str], at: int) -> bool:
    word = words[at]
    return _is_name(word) and not word.endswith(("ed", "ly")) and not (at and words[at - 1] in EN.subject)


def _is_person(words: list[str], at: int, names: frozenset[str] | None) -> bool:
    word = words[at]
    if word in EN.person or _AGENT.fullmatch(word) or (names and word in names):
        return True
    while at and _is_name(words[at - 1]):
        at -= 1
    article = words[at - 1] if at else ""
    if names is None and article not in ("the", "a", "an", "any", "some", "of"):
        return True  # in lower case: perhaps a name
    # "Can a badger ... his"; not "what is a job she had", "is there a film about him".
    return (
        article in ("a", "an", "my", "your", "our", "every")
        and words[0] not in EN.question
        and "there" not in words[:2]
    )


def _is_object_of_only_clause(words: list[str], at: int) -> bool:
    """Whether the pronoun is the object of a simple clause ("did the label like it"), which is never its subject."""
    after = words[at + 1] if at + 1 < len(words) else "."
    is_object = words[at] in ("him", "her", "it", "them") and (after in EN.boundary or after in EN.after_object)
    if not is_object or words[0] not in EN.question | EN.auxiliary:
        return False
    clause = words[1:at]
    if clause and clause[-1] in EN.preposition and not _is_name(words[at - 2]):
        clause.pop()  # "what did the critics think of it"; not "has the box a lid on it"
    return EN.boundary.isdisjoint(clause) and EN.relative.isdisjoint(clause) and EN.personal.isdisjoint(clause[2:])


def _points_ahead(question: _Question, at: int) -> bool:
    """Whether an opening clause refers to the subject of the next one: "if she were rich, would Ann still work"."""
    words = question.words
    if words[at] == "they" and words[at - 1 : at] == ["do"] and "in" in words[at + 2 : -1]:
        return True  # "what do they eat in Spain": the people of a place
    if words[0] not in EN.subordinator | EN.preposition or "," not in words[at:]:
        return False
    comma = words.index(",", at)
    ahead = range(comma + 1, min(len(words), comma + 7))
    if any(words[place] in EN.pronoun for place in ahead[:4]):
        return False
    names = question.names
    return any(_is_noun(words, place) and (not names or words[place] in names) for place in ahead)


# ------------------------------------------------------------------------------------------------------- demonstratives


def _has_named(words: list[str], at: int) -> bool:
    """Whether the sentence has named something that may be meant: in an earlier clause, or plenty in this one."""
    edge = next((place for place in range(at - 1, -1, -1) if words[place] in EN.edge), 0)
    return any(map(_is_name, words[:edge])) or sum(map(_is_name, words[:at])) >= PLENTY


def _is_this(words: list[str], at: int) -> bool:
    # Not "this week", "this fine day", "at this time"; but "these early years", "during this time".
    if words[at + 1 : at + 2] == ["time"] and at and words[at - 1] in ("at", "by"):
        return False
    return EN.time.isdisjoint(words[at + 1 : at + (3 if words[at] == "this" else 2)])


def _is_those(words: list[str], at: int) -> bool:
    after = words[at + 1] if at + 1 < len(words) else ""
    return after not in EN.those and not after.endswith(("able", "ible", "ing", "ed"))


def _is_that(words: list[str], at: int) -> bool:
    """Whether "that" points; it does not if it joins a clause ("the book that won", "is it true that")."""
    before, after = words[at - 1] if at else "", words[at + 1] if at + 1 < len(words) else "."
    if after in _MARK:
        return before != "so"
    if not at or before in _MARK or before in EN.join:
        return not at or after in EN.auxiliary
    if before in EN.be:
        # "Is that true", "what is that song"; not "the trouble is that it rains".
        return (
            at == 1
            or words[at - 2] in EN.question
            or (after not in EN.start and not any(map(_is_name, words[: at - 1])))
        )
    if before in EN.auxiliary or before in ("when", "why", "if", "how", "because", "where", "what"):
        return True
    if before in EN.preposition or before == "like":
        return after not in EN.start and before not in ("except", "than")
    if after == "one":
        # "Play that one"; not "the belief that one can".
        return at + 2 == len(words) or words[at + 2] in EN.boundary or words[at + 2] in EN.again
    return before in EN.act and (after in EN.again or (after in EN.preposition and before not in EN.say))


def _is_there(words: list[str], at: int) -> bool:
    """Whether "there" is a place: "did he live there"; not "are there any"."""
    return at > 0 and words[at - 1] not in EN.not_there and EN.there_is.isdisjoint(words[at + 1 : at + 2])


_POINTERS: Final[Mapping[str, Callable[[list[str], int], bool]]] = {
    "this": _is_this,
    "these": _is_this,
    "those": _is_those,
    "that": _is_that,
    "there": _is_there,
}

# -------------------------------------------------------------------------------------------------------------- Spanish


@cache
def _enclitic() -> re.Pattern[str]:
    """Matches verbs with an attached pronoun, with or without accents: explícalo, hacerlo, haciéndolo."""
    return re.compile(
        r"[^\W\d_]*[áéíóú][^\W\d_]*[aeiéz](?:lo|la)s?"
        r"|[^\W\d_]{3,}(?:[aeií]r(?:me|te|se|nos)?|[aá]ndo|i[eé]ndo)(?:lo|la)s?"
        rf"|(?:{'|'.join(ES.attaching)})(?:me|se)?(?:lo|la)s?"
    )


def _find_spanish_pointer(question: _Question) -> Reference | None:
    words = question.words
    for at in range(0 if question.brings else len(words)):
        kind = _point_in_spanish(words, at)
        # As in English, the word just before is a verb.
        if kind and not any(_is_name(word, ES) for word in words[: max(0, at - 1)]):
            return Reference(kind, words[at] if words[at] not in ES.plain else _with_next(words, at))
    return None


def _point_in_spanish(words: list[str], at: int) -> Kind | None:
    word, before, after = words[at], words[at - 1] if at else "", words[at + 1] if at + 1 < len(words) else ""
    if word in ES.pronoun:
        return "pronoun"
    if word in ES.neuter:
        return "deictic"
    if word in ES.determiner:
        verb = word in ("esta", "estas", "este") and (
            after in ES.not_esta or after.endswith(("ando", "endo", "ado", "ido"))
        )
        return None if verb or after in ES.time or before in ("el", "del", "al") else "deictic"
    if word == "lo":
        return "pronoun" if after and after not in ES.not_lo and (not at or before in ES.before_lo) else None
    if word.endswith(("lo", "la", "los", "las")) and word not in ES.not_enclitic and _enclitic().fullmatch(word):
        return "pronoun"
    return None


# ------------------------------------------------------------------------------------------------------------- the past

# A longer definite phrase in a text without capitals is more likely a name: "the green lantern league".
_LONGEST_NOUN: Final = 2


def _find_past(question: _Question) -> Reference | None:
    """A past event without a name: "was the album a success", "who won"."""
    words = question.words
    personal = not EN.personal.isdisjoint(words) and not ("tell" in words or "find" in words)
    if question.names or personal:
        return None
    verb = next((at for at, word in enumerate(words) if word in EN.auxiliary), -1)
    subject = next((at for at in range(verb + 1, len(words)) if words[at] not in EN.light), len(words))
    if verb >= 0 and subject < len(words) and _is_noun(words, subject):
        return None  # without an article: a name, or things in general
    past = not EN.past.isdisjoint(words) if verb >= 0 else any(w in EN.happened or w.endswith("ed") for w in words[1:3])
    for at, word in enumerate(words):
        if word == "the" and (noun := _definite(words, at)) and (past or not EN.text.isdisjoint(noun)):
            return Reference("definite", " ".join(["the", *noun]))
    if past and "the" not in words and words[0] in EN.question | EN.auxiliary:
        return Reference("open", " ".join(words[: max(verb + 2, 2)]))
    return None


def _definite(words: list[str], at: int) -> list[str]:
    """The noun of a definite phrase that nothing tells apart from others of its kind."""
    end = at + 1
    while end < len(words) and _is_name(words[end]):
        end += 1
    noun, after = words[at + 1 : end], words[end] if end < len(words) else ""
    if len(noun) > 1 and noun[-1].endswith(("ed", "ly")):
        noun = noun[:-1]
    specific = not noun or len(noun) > _LONGEST_NOUN or noun[-1] in EN.unique or after in EN.telling
    return [] if specific or noun[0] in EN.picked or noun[0].endswith("est") else noun
