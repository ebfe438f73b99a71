"""Bugs that a test has found and nobody has fixed yet: each mark names one, and turns the build red when it is gone."""

import pytest


def bug(reason: str) -> pytest.MarkDecorator:
    return pytest.mark.xfail(strict=True, reason=reason)
