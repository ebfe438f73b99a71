"""What the routers are asked: fixed, made-up prompts of a given size, and the texts an attacker would send.

Every prompt differs from every other one, and a long one draws on its own few subjects, so that no cache helps more
than real traffic would let it: neither one of texts nor one of the words found in them. (Of real prompts under 20
tokens most share their telling words with another one; from about 400 tokens on hardly any two do.) All of them follow
from a seed, so that every contender and every run reads the same. A token is four characters, as both Turnout and
LiteLLM count.
"""

import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

CHARACTERS_PER_TOKEN = 4

# One prompt in this many carries typographic quotes and accented names, as pasted text does.
TYPOGRAPHIC_EVERY = 8

# A prompt is about something: it repeats a few sentences and forms out of all there are.
SUBJECTS = 12
FORMS = 2

# In characters: below this a prompt is a request alone.
SHORTEST_PASTE = 200

SLOTS = {
    "thing": (
        "the invoice export", "our login page", "a bicycle pump", "the harbour museum", "this sorting function",
        "the parcel tracker", "a sourdough starter", "the payroll database", "that weather station", "a message queue",
        "the staff handbook", "our search index", "a chess clock", "the backup script", "this tax form",
        "the ferry timetable", "a linked list", "the release checklist", "an old violin", "our booking service",
        "the lease", "a heat pump", "our API", "the parser", "a solar panel", "the choir", "a hash table", "the budget",
        "our cache", "a sonnet", "the gearbox", "a ledger", "the router", "an index", "the recipe", "a passport",
    ),
    "person": (
        "Mara", "the auditor", "Tobias", "our landlord", "a new hire", "the night shift", "Ines", "the vendor",
        "Professor Okafor", "my neighbour", "the on-call engineer", "Yusuf",
    ),
    "place": (
        "in Lisbon", "at the depot", "on staging", "in production", "upstairs", "in the second chapter", "by phone",
        "at the border", "in the archive", "behind the proxy", "on Thursday", "after lunch", "at home", "abroad",
        "by hand", "in winter", "at sea", "on a phone", "for free", "this week",
    ),
    "number": ("two", "three", "eleven", "40", "125", "2,300", "17", "sixty"),
    "day": ("03", "09", "14", "22", "27"),
    "language": ("Portuguese", "Greek", "plain English", "Swahili", "French", "Korean", "Go", "Rust", "SQL"),
}  # fmt: skip

ASKS = (
    "What is {thing} used for {place}?",
    "Who wrote about {thing} {place}?",
    "Translate {thing} into {language}.",
    "How old is {thing} {place}?",
    "Write a function for {thing}.",
    "Explain {thing} to {person}.",
    "Fix {thing} {place} please",
    "Draft a note to {person} about {thing}.",
    "Compare {thing} with {thing}.",
    "Prove {thing} needs {number} parts.",
    "Design {thing} for {number} users.",
    "Why is {thing} slow {place}?",
    "Summarise {thing} for {person}.",
    "When was {thing} moved {place}?",
    "Can {person} deploy {thing} {place}?",
    "List {number} risks of {thing}.",
    "Thanks, now check {thing} {place}",
    "Tell {person} a story of {thing}.",
    "Is {thing} better than {thing}?",
    "Check {thing}, then {thing} {place}.",
    "Could {person} build {thing} {place}?",
    "Give {person} {number} facts on {thing}.",
    "Define {thing} in {number} words.",
    "Debug {thing} {place} step by step.",
    "Show {thing} as a table, {number} rows.",
    "Imagine {thing} without {thing}.",
    "Optimize {thing} for {number} readers.",
    "Is {thing} legal {place}, yes or no?",
    "Create a JSON schema for {thing}.",
    "Explain the code of {thing} below.",
    "Derive the cost of {thing} {place}.",
    "Install {thing} {place}, then verify it.",
    "Compose a poem about {thing} {place}.",
    "Refactor this class for {thing}.",
)

SENTENCES = (
    "{person} said that {thing} stopped working {place} about {number} days ago.",
    "We keep {thing} next to {thing}, and nobody remembers why.",
    "The contract limits {thing} to {number} requests an hour, without exception.",
    "If {thing} fails {place}, {person} has to restart it by hand and then confirm the result.",
    "Most of the complaints come from people who only ever see {thing} {place}.",
    "Please do not change {thing} unless {person} agrees in writing.",
    "The previous version handled {number} orders at once; the following one should handle at least twice as many.",
    "There is a table {place} that lists every repair of {thing} since it was installed.",
    "It rained for {number} hours, so the trip to see {thing} was put off.",
    "Nothing in the documentation explains how {thing} talks to {thing}.",
    "Each report is written as JSON, signed by {person} and stored {place}.",
    "The algorithm reads {thing} from left to right and returns the first entry that fits.",
    "Would it be cheaper to rent {thing} {place} or to build our own?",
    "{person} measured {thing} {place} and found it {number} percent slower than promised.",
    "My grandmother kept {thing} in the kitchen and told us never to touch it.",
    "Our infrastructure team wants to move {thing} to a distributed setup within {number} weeks.",
    "A class of {number} pupils built a model of {thing} out of cardboard.",
    "The compiler complains that the function for {thing} does not return a value.",
    "Let me know what {person} decides, and update the minutes afterwards.",
    "The court asked for proof that {thing} was sold {place}.",
    "Everything above the line belongs to {person}, everything below it to the bank.",
    "A theorem from the lecture says that {number} colours are enough, but the derivation skips a step.",
    "They serve soup {place} and play the same song until it closes.",
    "The microservice behind {thing} runs on Kubernetes with {number} replicas.",
    "Without a maximum for {thing}, the bill could reach {number} thousand a month.",
    "She began to compose the letter {place}, tore it up and started again.",
    "Step {number} of the manual tells you to configure {thing} before the pump is set up.",
    "We import coffee {place} and export {thing}, mostly by rail.",
    "Make sure that {thing} is encrypted; {person} will verify it {place}.",
    "The budget allows for {number} chairs, no more than that, and a lamp.",
    "Select the rows where {thing} is missing and write them to a CSV file.",
    "An imaginary traveller, {person} writes, would never find {thing} {place}.",
    "The following week {person} edited the schema and the tests began to fail.",
    "Nobody could prove who had opened the gate, or when.",
    "The genomics lab {place} shares a freezer with the quantum group.",
    "At most {number} of the bridges survived the flood, according to {person}.",
    "Await the signal, then change the points and check the lamp.",
    "Once done, iterate over {thing} and delete every entry older than {number} days.",
    "The story goes that {thing} was won in a card game {place}.",
    "Markdown is fine for the summary, but the table has to be XML.",
    "Both vendors avoid the question of how {thing} would be restored.",
    "Think about the architecture {place}: arches, brick, and one enormous window.",
)

TYPOGRAPHIC = (
    "“It’s only {thing},” said Zoë Martínez — “nothing to worry about …”",
    "The café beside {thing} charges {number} € and closes at 18 h, says Łukasz.",
    "Müller’s note on {thing} reads: “naïve, but it works”.",
)

BLOCKS = (
    "```python\ndef load_{number}(rows):\n    return [row for row in rows if row.get('place') is not None]\n```",
    "1. Look at {thing}.\n2. Ask {person} what changed {place}.\n3. Write the answer down.",
    "2031-04-{day} 07:12:44 WARN worker: retrying {thing} (attempt {number})\n"
    "2031-04-{day} 07:12:49 ERROR worker: gave up on {thing}",
    "| item | owner | amount |\n|---|---|---|\n| {thing} | {person} | {number} |",
    "```sql\nSELECT owner, amount FROM repairs WHERE amount > {number} ORDER BY owner;\n```",
    "- {thing}\n- {thing}\n- {thing}",
    "> {person} wrote:\n> the attached list is wrong, {thing} was returned {place}.",
)


class Hostile(NamedTuple):
    name: str
    unit: str  # repeated until the text is long enough

    def text(self, characters: int, variant: int = 0) -> str:
        """Texts of different variants differ in their last characters only."""
        return (self.unit * (characters // len(self.unit) + 1))[: characters - 2] + f" {variant % 10}"


HOSTILE = (
    Hostile("first", "first "),
    Hostile("newlines", "\n"),
    Hostile("what does", "what does "),
    Hostile("one word", "a"),
    # Two combining classes in turn: canonical ordering has to sort the whole run.
    Hostile("combining marks", "\u0301\u0323"),
    Hostile("zero-width", "\u200b\u200d\u2060\ufeff"),
    Hostile("mixed scripts", "pаypal 漢字かな عربى ไทย हिन्दी 한국어 😀 Straße Ａｂ "),
    # The character that grows most under compatibility folding: eighteen for one.
    Hostile("unfolding", "\ufdfa"),
)


# As many words as a student's vocabulary may have.
VOCABULARY = 3_000
SEEDS = Path(__file__).parent.parent / "src" / "turnout" / "profiles" / "seeds" / "tiers.jsonl"


def all_vocabulary() -> Hostile:
    """Nothing but the words that students learn from, the most frequent first: every one of them may be a hit."""
    rows = SEEDS.read_text(encoding="utf-8").splitlines()
    words = Counter(word for row in rows for word in re.findall(r"\b[a-z]{2,}\b", json.loads(row)["text"].lower()))
    return Hostile("vocabulary", " ".join(word for word, _ in words.most_common(VOCABULARY)) + " ")


def stream(tokens: int) -> Iterator[str]:
    """Endless different prompts of about `tokens` tokens, never more than a tenth above."""
    rng = random.Random(f"turnout/{tokens}")
    seen: set[str] = set()
    while True:
        text = write(rng, tokens * CHARACTERS_PER_TOKEN, typographic=len(seen) % TYPOGRAPHIC_EVERY == 0)
        if text not in seen:
            seen.add(text)
            yield text


def write(rng: random.Random, characters: int, typographic: bool) -> str:
    """One prompt: a request, then what people paste below it; a long one is cut after a whole word."""
    text = ask(rng, characters)
    if typographic:
        text = f"“{text}”"
    if characters < SHORTEST_PASTE:
        return text
    sentences = rng.sample(SENTENCES, SUBJECTS)
    blocks = rng.sample(BLOCKS, FORMS)
    pieces = [text]
    length = len(text)
    while length < characters:
        if typographic and rng.random() < 0.2:
            template = rng.choice(TYPOGRAPHIC)
        else:
            template = rng.choice(blocks if rng.random() < 0.1 else sentences)
        # Paragraphs of about five sentences; a block stands on lines of its own.
        gap = "\n\n" if template in BLOCKS or rng.random() < 0.2 else " "
        pieces += (gap, fill(rng, template))
        length += len(gap) + len(pieces[-1])
    return "".join(pieces)[: characters + 1].rsplit(None, 1)[0]


def ask(rng: random.Random, characters: int) -> str:
    while True:
        text = fill(rng, rng.choice(ASKS))
        if characters >= SHORTEST_PASTE or 0.8 * characters <= len(text) <= 1.1 * characters - 2:
            return text


def fill(rng: random.Random, template: str) -> str:
    parts = template.split("{")
    filled = [parts[0]]
    for part in parts[1:]:
        slot, rest = part.split("}", 1)
        filled += (rng.choice(SLOTS[slot]), rest)
    text = "".join(filled)
    return text[:1].upper() + text[1:]
