"""Which layer a command means, and what it says where that cannot be told."""

import pytest

from turnout.core.errors import LearnError
from turnout.learn.contest import STUDENT, TRAINED, find_layer

ONE = {"id": "small", "kind": "student.v1"}
OTHER = {"id": "large", "kind": "student.v1"}
RULES = {"id": "rules", "kind": "rules.v1"}


def test_the_only_one_needs_no_name() -> None:
    assert find_layer("mine", [RULES, ONE], TRAINED) == ("small", ONE)
    assert find_layer("mine", [OTHER, ONE], TRAINED, "small") == ("small", ONE)


@pytest.mark.parametrize(
    ("entries", "name", "said"),
    [
        ([RULES], None, r"'mine' has no student\.v1 layer: train one"),
        ([RULES], "small", r"'mine' has no student\.v1 layer 'small'$"),
        ([ONE], "smal", r"did you mean 'small'"),
        ([ONE], "x", r"\(it has: small\)"),
        ([ONE, OTHER], None, r"--layer small or --layer large"),
    ],
)
def test_what_is_said_where_none_is_meant(entries: list[dict[str, str]], name: str | None, said: str) -> None:
    with pytest.raises(LearnError, match=said):
        find_layer("mine", entries, (STUDENT,), name, ": train one")
