"""What a request leaves behind: nothing that only the garbage collector could find. Objects that refer to each other in
a circle stay until it comes, and by then the memory of thousands of requests has to be gone through."""

import gc
import http.client
import json
from collections import Counter
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from secured_server import chat, secured_server
from serving import RunningServer

REQUESTS = 40
OURS = ("turnout.web", "turnout.net", "turnout.apps", "uvicorn", "httptools", "aiohttp")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with secured_server(tmp_path_factory.mktemp("garbage")) as (found, _):
        yield found


def alive() -> Counter[str]:
    return Counter(type(one).__qualname__ for one in gc.get_objects() if str(type(one).__module__).startswith(OURS))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_request_leaves_no_circle_behind(served: RunningServer, stream: bool) -> None:
    body = json.dumps(chat("hello") | {"stream": stream}).encode()
    place = urlsplit(served.url)
    connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=20)
    gc.collect()
    gc.disable()
    before = alive()
    try:
        for _ in range(REQUESTS):
            connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
            answer = connection.getresponse()
            assert (answer.status, bool(answer.read())) == (200, True)
        left = alive() - before
    finally:
        gc.enable()
        connection.close()
    assert {name: count for name, count in left.items() if count >= REQUESTS} == {}
