"""Three-valued logic: true, false, and None for unknown. An unknown value matters only where it could change the
result."""

from __future__ import annotations

from collections.abc import Collection

Truth = bool | None


def any_of(values: Collection[Truth]) -> Truth:
    return True if True in values else None if None in values or not values else False


def all_of(values: Collection[Truth]) -> Truth:
    return False if False in values else None if None in values or not values else True


def negate(value: Truth) -> Truth:
    return None if value is None else not value
