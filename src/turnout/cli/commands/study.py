"""`turnout study`: ask about the page in front of you; see what is remembered and what was not sent."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path as File
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import App, Parameter

from turnout.apps.event import Event, Failed
from turnout.apps.study.ask import StudyAnswer, StudyQuestion
from turnout.apps.study.image import MOST_BYTES, PageImage
from turnout.apps.study.memory import day_of
from turnout.apps.study.savings import total
from turnout.core.errors import Refused, TurnoutError
from turnout.text.count import counted
from turnout.text.file import read_bytes

from ..app import examples_of, show_paragraphs
from ..application import follow, local_caller, needing, open_runtime, opened_runtime, run
from ..draw.screen import console, dollars, visible, visible_lines, write_json
from ..option import FileOption, JsonOption, StoreOptions, TextArgument, find_path, hint
from ..question import read_text

if TYPE_CHECKING:
    from turnout.apps.study.app import StudyApp

app = App(name="study", help_epilogue=examples_of("study"))
memory = App(name="memory", help="See or forget what earlier sessions were about.")
app.command(memory)

NEEDS = "study needs"
SessionOption = Annotated[str, Parameter(help="The name of a session; questions may refer to earlier ones in it.")]


@app.command
def ask(
    text: TextArgument = None,
    /,
    *,
    image: Annotated[FileOption, Parameter(help="The page: JPEG, PNG or WebP. Read if needed.")] = None,
    notes: Annotated[str | None, Parameter(help="A folder of Markdown notes.", metavar="DIR")] = None,
    session: SessionOption = "default",
    look: Annotated[bool, Parameter(help="Ask the last question again, with the page.")] = False,
    json: JsonOption = False,
    no_log: Annotated[bool, Parameter(help="Do not log or remember the question.")] = False,
    where: StoreOptions = StoreOptions(),
) -> None:
    """Ask about the page in front of you, or about anything else.

    The question decides what is sent: the page, the conversation, what you studied before, your notes; or none of it.
    "Look at the page" after an answer asks the same question with the page.
    """
    with needing(NEEDS):
        from turnout.apps.study.app import StudyApp

    question = StudyQuestion("" if look else read_text(text), _page(image), session, look)
    folder = File(find_path("--notes", notes, os.path.isdir, "folder")) if notes is not None else None
    app = StudyApp(open_runtime(where, "study", log=not no_log), notes=folder)
    result = run(app.runtime, _ask(app, question, json=json))
    if json:
        write_json(result)
        return
    screen = console()
    for cited in result.citations:
        place = " › ".join((cited.file, *cited.heading))
        screen.say((f"  [{cited.number}] {visible(place)}, {cited.start}-{cited.end}", "dim"))
    saving = result.saving
    worth = f" ({dollars(saving.usd)})" if saving.usd else ""
    line = f"  {result.route}  {screen.glyphs.dot}  {saving.left_out.total:,} tokens were not sent{worth}"
    screen.say((line, "dim"))


@app.command
def end(
    session: SessionOption = "default", /, *, json: JsonOption = False, where: StoreOptions = StoreOptions()
) -> None:
    """End a session: it is summarised and remembered, and the next question begins a new one."""
    with needing(NEEDS):
        from turnout.apps.study.app import StudyApp

    app = StudyApp(open_runtime(where, "study"))
    ended = run(app.runtime, app.end(session, local_caller()))
    if ended is None:
        raise TurnoutError(f"there is no open session {session[:80]!r}: turnout study ask begins one")
    if json:
        write_json(ended)
    else:
        console().say((visible(ended.name), "bold"), f" has ended: {visible(ended.summary or 'nothing was said')}")


@app.command
def savings(*, json: JsonOption = False, where: StoreOptions = StoreOptions()) -> None:
    """Show what was left out over all answers, what that saved, and how often it was missed."""
    with _opened(where) as study:
        assert study.runtime.store is not None  # noqa: S101 - it was opened with one
        saved = total(study.runtime.store.records("").searches("study"))
    if json:
        write_json({**msgspec.to_builtins(saved), "share": saved.share})
        return
    screen = console()
    if not saved.answers:
        screen.say("No question was answered yet: turnout study ask")
        return
    screen.say(
        f"{counted(saved.answers, 'answer')}: {saved.left_out_tokens:,} of "
        f"{saved.sent_tokens + saved.left_out_tokens:,} tokens of context were not sent ({saved.share:.0%})"
    )
    for kind, tokens in saved.by_kind.items():
        screen.say(f"  {kind:<8} {tokens:>10,}")
    screen.say(f"saved {dollars(saved.saved_usd)}; the page was asked for again {counted(saved.regretted, 'time')}")


@memory.default
@memory.command(name="list")
def list_memory(*, json: JsonOption = False, where: StoreOptions = StoreOptions()) -> None:
    """List the sessions that have ended, the newest first, each with its summary."""
    with _opened(where) as study:
        sessions = study.sessions.remembered("")
    if json:
        write_json(sessions)
        return
    screen = console()
    if not sessions:
        screen.say(f"Nothing is remembered: a session is when it ends, by {hint('study', 'end')} or after half an hour")
    for one in sessions:
        screen.say((one.id[-8:], "bold"), f"  {day_of(one.started_ms)}  {visible(one.name)}")
        screen.say(f"  {visible(one.summary or '')}")


@memory.command
def forget(
    session: Annotated[str, Parameter(help="Its id, as listed; its name; or `all`.")],
    /,
    *,
    where: StoreOptions = StoreOptions(),
) -> None:
    """Delete a session permanently: its questions, answers and summary."""
    with _opened(where) as study:
        count = study.sessions.forget("", session)
    if not count:
        raise TurnoutError(f"no session {session[:80]!r} is remembered (see turnout study memory list)")
    console().say(f"{counted(count, 'session')} forgotten")


async def _ask(app: StudyApp, question: StudyQuestion, *, json: bool) -> StudyAnswer:
    """Ask, and print each sentence when it is finished."""
    from turnout.apps.study.answer import SpokenSentence

    def show(event: Event) -> None:
        if isinstance(event, SpokenSentence) and not json:
            print(visible_lines(event.text), end="", flush=True)
        elif isinstance(event, Failed):
            raise TurnoutError(event.reason)

    result = await follow(app.ask(question, local_caller()), StudyAnswer, show)
    if not json:
        print()
    return result


@contextmanager
def _opened(where: StoreOptions) -> Iterator[StudyApp]:
    with needing(NEEDS):
        from turnout.apps.study.app import StudyApp
    with opened_runtime(where, "study") as runtime:
        yield StudyApp(runtime)


def _page(image: str | None) -> PageImage | None:
    """A function that reads the image if it is needed; a file that does not exist is reported at once."""
    if image is None:
        return None
    path = File(find_path("--image", image, os.path.isfile, "file"))

    def read() -> bytes:
        try:
            return read_bytes(path, MOST_BYTES)
        except OSError as error:
            too_large = f"it is larger than the {MOST_BYTES:,} bytes models take: use a smaller one"
            why = too_large if error.errno == errno.EFBIG else error.strerror
            raise Refused(422, "invalid_request_error", f"--image {image[:200]!r}: {why}") from None

    return read


show_paragraphs(app)
