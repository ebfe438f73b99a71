"""`turnout assist`: read documentation, in several versions, and ask it questions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path as File
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import App, Parameter
from rich.text import Text

from turnout.apps.assist.event import AskContext, AssistAnswer
from turnout.apps.assist.library import Libraries, open_libraries, shared_place
from turnout.config.settings import store_settings, store_url
from turnout.core.errors import TurnoutError
from turnout.core.query import Query
from turnout.runtime.load import open_embedder
from turnout.text.count import counted

from ..app import examples_of, show_paragraphs
from ..application import local_caller, needing, open_runtime, run
from ..draw.screen import console, visible, visible_lines, write_json
from ..draw.shape import headed
from ..option import ConfigOption, FileOption, JsonOption, NameOption, StoreOptions, TextArgument, hint
from ..question import read_text
from ..stream import progressing

if TYPE_CHECKING:
    from turnout.apps.assist.app import AssistApp

app = App(name="assist", help_epilogue=examples_of("assist"))
NEEDS = "the assistant needs"
# Unreadable files that are listed.
LISTED = 5


@app.command
def ingest(
    folder: Annotated[str, Parameter(name="DIR", help="Markdown, HTML, reStructuredText, text, PDF and code.")],
    /,
    *,
    library: Annotated[NameOption, Parameter(help="Its name; by default the folder's.")] = None,
    version: Annotated[
        str,
        Parameter(
            help="Kept as it is now, beside other versions; without one, changes in the folder are followed.",
            metavar="V",
        ),
    ] = "",
    follow: Annotated[bool, Parameter(help="Read changed files again, even with a version.")] = False,
    json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Read a folder of documents, or what has changed in it since.

    Each file is cut by its headings. Sentence vectors are added if an embedder is installed.
    """
    root = File(folder).expanduser().absolute()
    with _opened(config) as libraries, progressing("files") as progress:
        edition, changes, unread = libraries.ingest(
            root, library or root.name, version, follow=follow or None, progress=progress
        )
    if json:
        write_json({"edition": edition, "changes": changes, "unread": unread})
        return
    screen = console()
    screen.say((f"{visible(edition.library)} {visible(edition.version)}", "bold"), f" from {visible(folder)}")
    total = f"{counted(edition.files, 'file')}, {counted(edition.sections, 'section')}"
    screen.say(f"  {total}: {changes.added:,} new, {changes.changed:,} changed, {changes.deleted:,} gone")
    for path, why in list(unread.items())[:LISTED]:
        screen.say((f"  {visible(path)}: {visible(why)}", "yellow"))
    if len(unread) > LISTED:
        screen.say((f"  and {len(unread) - LISTED:,} more that could not be read", "yellow"))
    screen.say(f"Next: {hint('assist', 'ask', 'how do I …?')}")


@app.command
def ask(
    text: TextArgument = None,
    /,
    *,
    query_type: Annotated[
        str | None,
        Parameter(
            name="--type", help="RETRIEVAL, CODE_GENERATION, CONVERSATIONAL or PLATFORM, if you know.", metavar="TYPE"
        ),
    ] = None,
    library: Annotated[str, Parameter(help="Ask only this library.", metavar="NAME")] = "",
    version: Annotated[str, Parameter(help="This version; else the one you name, else the newest.", metavar="V")] = "",
    selected: Annotated[FileOption, Parameter(help="A file with the code that “this” refers to.")] = None,
    context: Annotated[str, Parameter(help="Platform data: usage, quota, billing.", metavar="TEXT")] = "",
    session: Annotated[str | None, Parameter(help="The name of a session; earlier turns in it are known.")] = None,
    json: JsonOption = False,
    no_log: Annotated[bool, Parameter(help="Do not log the question.")] = False,
    where: StoreOptions = StoreOptions(),
) -> int:
    """Ask the documents you have ingested, or ask for code.

    Every statement is cited, and every citation checked. Without a model the best passages are the answer. The exit
    code is 1 if it is not in these documents.
    """
    with needing(NEEDS):
        from turnout.apps.assist.app import AssistApp

    query = Query(read_text(text), declared=query_type, session=session)
    code = File(selected).read_text(encoding="utf-8", errors="replace") if selected is not None else ""
    app = AssistApp(open_runtime(where, "assist", log=not no_log))
    result = run(app.runtime, _ask(app, query, AskContext(code, "", context, "", library, version)))
    if json:
        write_json(result)
    else:
        _show(result)
    return 1 if result.refused else 0


async def _ask(app: AssistApp, query: Query, context: AskContext) -> AssistAnswer:
    from turnout.apps.assist.routes import last_of

    caller = local_caller()
    decision = await app.decide(query, caller, context)
    return await last_of(app.act(decision, query, caller, context))


def _show(result: AssistAnswer) -> None:
    screen = console()
    screen.prose(Text(visible_lines(result.answer.strip())))
    if result.citations and result.model:
        screen.print()
        for cited in result.citations:
            screen.say((f"[{cited.number}] {visible(cited.place)} ({cited.start}-{cited.end})", "dim"))
    screen.print()
    by = f" by {result.model}" if result.model else ""
    screen.say((f"{result.query_type}{by}, decision {result.decision_id}", "dim"))


@app.default
@app.command(name="list")
def list_libraries(*, json: JsonOption = False, config: ConfigOption = None) -> None:
    """List the libraries you have ingested, version by version."""
    with _opened(config) as libraries:
        editions = sorted(libraries.editions(), key=lambda edition: edition.name)
    if json:
        write_json([{"id": edition.id, **msgspec.to_builtins(edition)} for edition in editions])
        return
    screen = console()
    if not editions:
        screen.say(f"Nothing was ingested yet: {hint('assist', 'ingest', 'DIR')}")
        return
    table = headed({"library": "bold", "version": "", "files": "right", "sections": "right", "folder": "wrap"})
    for edition in editions:
        folder = f"{edition.folder}{' (followed)' if edition.follows else ''}"
        row = (edition.library, edition.version, f"{edition.files:,}", f"{edition.sections:,}", folder)
        table.add_row(*map(visible, row))
    screen.inset(table, "")


@app.command
def forget(
    library: Annotated[str, Parameter(help="Its name.", metavar="NAME")],
    /,
    *,
    version: Annotated[str, Parameter(help="The version.", metavar="V", show_default=True)] = "latest",
    config: ConfigOption = None,
) -> None:
    """Remove a version of a library from the index. Its files stay where they are."""
    with _opened(config) as libraries:
        deleted = libraries.forget(library, version)
    if not deleted:
        raise TurnoutError(f"{library} {version} was not ingested (see {hint('assist', 'list')})")
    console().say(f"{visible(library)} {visible(version)} is gone: {counted(deleted, 'section')}")


@contextmanager
def _opened(config: str | None) -> Iterator[Libraries]:
    with needing(NEEDS):
        import turnout.apps.assist.app  # noqa: F401 - to find out whether the extra is installed

    place = shared_place(store_url(None, store_settings(config)))
    libraries = open_libraries(place, open_embedder(config))
    with closing(libraries.index):
        yield libraries


show_paragraphs(app)
