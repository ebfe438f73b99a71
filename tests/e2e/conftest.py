"""Nothing of whoever runs the tests is seen by them."""

from collections.abc import Iterator

import pytest

from serving import SERVERS
from surroundings import clear_surroundings


@pytest.fixture(scope="session", autouse=True)
def _own_surroundings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        clear_surroundings(patch, tmp_path_factory.mktemp("home"))
        yield


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest) -> str:
    """Every scenario is run by both."""
    return str(request.param)
