"""`turnout diff`: compare two profiles, or recorded decisions with those of now, on real questions."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated

from cyclopts import Parameter

from turnout.config.name import DEFAULT_PROFILE
from turnout.core.errors import QueryError
from turnout.runtime.diff import Diff, DiffJob, compare_chunk, logged_lines, policy_changes
from turnout.runtime.load import load_profile
from turnout.runtime.log import nothing_there, reading_log
from turnout.runtime.rows import chunks, pack, spread
from turnout.text.count import counted

from ..draw.compare import draw_diff
from ..draw.screen import console, visible, write_json
from ..option import (
    FieldOption,
    JsonOption,
    NumberOption,
    ProfileOption,
    TenantOptions,
    TimeOptions,
    WorkersOption,
    check_least,
    no_folder,
)
from ..stream import reading, watched, workers_for

# Questions that change and are listed by default.
LISTED = 20


def diff(
    *what: Annotated[
        str,
        Parameter(
            name="[OLD NEW] [IN]",
            help="Two profiles, each a shipped one's name or the path of a TOML file; and JSONL, one question a row. "
            "One file alone is what turnout batch --with-text has written. `-` reads stdin.",
        ),
    ],
    profile: ProfileOption = DEFAULT_PROFILE,
    from_log: Annotated[bool, Parameter(help="Take the questions of the decision log, not IN.")] = False,
    when: TimeOptions = TimeOptions(),
    field: FieldOption = "text",
    json: JsonOption = False,
    limit: Annotated[NumberOption, Parameter(help="How many of the questions that change are listed.")] = LISTED,
    workers: WorkersOption = None,
    where: TenantOptions = TenantOptions(),
) -> int:
    count, config = workers_for(workers), where.config
    check_least("--limit", limit, 0)
    old, new, source = _read_arguments(what, profile, from_log=from_log)
    span = when.span()
    # Mistakes in either profile are reported once, here, not by every worker.
    before = load_profile(old, config=config, local=True) if old is not None else None
    after = load_profile(new, config=config, local=True)
    found = Diff(limit=limit)
    job = DiffJob(old, new, config, field, limit)
    empty = ""
    with ExitStack() as opened:
        if source is not None:
            file, size = opened.enter_context(reading(source))
            parts = chunks(file)
        else:
            store, size = opened.enter_context(reading_log(where)), None
            records = store.records(where.tenant)
            rows = records.decisions(span=span, profile=(before or after).name, oldest_first=True)
            parts = pack(logged_lines(rows, found.skipped, recorded=before is None))
            empty = nothing_there(store, records, where)
        for part in watched(spread(compare_chunk, job, parts, count), size):
            found.add(part)
    if json:
        write_json(found.form(before, after))
    elif empty and not found.rows and not found.skipped:
        print(visible(empty))
    else:
        draw_diff(console(), before, after, found, policy_changes(before, after) if before else {})
    return 1 if found.differing or found.errors else 0


def _read_arguments(what: tuple[str, ...], profile: str, *, from_log: bool) -> tuple[str | None, str, str | None]:
    """The old profile if there are two, the new one, and the file unless the log is used."""
    profiles, source = (what, None) if from_log else (what[:-1], what[-1] if what else None)
    if source is None and not from_log:
        raise QueryError("nothing to compare: name what turnout batch --with-text has written, or add --from-log")
    if len(profiles) not in (0, 2):
        questions = "--from-log" if from_log else "IN"
        raise QueryError(
            f"{counted(len(what), 'argument')}: write OLD NEW {questions} to compare two profiles, or {questions} "
            "alone to compare what was decided with what --profile decides now"
        )
    for name in profiles:
        try:
            no_folder(None, name)
        except ValueError as error:
            raise QueryError(str(error)) from None
    return (profiles[0], profiles[1], source) if profiles else (None, profile, source)
