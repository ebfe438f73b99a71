"""Two hundred listeners hear the whole list in order; a listener of another process hears it, too."""

from __future__ import annotations

import asyncio
from pathlib import Path

from turnout.apps.claims.event import ChatEvent, ClaimCardReady, RoutingStarted
from turnout.apps.claims.feed import Feed
from turnout.store import Store, open_store
from turnout.store.session_log import open_session_log

LISTENERS = 200
EVENTS = 30


def opened(folder: Path) -> Store:
    return open_store(f"sqlite:///{folder}/turnout.db", config="")


async def hear(feed: Feed, after: int = 0) -> list[ChatEvent]:
    return [event async for event in feed.listen("", "s", after, False)]


async def tell(feed: Feed) -> None:
    for number in range(EVENTS - 1):
        await asyncio.to_thread(feed.append, "", "s", RoutingStarted(question=str(number)))
        await asyncio.sleep(0.002)
    await asyncio.to_thread(feed.append, "", "s", ClaimCardReady(pipeline_id="p", claim_card_id="c"))


def test_two_hundred_at_once_before_and_during_and_after(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        feed = Feed(open_session_log(store))
        before = [asyncio.create_task(hear(feed)) for _ in range(LISTENERS // 2)]
        telling = asyncio.create_task(tell(feed))
        await asyncio.sleep(0.03)
        during = [asyncio.create_task(hear(feed)) for _ in range(LISTENERS // 2)]
        heard = await asyncio.gather(*before, *during)
        await telling
        heard += await asyncio.gather(*(hear(feed) for _ in range(LISTENERS)))
        assert {len(one) for one in heard} == {EVENTS}
        assert all(one == heard[0] for one in heard)
        assert [event.sequence for event in heard[0]] == list(range(1, EVENTS + 1))
        assert feed._readers == {}, "who has heard the end listens no longer"
        await feed.close()

    with opened(tmp_path) as store:
        asyncio.run(scenario(store))


def test_what_another_process_tells_is_heard_here(tmp_path: Path) -> None:
    async def scenario(store: Store, other: Store) -> None:
        here, there = Feed(open_session_log(store)), Feed(open_session_log(other))
        listening = asyncio.create_task(hear(here))
        await asyncio.sleep(0.05)
        await tell(there)
        async with asyncio.timeout(5):
            assert [event.sequence for event in await listening] == list(range(1, EVENTS + 1))
        await here.close()
        await there.close()

    with opened(tmp_path) as store, opened(tmp_path) as other:
        asyncio.run(scenario(store, other))


def test_a_listener_that_follows_hears_the_next_question_too(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        feed = Feed(open_session_log(store))
        following = feed.listen("", "s", 0, True)
        for number in (1, 2):
            await asyncio.to_thread(feed.append, "", "s", ClaimCardReady(pipeline_id="p", claim_card_id=str(number)))
            assert (await anext(following)).sequence == number
        await following.aclose()
        await feed.close()

    with opened(tmp_path) as store:
        asyncio.run(scenario(store))
