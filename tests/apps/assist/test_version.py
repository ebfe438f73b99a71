"""Which version is the newer, and which one a question names."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from turnout.apps.assist.version import NamedVersion, find_version, newest, order

ORDERED = ["0.9", "1.0", "2.9", "2.10", "3.0rc1", "3.0", "3.0.1", "10", "latest"]


def test_versions_are_ordered_as_numbers() -> None:
    assert sorted({*ORDERED}, key=order) == ORDERED
    assert newest(ORDERED) == "latest"
    assert newest(["3.9", "3.11"]) == "3.11"


class Case(NamedTuple):
    question: str
    found: NamedVersion | None
    versions: tuple[str, ...] = ("3.9", "3.11.2")


CASES = [
    Case("How do I retry?", None),
    Case("How do I retry in 3.9?", NamedVersion("3.9", "3.9")),
    Case("What changed in client 3.11?", NamedVersion("3.11", "3.11.2")),
    Case("Retry with v3.11.2", NamedVersion("3.11.2", "3.11.2")),
    Case("Does version 2 retry?", NamedVersion("2", "")),
    Case("client 3.7: does it retry?", NamedVersion("3.7", "")),
    Case("Retry 3 times", None),
    Case("Wait 2.5 seconds before a retry", None),
    Case("Connect to 10.0.0.1", None),
    Case("Retry in 3.1", None),
    Case("Is it in 2.x?", NamedVersion("2", "2.4"), ("1.0", "2.4")),
    Case("How in version 2?", NamedVersion("2", "2.4"), ("1.0", "2.4")),
    Case("How in client 2?", NamedVersion("2", "2.4"), ("1.0", "2.4")),
    Case("What says the main version?", NamedVersion("main", "main"), ("1.0", "main")),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.question)
def test_a_question_names_a_version(case: Case) -> None:
    assert find_version(case.question, "client", case.versions) == case.found
