"""`turnout diff`: what a changed profile would change, on questions that were really asked."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, NamedTuple

import msgspec
from cyclopts import Parameter

from turnout.config.load import load_profile
from turnout.core.errors import QueryError
from turnout.core.profile import Profile
from turnout.core.query import Query

from ..draw.compare import Change, Compared, Pair, Side, nothing, report
from ..draw.screen import Glyphs, console, glyphs_for, say, visible, write_json
from ..option import ConfigOption, FieldOption, JsonOption, LimitOption, WorkersOption, no_folder
from ..rows import KEPT_ERRORS, Chunk, chunks, encode_id, read_row, router_of, spread, text_of
from ..stream import reading, watched, workers_for

LISTED = 20


class Task(NamedTuple):
    """What every chunk is compared with."""

    old: str
    new: str
    config: str | None
    field: str
    limit: int


def diff(
    old: Annotated[
        str, Parameter(name="OLD", help="A shipped profile's name, or the path of a TOML file.", validator=no_folder)
    ],
    new: Annotated[str, Parameter(name="NEW", help="The profile to compare it with.", validator=no_folder)],
    source: Annotated[str, Parameter(name="IN", help="JSONL, one question a row; `-` reads stdin.")],
    /,
    *,
    field: FieldOption = "text",
    json: JsonOption = False,
    limit: LimitOption = LISTED,
    workers: WorkersOption = None,
    config: ConfigOption = None,
) -> int:
    count = workers_for(workers)
    task = Task(old, new, config, field, limit_of(limit))
    # Mistakes in either are reported once, here, not by every worker.
    from turnout.models.embed import find_embedder

    embedder = find_embedder()
    before, after = (load_profile(name, config=config, embedder=embedder) for name in (old, new))
    found = nothing()
    with reading(source) as (rows, size):
        for part in watched(spread(compare_chunk, task, chunks(rows), count), size):
            found = found.plus(part, task.limit)
    if json:
        policies = policy_changes(before, after)
        heads = {"old": _head(before), "new": _head(after)}
        write_json(msgspec.json.encode({**heads, "policies": policies, **found.form()}))
    else:
        _print(before, after, found)
    return 1 if found.errors else 0


def limit_of(limit: int) -> int:
    if limit < 0:
        raise QueryError(f"--limit {limit}: at least 0 is needed")
    return limit


def compare_chunk(task: Task, chunk: Chunk) -> Compared:
    """Both decisions on every row of a chunk. Local layers only, as in a batch."""
    old, new = router_of(task.old, task.config), router_of(task.new, task.config)
    routes: Counter[Pair] = Counter()
    outcomes: Counter[Pair] = Counter()
    changes: list[Change] = []
    messages: list[str] = []
    errors = 0
    for number, line in enumerate(chunk.lines, chunk.first):
        try:
            row = read_row(line)
            query = Query(text_of(row, task.field))
            was, is_now = old.route_sync(query), new.route_sync(query)
            ident = msgspec.Raw(encode_id(row["id"])) if "id" in row else None
        except QueryError as error:
            errors += 1
            messages.append(f"row {number}: {error}")
            continue
        routes[" + ".join(was.routes), " + ".join(is_now.routes)] += 1
        outcomes[was.outcome, is_now.outcome] += 1
        if was.routes != is_now.routes and len(changes) < task.limit:
            changes.append(Change(number, query.text, Side.of(was), Side.of(is_now), ident))
    rows = len(chunk.lines)
    return Compared(rows, errors, routes, outcomes, changes, messages[:KEPT_ERRORS], chunk.size)


def policy_changes(old: Profile, new: Profile) -> dict[str, dict[str, tuple[Any, Any]]]:
    """For each route both have: the fields of its policy that differ, old and new. No decision shows these."""
    found = {}
    for route in old.routes:
        if route in new.policies:
            was, now = (msgspec.to_builtins(profile.policies[route]) for profile in (old, new))
            fields = {name: (was.get(name), now.get(name)) for name in dict.fromkeys((*was, *now))}
            differing = {name: pair for name, pair in fields.items() if pair[0] != pair[1]}
            if differing:
                found[route] = differing
    return found


def _head(profile: Profile) -> dict[str, str]:
    return {"profile": profile.name, "profile_hash": profile.hash}


def _print(old: Profile, new: Profile, found: Compared) -> None:
    from rich.text import Text

    screen = console()
    glyphs = glyphs_for(screen)
    heads = [Text.assemble((profile.name, "bold"), (f" {profile.hash}", "dim")) for profile in (old, new)]
    screen.print(Text(f" {glyphs.arrow} ").join(heads))
    report(screen, found, what="get another route")
    for route, fields in policy_changes(old, new).items():
        told = "; ".join(
            f"{name} {_say(was, glyphs)} {glyphs.arrow} {_say(now, glyphs)}" for name, (was, now) in fields.items()
        )
        screen.print(Text.assemble(("policy ", "dim"), (visible(route), "bold"), f"  {told}"))


def _say(value: object, glyphs: Glyphs) -> str:
    if value is None:
        return "nothing"
    return say(value, glyphs) if not isinstance(value, dict) else visible(str(value))
