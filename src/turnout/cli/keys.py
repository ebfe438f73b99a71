"""`turnout keys`: who may ask a server that others can reach, for how much, and up to which tier."""

from __future__ import annotations

import time
from typing import Annotated

import msgspec
from cyclopts import App, Parameter, validators

from turnout.core.errors import NoLogYet, TurnoutError, suggest
from turnout.store.keys import Key

from .app import epilogue
from .option import ConfigOption, DbOption, JsonOption

app = App(name="keys", help_epilogue=epilogue("keys"))

DAY_MS = 86_400_000
USUAL: tuple[str, ...] = Key("", "", "").scopes
SOME = validators.Number(gte=1)


@app.command
def create(
    name: Annotated[str, Parameter(help="What the key is for: a person, a program.")],
    /,
    *,
    tenant: Annotated[
        str, Parameter(help="Whose decisions it makes and sees.", show_default=False, metavar="NAME")
    ] = "",
    scope: Annotated[
        tuple[str, ...],
        Parameter(
            help="What it may do: ask, route, decisions:read, feedback:write, admin; all but admin unless told.",
            show_default=False,
            negative=(),
        ),
    ] = (),
    profile: Annotated[
        tuple[str, ...],
        Parameter(help="The profiles it may use; all unless told.", show_default=False, negative=(), metavar="NAME"),
    ] = (),
    ceiling: Annotated[str | None, Parameter(help="The dearest tier it may have.", metavar="ROUTE")] = None,
    no_force: Annotated[
        bool, Parameter(negative=(), show_default=False, help="It may not choose tiers or models itself.")
    ] = False,
    budget_usd: Annotated[
        float | None,
        Parameter(help="What it may spend in all.", metavar="USD", validator=validators.Number(gte=0)),
    ] = None,
    per_minute: Annotated[
        int | None, Parameter(help="How often it may ask in a minute.", metavar="N", validator=SOME)
    ] = None,
    days: Annotated[int | None, Parameter(help="How long it is valid.", metavar="N", validator=SOME)] = None,
    json: JsonOption = False,
    db: DbOption = None,
    config: ConfigOption = None,
) -> int:
    """Make a key. It is shown once: the store keeps only a digest of it.

    The first key changes things: from then on a server that uses this store asks everybody for one.
    """
    from turnout.server.key import SCOPES, digest, new_credential, read_pepper, spell

    from .stored import reading_log

    if not name.strip():
        raise TurnoutError("a key needs a name: say what it is for")
    for one in scope:
        if one not in SCOPES:
            raise TurnoutError(f"there is no scope {one[:80]!r}{suggest(one, SCOPES)}: {', '.join(SCOPES)}")
    _check_ceiling(ceiling, profile, config)
    credential = new_credential()
    now = time.time_ns() // 1_000_000
    key = Key(
        id=credential.key_id,
        digest=digest(credential.secret, read_pepper()),
        name=name,
        tenant=tenant,
        scopes=scope or USUAL,
        profiles=profile or None,
        ceiling=ceiling,
        may_force=not no_force,
        budget_usd=budget_usd,
        per_minute=per_minute,
        created_ms=now,
        expires_ms=None if days is None else now + days * DAY_MS,
    )
    with reading_log(db, config, create=True) as store:
        first = not store.keys.any()
        store.keys.add(key)
    if json:
        from .screen import write_json

        write_json(msgspec.json.encode({"id": key.id, "key": spell(credential), "name": name, "tenant": tenant}))
        return 0
    from .screen import console

    screen = console()
    screen.print(spell(credential), soft_wrap=True)
    screen.print("Keep it now: it is not shown again. Send it as Authorization: Bearer, or as x-api-key.", style="dim")
    if first:
        said = "It is the first: within half a minute a server that uses this store wants a key from everybody."
        screen.print(said, style="dim")
    return 0


def _check_ceiling(ceiling: str | None, profiles: tuple[str, ...], config: str | None) -> None:
    """A ceiling must be a tier of what the key will be used with, or every request is refused."""
    from turnout.config.load import load_profile
    from turnout.server.settings import server_settings

    for name in profiles or ((server_settings(config).profile or "tiers",) if ceiling is not None else ()):
        found = load_profile(name, config=config)
        if ceiling is not None and (ceiling not in found.routes or not found.ordered):
            known = found.routes if found.ordered else ()
            tiers = f": {', '.join(known)}" if known else ", which has no order of tiers"
            raise TurnoutError(f"{ceiling[:80]!r} is no tier of the profile {name}{suggest(ceiling, known)}{tiers}")


@app.default
@app.command(name="list")
def list_keys(*, json: JsonOption = False, db: DbOption = None, config: ConfigOption = None) -> int:
    """List the keys, what each may do and what it has spent."""
    found = _all(db, config)
    if json:
        from .screen import write_json

        rows = [msgspec.to_builtins(key) | {"spent_usd": spent} for key, spent in found]
        for row in rows:
            del row["digest"]
        write_json(msgspec.json.encode(rows))
        return 0
    if not found:
        from .screen import console

        console().print("No keys: on this machine none is needed. turnout keys create NAME makes one.")
        return 0
    _draw(found)
    return 0


def _all(db: str | None, config: str | None) -> list[tuple[Key, float]]:
    from .stored import reading_log

    try:
        with reading_log(db, config) as store:
            return [(key, store.keys.spent(key.id)) for key in store.keys.all()]
    except NoLogYet:
        return []


def _draw(found: list[tuple[Key, float]]) -> None:
    from rich import box
    from rich.table import Table

    from .screen import console, visible, width_of
    from .shape import Rail
    from .stored import dollars

    screen = console()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim", show_edge=False)
    table.add_column("id", no_wrap=True)
    for title in ("name", "tenant", "may", "spent", "state"):
        table.add_column(title, overflow="fold")
    now = time.time_ns() // 1_000_000
    for key, spent in found:
        scopes = ["all but admin"] if key.scopes == USUAL else list(key.scopes)
        may = [*scopes, *(f"profile {name}" for name in key.profiles or ())]
        may += [f"up to {key.ceiling}"] if key.ceiling is not None else []
        may += [] if key.may_force else ["auto only"]
        may += [f"{key.per_minute} a minute"] if key.per_minute is not None else []
        budget = "" if key.budget_usd is None else f" of {dollars(key.budget_usd)}"
        row = (
            key.id,
            visible(key.name),
            visible(key.tenant),
            "\n".join(map(visible, may)),
            f"{dollars(spent)}{budget}",
        )
        table.add_row(*row, _state(key, now))
    screen.print(Rail(table, ""), width=width_of(screen))


def _state(key: Key, now_ms: int) -> str:
    if key.revoked_ms is not None:
        return "revoked"
    if key.expires_ms is None:
        return "valid"
    day = time.strftime("%Y-%m-%d", time.localtime(key.expires_ms / 1000))
    return f"until {day}" if key.is_valid(now_ms) else f"expired {day}"


@app.command
def revoke(
    ident: Annotated[str, Parameter(name="ID", help="The key's id, as turnout keys list shows it.")],
    /,
    *,
    db: DbOption = None,
    config: ConfigOption = None,
) -> int:
    """Make a key invalid; running servers notice within half a minute."""
    from turnout.server.key import read_credential

    from .stored import reading_log

    # Whoever has the key at hand rather than its id means the same.
    whole = read_credential(ident)
    named = whole.key_id if whole is not None else ident
    try:
        with reading_log(db, config) as store:
            known = [key.id for key in store.keys.all() if key.revoked_ms is None]
            revoked = store.keys.revoke(named)
    except NoLogYet:
        known, revoked = [], False
    if not revoked:
        raise TurnoutError(f"no valid key {named[:80]!r}{suggest(named, known)} (see turnout keys list)")
    from .screen import console

    console().print(f"{named} is revoked; running servers take it for half a minute more, or until they are reloaded.")
    return 0
