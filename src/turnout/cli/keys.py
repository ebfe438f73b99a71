"""`turnout keys`: who may ask a server that others can reach, for how much, and up to which tier."""

from __future__ import annotations

import time
from typing import Annotated

import msgspec
from cyclopts import App, Parameter

from .app import epilogue
from .option import ConfigOption, DbOption, JsonOption

app = App(name="keys", help_epilogue=epilogue("keys"))

DAY_MS = 86_400_000


@app.command
def create(
    name: Annotated[str, Parameter(help="What the key is for: a person, a program.")],
    /,
    *,
    tenant: Annotated[str, Parameter(help="Whose decisions it makes and sees.")] = "",
    scope: Annotated[tuple[str, ...], Parameter(help="What it may do; all but admin unless told.")] = (),
    profile: Annotated[tuple[str, ...], Parameter(help="The profiles it may use; all unless told.")] = (),
    ceiling: Annotated[str | None, Parameter(help="The dearest tier it may have.", metavar="ROUTE")] = None,
    no_force: Annotated[bool, Parameter(negative=(), help="It may not choose tiers or models itself.")] = False,
    budget_usd: Annotated[float | None, Parameter(help="What it may spend in all.", metavar="USD")] = None,
    per_minute: Annotated[int | None, Parameter(help="How often it may ask.", metavar="N")] = None,
    days: Annotated[int | None, Parameter(help="How long it is valid.", metavar="N")] = None,
    json: JsonOption = False,
    db: DbOption = None,
    config: ConfigOption = None,
) -> int:
    """Make a key. It is shown once: the store keeps only a digest of it."""
    from turnout.core.errors import StoreError, suggest
    from turnout.server.key import SCOPES, digest, new_credential, read_pepper, spell
    from turnout.store import open_store
    from turnout.store.keys import Key

    for one in scope:
        if one not in SCOPES:
            raise StoreError(f"there is no scope {one!r}{suggest(one, SCOPES)}: {', '.join(SCOPES)}")
    credential = new_credential()
    now = time.time_ns() // 1_000_000
    key = Key(
        id=credential.key_id,
        digest=digest(credential.secret, read_pepper()),
        name=name,
        tenant=tenant,
        scopes=scope or Key.__struct_defaults__[1],
        profiles=profile or None,
        ceiling=ceiling,
        may_force=not no_force,
        budget_usd=budget_usd,
        per_minute=per_minute,
        created_ms=now,
        expires_ms=None if days is None else now + days * DAY_MS,
    )
    with open_store(db, config=config) as store:
        store.keys.add(key)
    if json:
        from .screen import write_bytes

        write_bytes(msgspec.json.encode({"id": key.id, "key": spell(credential), "name": name, "tenant": tenant}))
        return 0
    from .screen import console

    screen = console()
    screen.print(spell(credential), soft_wrap=True, highlight=False)
    screen.print("Keep it now: it is not shown again. Send it as Authorization: Bearer, or as x-api-key.", style="dim")
    return 0


@app.command(name="list")
def list_keys(*, json: JsonOption = False, db: DbOption = None, config: ConfigOption = None) -> int:
    """List the keys, what each may do and what it has spent."""
    from turnout.store import open_store

    with open_store(db, config=config) as store:
        found = [(key, store.keys.spent(key.id)) for key in store.keys.all()]
    if json:
        from .screen import write_bytes

        rows = [msgspec.to_builtins(key) | {"spent_usd": spent} for key, spent in found]
        for row in rows:
            del row["digest"]
        write_bytes(msgspec.json.encode(rows))
        return 0
    from rich import box
    from rich.table import Table

    from .screen import console, width_of

    screen = console()
    if not found:
        screen.print("No keys: on this machine none is needed. turnout keys create NAME makes one.")
        return 0
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim", show_edge=False)
    for title in ("id", "name", "tenant", "scopes", "ceiling", "spent", "budget", "state"):
        table.add_column(title, overflow="fold")
    now = time.time_ns() // 1_000_000
    for key, spent in found:
        state = "valid" if key.is_valid(now) else "revoked" if key.revoked_ms is not None else "expired"
        may = " ".join(key.scopes)
        budget = "" if key.budget_usd is None else f"${key.budget_usd:.2f}"
        table.add_row(key.id, key.name, key.tenant, may, key.ceiling or "", f"${spent:.4f}", budget, state)
    screen.print(table, width=width_of(screen))
    return 0


@app.command
def revoke(
    ident: Annotated[str, Parameter(name="ID", help="The key's id, as turnout keys list shows it.")],
    /,
    *,
    db: DbOption = None,
    config: ConfigOption = None,
) -> int:
    """Make a key invalid; running servers notice within half a minute."""
    from turnout.core.errors import StoreError
    from turnout.store import open_store

    with open_store(db, config=config) as store:
        if not store.keys.revoke(ident):
            raise StoreError(f"no valid key {ident[:80]!r} (see turnout keys list)")
    from .screen import console

    console().print(f"{ident} is revoked.")
    return 0
