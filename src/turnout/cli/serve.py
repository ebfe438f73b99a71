"""`turnout serve`: the gateway and the decision service, on this machine unless told otherwise."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from cyclopts import Parameter

from .option import ConfigOption, DbOption

HostOption = Annotated[
    str | None, Parameter(name="--host", help="Where clients connect; this machine only unless told.")
]
PortOption = Annotated[int | None, Parameter(name="--port", help="The port clients connect to; 8401 unless told.")]
AdminOption = Annotated[int | None, Parameter(name="--admin-port", help="The port of health and metrics; 8402.")]
AutoOption = Annotated[
    str | None, Parameter(name=("--profile", "-p"), help="The profile that `auto` uses.", metavar="NAME")
]


def serve(
    *,
    host: HostOption = None,
    port: PortOption = None,
    admin_port: AdminOption = None,
    profile: AutoOption = None,
    db: DbOption = None,
    config: ConfigOption = None,
) -> int:
    try:
        from turnout.server.house import House
        from turnout.server.serve import check_exposure
        from turnout.server.serve import serve as listen
        from turnout.server.settings import server_settings
    except ImportError as error:
        from .screen import complain

        complain(f"the server needs {error.name}: pip install 'turnout[serve]'")
        return 2
    from msgspec.structs import replace

    from turnout.store import open_store

    given = {"host": host, "port": port, "admin_port": admin_port, "profile": profile}
    settings = replace(server_settings(config), **{name: value for name, value in given.items() if value is not None})
    # What people ask stays readable on their own machine; where others can reach the server, it is hashed.
    store = open_store(db, config=config, public=not settings.loopback)
    check_exposure(settings, store)
    house = House(settings, store, config=config)
    _run(listen(house, lambda addresses: _welcome(house, addresses)))
    return 0


def _run(work: Any) -> None:
    try:
        import uvloop
    except ImportError:
        asyncio.run(work)
    else:
        uvloop.run(work)


def _welcome(house: Any, addresses: list[str]) -> None:
    from rich.text import Text

    from .screen import console

    public, admin = addresses
    slots = house.models.slots
    screen = console()
    say = screen.print
    say(Text.assemble(("Turnout", "bold"), " listens on ", (public, "bold cyan"), f"   health and metrics: {admin}"))
    profile = house.gateway.router().profile
    who = "the built-in demonstration model: no key is set" if slots.demo else _models(slots)
    say(Text.assemble(("profile ", "dim"), profile.name, ("   models ", "dim"), who))
    if house.store is not None:
        say(Text.assemble(("log     ", "dim"), house.store.backend.where))
    say("")
    say(Text("Try:", "dim"))
    body = '{"model": "auto", "messages": [{"role": "user", "content": "What is 2+2?"}]}'
    say(Text(f"  curl -s {public}/v1/chat/completions -H 'content-type: application/json' -d '{body}'"), soft_wrap=True)
    say(Text("  turnout log            every decision, as it is made"))
    say(Text(f"  OPENAI_BASE_URL={public}/v1   ANTHROPIC_BASE_URL={public}   and any key"))


def _models(slots: Any) -> str:
    return ", ".join(f"{name} {slot.id}" + ("" if slot.usable else " (no key)") for name, slot in slots.slots.items())
