"""Splits: nothing lost, nothing twice, nothing alike on both sides, whatever order the rows come in."""

import random
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnout.core.errors import TooFewExamples
from turnout.learn.dataset import Example
from turnout.learn.dedupe import group_alike
from turnout.learn.split import Split, hold_out, k_fold

NOUNS = ["apple", "river", "engine", "garden", "window", "letter", "castle", "forest", "pocket", "mirror"]


def rows_of(counts: dict[str, int], seed: int = 0) -> list[Example]:
    random_ = random.Random(seed)
    return [
        Example(f"{label} {' '.join(random_.choices(NOUNS, k=3))} {random_.randrange(10**6)}", label)
        for label, count in counts.items()
        for _ in range(count)
    ]


some_rows = st.lists(
    st.builds(
        Example,
        st.text("abcd e", max_size=12),
        st.sampled_from("xyz"),
        session=st.sampled_from([None, "s", "t"]),
    ),
    min_size=5,
    max_size=40,
)


def sizes_of(rows: Sequence[Example], split: Split) -> dict[str, tuple[int, int]]:
    """How many rows of each label are learnt and how many judged."""
    learnt, judged = (Counter(rows[index].label for index in side) for side in (split.learn, split.judge))
    return {label: (learnt[label], judged[label]) for label in sorted({row.label for row in rows})}


@settings(max_examples=60, deadline=None)
@given(some_rows, st.integers(0, 3), st.booleans())
def test_no_row_is_lost_or_twice_and_no_group_straddles(rows: list[Example], seed: int, sessions: bool) -> None:
    groups = group_alike([row.text for row in rows])
    for split in (hold_out(rows, seed=seed, sessions=sessions), *k_fold(rows, folds=3, seed=seed, sessions=sessions)):
        assert sorted(split.learn + split.judge) == list(range(len(rows)))
        sides = [{groups[index] for index in side} for side in (split.learn, split.judge)]
        assert not sides[0] & sides[1]
        if sessions:
            names = [{rows[index].session for index in side} - {None} for side in (split.learn, split.judge)]
            assert not names[0] & names[1]
    judged = [index for split in k_fold(rows, folds=3, seed=seed) for index in split.judge]
    assert sorted(judged) == list(range(len(rows)))


@settings(max_examples=30, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(order: random.Random) -> None:
    rows = rows_of({"a": 40, "b": 15})
    mixed = order.sample(rows, len(rows))
    sides = [{given[index].text for index in hold_out(given).judge} for given in (rows, mixed)]
    assert sides[0] == sides[1]
    folds = [[{given[index].text for index in split.judge} for split in k_fold(given)] for given in (rows, mixed)]
    assert folds[0] == folds[1]


def test_a_seed_gives_another_split_and_the_same_one_the_same() -> None:
    rows = rows_of({"a": 50, "b": 50})
    assert hold_out(rows, seed=1) == hold_out(rows, seed=1)
    assert hold_out(rows, seed=1) != hold_out(rows, seed=2)


@pytest.mark.parametrize("share", [0.1, 0.2, 0.5])
def test_every_label_has_its_share(share: float) -> None:
    rows = rows_of({"a": 400, "b": 100, "c": 20})
    for label, (learnt, judged) in sizes_of(rows, hold_out(rows, share=share)).items():
        total = learnt + judged
        assert 0.75 * share * total <= judged <= max(1, 1.25 * share * total), label


def test_folds_are_even_in_every_label() -> None:
    rows = rows_of({"a": 100, "b": 23, "c": 7})
    for split in k_fold(rows, folds=5):
        judged = Counter(rows[index].label for index in split.judge)
        assert judged["a"] == 20
        assert judged["b"] in (4, 5)
        assert judged["c"] in (1, 2)


def test_rows_that_come_later_hardly_move_the_others() -> None:
    rows = rows_of({"a": 300, "b": 300})
    early, late = rows[::2], rows
    before = {early[index].text for index in hold_out(early).learn}
    after = {late[index].text for index in hold_out(late).judge}
    # What was learnt and is judged now would flatter the old student.
    assert len(before & after) <= 0.1 * len(after)


def test_tiny_labels_are_learnt_and_said() -> None:
    rows = rows_of({"a": 30, "b": 1, "c": 2})
    split = hold_out(rows)
    assert sizes_of(rows, split)["b"] == (1, 0)
    assert sizes_of(rows, split)["c"] == (1, 1)
    assert split.remarks == ("b: 1 row, too few to hold some out: it is learnt and not judged",)
    folds = k_fold(rows)
    assert [said.split(":")[0] for said in folds[0].remarks] == ["b", "c"]


def test_a_label_of_near_duplicates_alone_is_not_judged() -> None:
    text = "how do I install the command line tools on my new laptop without any administrator rights"
    rows = [*rows_of({"a": 20}), *(Example(f"{text} {number}", "b") for number in range(9))]
    split = hold_out(rows)
    assert sizes_of(rows, split)["b"] == (9, 0)
    assert "in 1 groups of near duplicates" in split.remarks[0]


def test_a_session_too_large_for_the_hold_out_is_learnt() -> None:
    rows = [Example(f"{noun} {number}", "a", session="big") for noun in NOUNS for number in range(5)]
    rows += [Example(f"other {noun} of mine", "a", session=noun) for noun in NOUNS]
    split = hold_out(rows, sessions=True)
    assert split.judge
    assert all(rows[index].session != "big" for index in split.judge)


def test_what_cannot_be_split_is_refused() -> None:
    with pytest.raises(TooFewExamples, match="2 examples cannot be split 5 ways"):
        k_fold(rows_of({"a": 2}))
    with pytest.raises(ValueError, match="share"):
        hold_out(rows_of({"a": 2}), share=1.0)
    with pytest.raises(ValueError, match="folds"):
        k_fold(rows_of({"a": 20}), folds=1)
    assert hold_out([]).judge == ()
