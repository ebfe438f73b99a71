"""`turnout study`: ask about the page in front of you, and see what was remembered and what was not sent."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path as File
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import App, Parameter

from turnout.core.errors import Refused, TurnoutError
from turnout.text.count import counted

from ..app import examples_of, show_paragraphs
from ..draw.screen import console, dollars, visible, write_json
from ..option import ConfigOption, DbOption, JsonOption, TextArgument, hint
from ..question import read_text

if TYPE_CHECKING:
    from turnout.apps.caller import Caller
    from turnout.apps.study.app import StudyApp
    from turnout.apps.study.ask import StudyAnswer, StudyQuestion
    from turnout.apps.study.image import PageImage
    from turnout.store.study import StudySession

app = App(name="study", help_epilogue=examples_of("study"))
memory = App(name="memory", help="See or forget what earlier sessions were about.")
app.command(memory)

SessionOption = Annotated[str, Parameter(help="The name of a session; questions lean on what was said in it.")]


@app.command
def ask(
    text: TextArgument = None,
    /,
    *,
    image: Annotated[str | None, Parameter(help="The page: JPEG, PNG or WebP. Read if needed.", metavar="FILE")] = None,
    notes: Annotated[str | None, Parameter(help="A folder of Markdown notes.", metavar="DIR")] = None,
    session: SessionOption = "default",
    look: Annotated[bool, Parameter(help="Ask the last question once more, with the page.")] = False,
    json: JsonOption = False,
    no_log: Annotated[bool, Parameter(help="Do not write the question down, nor remember it.")] = False,
    db: DbOption = None,
    config: ConfigOption = None,
) -> int:
    """Ask about the page in front of you, or about anything else.

    The question decides what is sent: the page, the conversation, what you studied before, your notes; or none of it.
    "Look at the page" after an answer asks the same question with the page.
    """
    _need_extra()
    from turnout.apps.study.app import StudyApp
    from turnout.apps.study.ask import StudyQuestion
    from turnout.runtime.log import quiet
    from turnout.runtime.runtime import Runtime
    from turnout.store import open_store

    asked = StudyQuestion("" if look else read_text(text), _page(image), session, look)
    folder = _folder(notes) if notes is not None else None
    quiet()
    store = None if no_log else open_store(db, config=config)
    app = StudyApp(Runtime(store, profile="study", config=config), notes=folder)
    with _refusals():
        result = asyncio.run(_ask(app, asked, json=json))
    if json:
        write_json(result)
        return 0
    screen = console()
    for cited in result.citations:
        place = " › ".join((cited.file, *cited.heading))
        screen.say((f"  [{cited.number}] {visible(place)}, {cited.start}-{cited.end}", "dim"))
    left = result.saving.left_out.total
    said = f"{result.route}{screen.glyphs.dot.join(('  ', '  '))}{left:,} tokens were not sent"
    worth = f" ({dollars(result.saving.usd)})" if result.saving.usd else ""
    screen.say((f"  {said}{worth}", "dim"))
    return 0


@app.command
def end(
    session: SessionOption = "default", /, *, json: JsonOption = False, db: DbOption = None, config: ConfigOption = None
) -> int:
    """End a session: it is summed up and remembered, and the next question begins another."""
    with _refusals():
        ended = asyncio.run(_end(_open(db, config), session))
    if ended is None:
        raise TurnoutError(f"there is no open session {session[:80]!r}: turnout study ask begins one")
    if json:
        write_json(ended)
    else:
        console().say((visible(ended.name), "bold"), f" has ended: {visible(ended.summary or 'nothing was said')}")
    return 0


@app.command
def savings(*, json: JsonOption = False, db: DbOption = None, config: ConfigOption = None) -> int:
    """See what was not sent over all answers, what that saved, and how often it was regretted."""
    from turnout.apps.study.savings import total

    with _opened(db, config) as study:
        assert study.runtime.store is not None  # noqa: S101 - it was opened with one
        found = total(study.runtime.store.records("").searches("study"))
    if json:
        write_json({**msgspec.to_builtins(found), "share": found.share})
        return 0
    screen = console()
    if not found.answers:
        screen.say("No question was answered yet: turnout study ask")
        return 0
    screen.say(
        f"{counted(found.answers, 'answer')}: {found.left_out_tokens:,} of "
        f"{found.sent_tokens + found.left_out_tokens:,} tokens of context were not sent ({found.share:.0%})"
    )
    for kind, tokens in found.by_kind.items():
        screen.say(f"  {kind:<8} {tokens:>10,}")
    screen.say(f"saved {dollars(found.saved_usd)}; the page was asked for again {counted(found.regretted, 'time')}")
    return 0


@memory.default
@memory.command(name="list")
def list_memory(*, json: JsonOption = False, db: DbOption = None, config: ConfigOption = None) -> int:
    """List the sessions that have ended, the newest first, each with its summary."""
    from turnout.apps.study.memory import day_of

    with _opened(db, config) as study:
        found = study.sessions.remembered("")
    if json:
        write_json(found)
        return 0
    screen = console()
    if not found:
        screen.say(f"Nothing is remembered: a session is when it ends, by {hint('study', 'end')} or after half an hour")
    for one in found:
        screen.say((one.id[-8:], "bold"), f"  {day_of(one.started_ms)}  {visible(one.name)}")
        screen.say(f"  {visible(one.summary or '')}")
    return 0


@memory.command
def forget(
    session: Annotated[str, Parameter(help="Its id, as it is listed; its name; or `all`.")],
    /,
    *,
    db: DbOption = None,
    config: ConfigOption = None,
) -> int:
    """Forget a session for good: what was asked and answered in it, and its summary."""
    with _opened(db, config) as study:
        count = study.sessions.forget("", session)
    if not count:
        raise TurnoutError(f"no session {session[:80]!r} is remembered (see turnout study memory list)")
    console().say(f"{counted(count, 'session')} forgotten")
    return 0


async def _ask(app: StudyApp, asked: StudyQuestion, *, json: bool) -> StudyAnswer:
    """Ask, and print each sentence when it is finished."""
    from turnout.apps.caller import Budget, Caller
    from turnout.apps.event import Failed
    from turnout.apps.study.answer import SpokenSentence
    from turnout.apps.study.ask import StudyAnswer

    result: StudyAnswer | None = None
    caller: Caller = Caller("", "", frozenset(("ask",)), Budget())
    async with _closing(app), aclosing(app.ask(asked, caller)) as events:
        async for event in events:
            if isinstance(event, SpokenSentence) and not json:
                print("\n".join(map(visible, event.text.split("\n"))), end="", flush=True)
            elif isinstance(event, Failed):
                raise TurnoutError(event.reason)
            elif isinstance(event, StudyAnswer):
                result = event
    assert result is not None  # noqa: S101 - it is the last event
    if not json:
        print()
    return result


async def _end(app: StudyApp, session: str) -> StudySession | None:
    from turnout.apps.caller import Budget, Caller

    async with _closing(app):
        return await app.end(session, Caller("", "", frozenset(("ask",)), Budget()))


@contextlib.asynccontextmanager
async def _closing(app: StudyApp) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await app.runtime.close()


@contextlib.contextmanager
def _opened(db: str | None, config: str | None) -> Iterator[StudyApp]:
    app = _open(db, config)
    try:
        yield app
    finally:
        asyncio.run(app.runtime.close())


def _open(db: str | None, config: str | None) -> StudyApp:
    _need_extra()
    from turnout.apps.study.app import StudyApp
    from turnout.runtime.log import quiet
    from turnout.runtime.runtime import Runtime
    from turnout.store import open_store

    quiet()
    return StudyApp(Runtime(open_store(db, config=config), profile="study", config=config))


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except Refused as refused:
        raise TurnoutError(str(refused)) from None


def _page(said: str | None) -> PageImage | None:
    """What reads the image, if it comes to that; a file that is not there is a slip, and told at once."""
    if said is None:
        return None
    path = File(os.path.expanduser(said))
    if not os.path.isfile(path):
        raise TurnoutError(f"--image {said[:200]!r}: there is no such file")
    from turnout.apps.study.image import MOST_BYTES
    from turnout.text.file import read_bytes

    def read() -> bytes:
        try:
            return read_bytes(path, MOST_BYTES)
        except OSError as error:
            why = f"it is larger than the {MOST_BYTES:,} bytes models take: use a smaller one"
            why = why if error.errno == errno.EFBIG else f"{error.strerror}"
            raise Refused(422, "invalid_request_error", f"--image {said[:200]!r}: {why}") from None

    return read


def _folder(said: str) -> File:
    path = File(os.path.abspath(os.path.expanduser(said)))
    if not path.is_dir():
        raise TurnoutError(f"--notes {said[:200]!r}: there is no such folder")
    return path


def _need_extra() -> None:
    try:
        import turnout.apps.study.app  # noqa: F401 - whether it can be
    except ImportError as error:
        raise TurnoutError(f"study needs {error.name}: pip install 'turnout[serve]'") from None


show_paragraphs(app)
