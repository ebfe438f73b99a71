"""A compound question as its parts: "check the weather and are the lights on" is two, "cats and dogs" is one.

A cut is made at a conjunction or a comma when both sides ask something, each by a trigger phrase of the caller's or
by a verb or question word of its own, and the second can be understood alone (`clause` says when). So lists, names,
noun pairs and comparisons stay whole, and so does a story with the question it leads to. In doubt nothing is cut: a
question too long is answered better than half a question. Where one question mark follows another (`split_questions`)
the sentences are parts if the caller knows an answer to each of them: much of what is asked twice is one question.

Invariant: parts are stretches of the text, in order; only conjunctions, punctuation and white space lie between them;
a part split again is itself. Only the first `WINDOW` characters are looked at and at most `MOST` parts are made; the
rest stays with the last part. So time is linear up to the window and constant beyond it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Final, NamedTuple

from .clause import LISTS, Mood, begins_with, has_content, judge, leans
from .fold import fold
from .framing import is_framed
from .match import Matcher, Phrase, Regex
from .reference import find_reference
from .sentence import split as split_sentences
from .words import Words, match_phrase

Hits = Callable[[str], bool]
"""Whether a stretch of the question, as the user wrote it, holds a trigger phrase."""

# Parts run at the same time and each may cost an LLM call; more are not asked at once.
MOST: Final = 16
# Several times the longest question in the public sets this was measured on; what is longer is a document.
WINDOW: Final = 4_096

_JOINING: Final = Words("split", "en", "es")
_ENGLISH: Final = Words("split", "en")
# "And" in the languages we know: as little as can join two questions.
_PLAIN: Final = (frozenset({"and"}), frozenset({"y"}))
_ALSO: Final = frozenset({"also"})
_COMMA: Final = frozenset({","})
_LISTED: Final = frozenset({"and", "y", ","})

# `\s` without the four controls that are invisible, which `fold` drops.
_GAP: Final = r" \t\n\v\f\r\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
find_words: Final = re.compile(rf"[^{_GAP}]+").finditer
# What cannot be seen may stand anywhere, between a digit and its comma as well.
_HIDDEN: Final = r"(?:[^\w\s!-~]|[\x1c-\x1f])*"
# A comma between digits belongs to the number.
_NUMBER: Final = rf"[^{_GAP},，]*[0-9]{_HIDDEN},(?={_HIDDEN}[0-9])"
_tokens: Final = re.compile(rf"[,，]|(?:{_NUMBER})*[^{_GAP},，]+").finditer
_may_end: Final = re.compile(r"[.?!…。？！]['\")\]”’]*\s|\n").search
_asking: Final = re.compile(r"[?？؟](?=['\")\]”’»*_]*(?:\s|$|[^\x00-\x7f]))").findall
_EDGES: Final = "\"'`()[]{}<>“”‘’‚„«»¿¡.?!…:;*_–—-/"
_QUOTES: Final = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "`": "`"}
# Every kind of white space that `str.strip` knows.
_SPACES: Final = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
# What may lie between two pieces and belongs to neither.
MARKS: Final = _SPACES + ",，;:–—-"


class _Token(NamedTuple):
    seen: str  # as written, without what cannot be seen
    word: str  # folded and bare; "," for a comma, nothing for mere punctuation
    start: int
    end: int
    opens: bool  # a sentence begins with it


class _Clause:
    """A stretch without conjunction, comma or sentence end, or several such that belong together."""

    def __init__(self, tokens: list[_Token], joint: frozenset[str], *, opens: bool, hit: bool) -> None:
        self.tokens = tokens
        self.joint = joint  # the conjunctions and commas before it
        self.opens = opens  # a sentence begins with it
        self.hit = hit
        self.words = [token.word for token in tokens]
        self.mood = judge(self.words)
        leaning = leans(self.words)
        self.stands = self.mood.asks and (not leaning or _is_colloquial(self.words))
        # A trigger phrase can be understood alone, but "let me know if it is down" hangs on what came before.
        self.asks = self.stands or (hit and not (leaning and self.mood is Mood.COMMAND))

    @property
    def yields(self) -> bool:
        """It wants what comes of the clause before: "… and provide key insights"."""
        if begins_with(self.words, _JOINING.giving):
            return not _JOINING.outcomes.isdisjoint(self.words)
        new = not {"me", "us", "some", "any"}.isdisjoint(self.words[:4]) and _JOINING.outcomes.isdisjoint(self.words)
        return begins_with(self.words, _JOINING.yielding) and not new

    @property
    def start(self) -> int:
        return self.tokens[0].start

    @property
    def end(self) -> int:
        return self.tokens[-1].end

    @classmethod
    def of(cls, run: Sequence[_Clause]) -> _Clause:
        """Several clauses as one."""
        if len(run) == 1:
            return run[0]
        tokens = [token for clause in run for token in clause.tokens]
        return cls(tokens, run[0].joint, opens=run[0].opens, hit=any(clause.hit for clause in run))


class _Left:
    """What has been read since the last cut."""

    first: _Clause
    last: _Clause
    mood: Mood
    relative: bool  # it tells what a thing does
    lists_examples: bool

    def __init__(self, clause: _Clause) -> None:
        self.start = clause.start
        self.hit = False
        self._begin(clause)
        self.take(clause)

    def take(self, clause: _Clause) -> None:
        if clause.opens:
            self._begin(clause)
        self.last = clause
        self.hit = self.hit or clause.hit
        self.relative = self.relative or _is_relative(clause.words)
        self.lists_examples = self.lists_examples or any(pair == ("such", "as") for pair in pairwise(clause.words))
        if self.mood.asks or clause.mood is Mood.FRAGMENT:
            return
        if not clause.mood.asks or has_content(clause.words):
            self.mood = clause.mood

    def _begin(self, clause: _Clause) -> None:
        # A cut is judged by its own sentence: "Can you help? I lost my card and need a new one" asks once.
        self.first = self.last = clause
        self.mood = Mood.FRAGMENT
        self.relative = self.lists_examples = False


def triggers(matcher: Matcher, ids: Container[int] | None = None) -> Hits:
    """The trigger test of a compiled set of patterns, or of those of its patterns that `ids` holds."""

    def hits(text: str) -> bool:
        found = matcher.scan(fold(text).text)
        return bool(found) if ids is None else any(one in ids for one in found)

    return hits


def split(text: str, hits: Hits | None = None, *, most: int = MOST) -> list[str]:
    """The parts of a question in order: itself alone unless it is compound, nothing if it is blank."""
    return _parts(text, hits, most, told=False)


def split_questions(text: str, hits: Hits, knows: Hits, *, most: int = MOST) -> list[str]:
    """The questions of a text, if each can be understood alone and `knows` says of each that it has an answer.

    What is stated goes with the question before it, and before the first with the first. Nothing is cut otherwise.
    """
    asked = text.strip()
    whole = _unquoted(asked)
    window = whole[:WINDOW]
    if len(_asking(window)) < 2:
        return [asked] if asked else []
    tokens, quoted = _read(window)
    opening = [at for at, token in enumerate(tokens) if token.opens and not {at - 1, at} <= quoted]
    cuts = [0]
    since = False
    for start, end in pairwise((0, *(tokens[at].start for at in opening), len(window))):
        sentence = window[start:end]
        if since and len(cuts) < most and _asks_alone(sentence, hits):
            cuts.append(start)
        since = since or bool(_asking(sentence))
    if len(cuts) < 2:
        return [asked]
    parts = [_without_joint(whole[start:end]) for start, end in pairwise((*cuts, len(whole)))]
    return parts if all(knows(part[:WINDOW]) for part in parts) else [asked]


def _asks_alone(sentence: str, hits: Hits) -> bool:
    tokens, _ = _read(sentence)
    tokens = [token for token in tokens[_joint_length(tokens) :] if token.word and token.word != ","]
    if not tokens:
        return False
    clause = _Clause(tokens, frozenset(), opens=True, hit=hits(sentence))
    return clause.asks and not find_reference(sentence)


def _without_joint(part: str) -> str:
    """A part without the conjunction it begins with: "And is the door locked?"."""
    tokens, _ = _read(part[:WINDOW])
    length = _joint_length(tokens)
    return part[tokens[length].start :].rstrip(MARKS) if length < len(tokens) else part


def _joint_length(tokens: Sequence[_Token]) -> int:
    words = [token.word for token in tokens]
    at = 0
    while at < len(words) and words[at] in _joint_starts() and (length := _joins(words, at)):
        at += length
    return at


def split_off(text: str, hits: Hits | None = None) -> tuple[str, str]:
    """A text that need not ask anything, and what is asked behind its first conjunction; blank if nothing is."""
    first, rest, *_ = (*_parts(text, hits, 2, told=True), "", "")
    return first, rest


def _parts(text: str, hits: Hits | None, most: int, *, told: bool) -> list[str]:
    whole = text.strip()
    window = whole[:WINDOW]
    folded = fold(window).text
    # Most questions join nothing, and RE2 says so in a quarter of the time that `re` takes.
    if _signs().scan(folded) != (0,):
        return [whole] if folded or whole != window else []
    asked, whole = whole, _unquoted(whole)
    window = whole[:WINDOW]
    clauses = _bound(_clauses(window, hits))
    cuts = _cuts(window, clauses, hits, most, told=told)
    if not cuts:
        return [asked]
    starts = [clauses[cut].start for cut in (0, *cuts)]
    ends = [clauses[cut - 1].end for cut in cuts]
    ends.append(clauses[-1].end if len(whole) == len(window) else len(whole))
    return [whole[start:end].rstrip(MARKS) for start, end in zip(starts, ends, strict=True)]


@cache
def _signs() -> Matcher:
    """What joins, and what compares."""
    conjunctions = "|".join(sorted(_JOINING.conjunctions | {"y"})).replace(" ", r"\s+")
    return Matcher([Regex(rf",|\b(?:{conjunctions})\b"), Phrase(tuple(sorted(_JOINING.comparing)))])


def _read(text: str) -> tuple[list[_Token], set[int]]:
    """The tokens, and which of them are quoted."""
    starts = sentence_starts(text)
    tokens: list[_Token] = []
    quoted: set[int] = set()
    since, closing = -1, ""
    for found in _tokens(text):
        at = len(tokens)
        seen = found[0]
        if seen.isascii() and seen.isalnum():
            word = seen.lower()
        else:
            word = "," if seen in ",，" else bare(seen)
            if not seen.isprintable():
                seen = "".join(filter(str.isprintable, seen))
            if not seen and not word:
                continue
            # A quotation counts once it is closed, for an apostrophe before a word may be anything, and only if its
            # marks cling to words: a part might lose a mark that stands alone.
            if since < 0 and word and seen[:1] in _QUOTES:
                since, closing = at, _QUOTES[seen[0]]
            if since >= 0 and word and seen.rstrip(".?!…:;").endswith(closing):
                quoted.update(range(since, at + 1))
                since = -1
        tokens.append(_Token(seen, word, found.start(), found.end(), found.start() in starts))
    return tokens, quoted


def _unquoted(text: str) -> str:
    """A text without the marks around the whole of it: they quote nothing."""
    closing = _QUOTES.get(text[:1])
    inner = text[1:-1]
    return (
        inner.strip() if closing and text.endswith(closing) and text[0] not in inner and closing not in inner else text
    )


def bare(raw: str) -> str:
    """A word folded, without the punctuation around it."""
    return fold(raw).text.strip(_EDGES)


def sentence_starts(text: str) -> set[int]:
    """Where sentences begin, but for the first; the end of the text is one of them."""
    starts: set[int] = set()
    if _may_end(text):
        end = 0
        for sentence in split_sentences(text):
            end += len(sentence)
            starts.add(end)
    return starts


def _clauses(text: str, hits: Hits | None) -> Iterator[_Clause]:
    tokens, quoted = _read(text)
    words, starts = [token.word for token in tokens], _joint_starts()
    held: list[_Token] = []
    joint: set[str] = set()
    opens = False
    first = True

    def clause() -> _Clause:
        hit = hits is not None and hits(text[held[0].start : held[-1].end])
        # A conjunction before everything joins nothing.
        return _Clause(held, frozenset(() if first else joint), opens=opens, hit=hit)

    at = 0
    while at < len(tokens):
        token = tokens[at]
        length = _joins(words, at) if token.word in starts and at not in quoted else 0
        if held and (length or token.opens):
            yield clause()
            held, joint, opens, first = [], set(), False, False
        opens = opens or token.opens
        if length:
            joint.update(words[at : at + length])
        elif token.word and token.word != ",":
            held.append(token)
        at += length or 1
    if held:
        yield clause()


@cache
def _joint_starts() -> frozenset[str]:
    """The first words of what joins."""
    return frozenset({",", "y"} | {phrase.split()[0] for phrase in _JOINING.conjunctions})


def _joins(words: Sequence[str], at: int) -> int:
    """How many words from here on are one conjunction or comma."""
    if words[at] == ",":
        return 1
    if words[at] == "y":
        # The letter stands in English lists: "x, y and z".
        before = words[at - 1] if at else ""
        after = words[at + 1] if at + 1 < len(words) else ","
        return 0 if after == "," or after in _ENGLISH.conjunctions or before in _ENGLISH.conjunctions else 1
    return match_phrase(words, _JOINING.conjunctions, at)


def _bound(clauses: Iterator[_Clause]) -> list[_Clause]:
    """The clauses, with those made one that no cut may part."""
    runs: list[list[_Clause]] = []
    for clause in clauses:
        if runs and not clause.opens and clause.joint in _PLAIN and _belong(runs[-1][0], runs[-1][-1], clause):
            runs[-1].append(clause)
        else:
            runs.append([clause])
    return list(map(_Clause.of, runs))


def _belong(first: _Clause, left: _Clause, right: _Clause) -> bool:
    """Whether a clause goes with the one before, in a run that `first` begins."""
    if f"{left.words[-1]}+{right.words[0]}" in _JOINING.pairs or _are_names(left, right):
        return True
    if right.mood in (Mood.QUESTION, Mood.COMMAND) or begins_with(right.words, LISTS.wishers):
        return False
    # A bare noun behind a comma goes with what "and" joins to it: "…, and Iran and Israel news".
    return bool(first.joint) and first.joint not in _PLAIN and _is_noun(first) and _is_noun(left)


def _is_noun(clause: _Clause) -> bool:
    return clause.mood is Mood.FRAGMENT and not clause.hit and not is_framed(" ".join(clause.words))


def _are_names(left: _Clause, right: _Clause) -> bool:
    """Whether a conjunction stands between names: "Phoenix and Kingman", "Mark and Will Smith"."""
    before, after = left.tokens[-1], right.tokens[0]
    if not (_is_capital(before) and _is_capital(after)) or before.word in LISTS.hollow or after.word == "i":
        return False
    if before.seen.isupper() and after.seen.isupper():
        # Capitals throughout are shouting.
        return False
    # "Find me" and "Is it" are no names, but Will Smith and Google are.
    following = right.tokens[1] if len(right.tokens) > 1 else None
    if after.word in LISTS.hollow:
        return following is not None and _is_capital(following) and following.word not in LISTS.hollow
    return after.word not in LISTS.commands or following is None or following.word not in LISTS.after_verbs


def _is_capital(token: _Token) -> bool:
    return token.seen.strip(_EDGES)[:1].isupper()


def _cuts(text: str, clauses: Sequence[_Clause], hits: Hits | None, most: int, *, told: bool) -> list[int]:
    """Which clauses begin a part, but for the first. What is told needs no question before the cut."""
    cuts: list[int] = []
    closed = _closed(clauses)
    left: _Left | None = None
    for at, right in enumerate(clauses):
        if left is None:
            left = _Left(right)
            continue
        parts = bool(right.joint) and len(cuts) + 1 < most and right.asks and not _goes_on(left, right)
        if parts and not told:
            parts = _is_asked(text, left, right) and _is_series(left, right, closed=closed[at])
        if parts and not right.stands:
            parts = _names_itself(text, left, right, hits)
        if parts:
            cuts.append(at)
            left = _Left(right)
        else:
            left.take(right)
    return cuts


def _closed(clauses: Sequence[_Clause]) -> list[bool]:
    """Whether a conjunction further on closes the series that a clause is in: "…, play jazz and call Ann"."""
    closed = [False] * len(clauses)
    for at in range(len(clauses) - 2, -1, -1):
        after = clauses[at + 1]
        closed[at] = not after.opens and (closed[at + 1] or (after.joint != _COMMA and after.asks))
    return closed


def _goes_on(left: _Left, right: _Clause) -> bool:
    """Whether what follows the conjunction still belongs to the clause before it."""
    if left.last.words[-1] in _JOINING.unfinished:
        return True
    if right.mood is not Mood.COMMAND:
        # "…, which includes the price" tells of what came before.
        tells = right.joint == _COMMA and right.words[0] == "which"
        # "Sources such as journals, news outlets and …": an example is not asked for.
        example = right.mood is Mood.FRAGMENT and left.lists_examples
        # "I want a change and need …" goes on with the same wisher.
        bare_wish = begins_with(right.words, LISTS.bare_wishes) and begins_with(left.first.words, LISTS.wishers)
        more = right.mood is Mood.WISH and (bare_wish or "appreciate" in right.words)
        return tells or example or more or right.words[0] == "or"
    if right.joint == _ALSO:
        # "Does the bank also offer loans".
        return left.mood is Mood.QUESTION
    if not right.joint <= _LISTED:
        return False
    if left.relative or (right.yields and not (left.hit or right.hit)):
        return True
    if right.joint not in _PLAIN:
        return False
    return begins_with(left.first.words, LISTS.serial) or _asks_how(left) or _is_verb_pair(left.last.words, right)


def _is_relative(words: Sequence[str]) -> bool:
    """Whether a bare verb would go on with what is told of a thing: "a tool that can sort mail", "where I can find"."""
    return not _JOINING.fit.isdisjoint(words) or any(
        word in _JOINING.relatives and words[at] not in LISTS.hollow and words[at + 2] in _JOINING.ables
        for at, word in enumerate(words[1:-1])
    )


def _asks_how(left: _Left) -> bool:
    """Whether a bare verb would go on with the question: "how do I log in", "is it possible to pay"."""
    head = left.last.words[:6]
    if left.mood is not Mood.QUESTION:
        return False
    return "possible" in head or (
        begins_with(head, LISTS.question_words) and not {"i", "we", "to"}.isdisjoint(head[1:4])
    )


def _is_verb_pair(left: Sequence[str], right: _Clause) -> bool:
    """Whether two verbs share what follows the second: "find and play a waltz"."""
    # "Could you decode and explain".
    if len(left) > 2 and left[-2] == "you" and left[-3] in LISTS.modals:
        return True
    if left[-1] not in LISTS.commands or not begins_with(right.words, LISTS.commands):
        return False
    # "Avísame" has its object with it.
    complete = "y" in right.joint and left[-1].endswith("me")
    return not complete and (len(left) == 1 or left[-2] in _JOINING.before_verbs)


def _is_asked(text: str, left: _Left, right: _Clause) -> bool:
    """Whether something is asked before the conjunction."""
    # "I am off this weekend and I would like to know …" tells a story, whatever its words trigger.
    story = left.mood is Mood.STATEMENT and begins_with(left.first.words, LISTS.wishers)
    if left.mood.asks or (left.hit and not story) or is_framed(text[left.start : left.last.end]):
        return True
    if left.mood is Mood.STATEMENT:
        return not right.joint.isdisjoint(_JOINING.adding)
    # "Humidity in Dublin and find my keys": a noun cannot be joined to a command, so it is a request of its own.
    return (
        right.stands
        and right.joint != _COMMA
        and (right.mood is not Mood.WISH or begins_with(right.words, LISTS.wishers))
        and not begins_with(left.first.words, LISTS.prepositions)
        and sum(word not in LISTS.hollow for word in left.last.words) >= 2
    )


def _is_series(left: _Left, right: _Clause, *, closed: bool) -> bool:
    """Whether a comma, if there is no more, parts two questions: one clause may be the story to the other."""
    if right.joint != _COMMA:
        return True
    if begins_with(left.last.words, LISTS.subordinators):
        return False
    if left.hit and right.hit:
        return True
    return closed or (left.mood is right.mood and left.mood in (Mood.QUESTION, Mood.COMMAND))


def _names_itself(text: str, left: _Left, right: _Clause, hits: Hits | None) -> bool:
    """Whether a noun phrase has its trigger for itself ("any news"), not as a shared head ("Iran and Israel news")."""
    if right.mood is not Mood.FRAGMENT or right.joint not in _PLAIN or left.hit:
        return True
    first = right.tokens[1 if right.words[0] in LISTS.determiners and len(right.tokens) > 1 else 0]
    return hits is not None and hits(text[right.start : first.end])


def _is_colloquial(words: Sequence[str]) -> bool:
    return words[0] in ("what's", "whats") and match_phrase(words, _JOINING.colloquial, 1) > 0
