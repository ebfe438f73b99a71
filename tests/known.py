"""Bugs that a test has found and nobody has fixed yet: each mark names one, and turns the build red when it is gone."""

import pytest


def bug(reason: str, *, here: bool = True) -> pytest.MarkDecorator:
    """Expected to fail; `here` is false where the bug is another version's."""
    return pytest.mark.xfail(here, strict=True, reason=reason)
