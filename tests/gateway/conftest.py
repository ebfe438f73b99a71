"""Nothing of whoever runs the tests is seen by them."""

from collections.abc import Iterator

import pytest

from clean_environment import clear_environment


@pytest.fixture(scope="session", autouse=True)
def _own_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        clear_environment(patch, tmp_path_factory.mktemp("home"))
        yield
