"""Duplicates: the best label stays, likeness is found without comparing everything, twice is once."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from timing import is_within
from turnout.learn.dataset import BELIEVED, Example, folded
from turnout.learn.dedupe import ALIKE, collapse_exact, dedupe, group_alike, sign

WORDS = [
    "the",
    "cat",
    "sat",
    "on",
    "a",
    "mat",
    "while",
    "seven",
    "engineers",
    "discussed",
    "quarterly",
    "budgets",
    "and",
    "weather",
    "patterns",
    "near",
    "lake",
    "como",
    "before",
    "returning",
    "home",
    "with",
    "fresh",
    "bread",
    "some",
    "olives",
    "an",
    "old",
    "camera",
    "three",
    "maps",
    "plus",
    "several",
    "unopened",
    "letters",
]


def sentences(count: int, length: int, seed: int = 0) -> list[str]:
    random_ = random.Random(seed)
    return [" ".join(random_.choices(WORDS, k=length)) for _ in range(count)]


def test_a_human_wins_over_a_seed_over_a_teacher_over_an_outcome() -> None:
    for better in range(len(BELIEVED) - 1):
        rows = [Example("What now?", by, by) for by in BELIEVED[better:]]
        for order in (rows, rows[::-1]):
            (left,), conflicts = collapse_exact(order)
            assert left.label == BELIEVED[better]
            assert left.count == len(rows)
            assert conflicts == []


def test_the_newest_of_conflicting_humans_wins_and_is_reported() -> None:
    rows = [
        Example("What now?", "new", at=2),
        Example("what  NOW?", "old", at=1),
        Example("What now?", "guess", "teacher"),
    ]
    found = dedupe(rows)
    assert [(row.label, row.count) for row in found.rows] == [("new", 3)]
    assert any("people disagree on 1 question" in said and "new over old" in said for said in found.remarks)
    undated = dedupe([Example("What now?", "first"), Example("What now?", "last")])
    assert undated.rows[0].label == "last"


def test_near_duplicates_of_one_label_become_one() -> None:
    base = "how do I install the command line tools on my new laptop without any administrator rights"
    rows = [Example(base, "a", "teacher"), Example(f"{base}, please!", "a"), Example(f"{base}?", "b")]
    found = dedupe(rows)
    assert [(row.label, row.by, row.count) for row in found.rows] == [("a", "human", 2), ("b", "human", 1)]
    assert (found.exact, found.near) == (0, 1)


def test_what_is_merely_similar_stays() -> None:
    rows = [Example(text, "a") for text in ("turn on the light", "turn off the light", "book a table", "book a flight")]
    assert dedupe(rows).rows == tuple(rows)


def test_signs_alone_and_the_shortest_texts_are_told_apart() -> None:
    rows = [Example(text, "a") for text in ("?", "!", "a", "b", "ab", "", "…", "日本", "日")]
    assert len(dedupe(rows).rows) == len(rows)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.lists(st.integers(0, 11), max_size=2), st.sampled_from("ab")), max_size=40)
)
def test_twice_is_once_and_no_row_is_forgotten(made: list[tuple[int, list[int], str]]) -> None:
    bases = sentences(6, 12)
    rows = []
    for base, changed, label in made:
        words = bases[base].split()
        for at in changed:
            words[at] = "changed"
        rows.append(Example(" ".join(words), label))
    found = dedupe(rows)
    assert sum(row.count for row in found.rows) == len(rows)
    assert {row.label for row in found.rows} <= {row.label for row in rows}
    again = dedupe(found.rows)
    assert again.rows == found.rows
    assert (again.exact, again.near) == (0, 0)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(max_size=30), max_size=30), st.randoms(use_true_random=False))
def test_what_stays_does_not_depend_on_the_order(texts: list[str], order: random.Random) -> None:
    rows = [Example(text, "a") for text in dict.fromkeys(map(folded, texts))]
    mixed = order.sample(rows, len(rows))
    assert {row.text for row in dedupe(rows).rows} == {row.text for row in dedupe(mixed).rows}


def test_signatures_measure_the_share_of_common_shingles() -> None:
    """Against the exact share, for pairs from nothing in common to everything."""
    random_ = random.Random(3)
    for changes in range(0, 12, 3):
        words = sentences(1, 20, seed=changes)[0].split()
        other = list(words)
        for at in random_.sample(range(20), changes):
            other[at] = "q" * random_.randint(3, 9)
        first, second = " ".join(words), " ".join(other)
        shingles = [{f" {text} "[at : at + 4] for at in range(len(text) - 1)} for text in (first, second)]
        exact = len(shingles[0] & shingles[1]) / len(shingles[0] | shingles[1])
        signatures = sign([first, second])
        # Three standard deviations of 128 draws.
        assert abs((signatures[0] == signatures[1]).mean() - exact) <= 0.14


def test_groups_hold_the_same_the_alike_and_nobody_else() -> None:
    base = sentences(1, 30)[0]
    texts = [base, base.upper(), f"{base} indeed", "something else entirely"]
    groups = group_alike(texts)
    assert groups[0] == groups[1] == groups[2] != groups[3]


def test_a_flood_of_variants_is_one_row_and_takes_no_longer_than_other_text() -> None:
    """The promise is 50,000 rows in 20 s on one core; a tenth of it here, with room for a slow machine."""
    base = " ".join(WORDS)
    flood = [Example(f"{base} {number}", "a") for number in range(5000)]
    assert len(dedupe(flood).rows) == 1
    other = [Example(text, "a") for text in sentences(5000, 12, seed=9)]
    assert len(dedupe(other).rows) > 4900
    assert is_within(10, lambda: (dedupe(flood), dedupe(other)))
    assert ALIKE == 0.8
