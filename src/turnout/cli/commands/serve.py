"""`turnout serve`: the gateway and the decision service, on this machine by default."""

from __future__ import annotations

import asyncio
import errno
import sys
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter, validators

from turnout.core.errors import TurnoutError

from ..application import needing
from ..option import NameOption, StoreOptions, hint

if TYPE_CHECKING:
    from rich.text import Text

    from turnout.config.server import ServerSettings
    from turnout.models.slot import Slots
    from turnout.web.server import Server

PortOption = Annotated[int | None, Parameter(metavar="N", validator=validators.Number(gte=0, lte=65_535))]


def serve(
    *,
    host: Annotated[
        str | None, Parameter(help="Where clients connect; by default this machine only.", metavar="ADDRESS")
    ] = None,
    port: Annotated[PortOption, Parameter(help="The port clients connect to; by default 8401.")] = None,
    admin_port: Annotated[PortOption, Parameter(help="The port of health and metrics; by default 8402.")] = None,
    profile: Annotated[
        NameOption, Parameter(name=("--profile", "-p"), help="The profile that the model `auto` uses.")
    ] = None,
    where: StoreOptions = StoreOptions(),
) -> None:
    with needing("the server needs"):
        from turnout.config.server import server_settings
        from turnout.console.console import Console
        from turnout.runtime.runtime import Runtime
        from turnout.web.serve import serve as listen
        from turnout.web.server import Server, check_exposure
    from msgspec.structs import replace

    from turnout.store import open_store

    options = {"host": host, "port": port, "admin_port": admin_port, "profile": profile}
    given = {name: value for name, value in options.items() if value is not None}
    settings = replace(server_settings(where.config), **given)
    # Questions are logged readable on the user's own machine, but hashed if others can reach the server.
    with open_store(where.db, config=where.config, public=not settings.loopback) as store:
        check_exposure(settings, store)
        runtime = Runtime(store, profile=settings.profile, profiles=settings.profiles, config=where.config)
        server = Server(settings, runtime, pages=Console)
        _run(_try_ports(settings))
        # The greeting's imports are done now: the server answers no request while the greeting is printed.
        import rich.text  # noqa: F401

        from ..draw.screen import console

        console()
        _run(listen(server, lambda addresses: _welcome(server, addresses, where)))


def _run(work: Coroutine[Any, Any, None]) -> None:
    try:
        import uvloop
    except ImportError:
        asyncio.run(work)
    else:
        uvloop.run(work)


async def _try_ports(settings: ServerSettings) -> None:
    """Raise if a port cannot be used, before the server starts, so that the error is one sentence."""
    loop = asyncio.get_running_loop()
    places = (("port", settings.host, settings.port), ("admin_port", settings.admin_host, settings.admin_port))
    for name, host, port in places:
        try:
            server = await loop.create_server(asyncio.Protocol, host, port)
        except OSError as error:
            raise TurnoutError(_why_not(error, name, host, port)) from None
        server.close()
        await server.wait_closed()
    if settings.port and settings.port == settings.admin_port and settings.host == settings.admin_host:
        raise TurnoutError(f"port {settings.port} cannot serve clients and metrics both: choose another --admin-port")


def _why_not(error: OSError, name: str, host: str, port: int) -> str:
    option = f"--{name.replace('_', '-')}"
    if error.errno == errno.EADDRINUSE:
        return f"port {port} is taken on {host}, perhaps by another turnout serve: choose another with {option} N"
    if error.errno == errno.EACCES:
        return f"port {port} is not for ordinary users: choose one above 1023 with {option} N"
    place = "--host" if name == "port" else "admin_host in [server]"
    return f"{host} is not an address of this machine: correct {place} ({error.strerror or error})"


def _welcome(server: Server, addresses: list[str], where: StoreOptions) -> None:
    from rich.text import Text

    from ..draw.screen import console

    public, admin = addresses
    store = server.runtime.store
    keyed = store is not None and store.keys.any()
    rows = [
        ("profile", server.runtime.router.profile.name),
        ("models", _models(server.runtime.models.slots, where)),
        ("log", f"{store.backend.where}, questions: {store.journal.encoder.level}" if store is not None else "none"),
        ("keys", "one is needed with every request" if keyed else "none is needed on this machine"),
        ("console", f"{public if server.settings.is_private else admin}/ in a browser"),
        ("metrics", f"{admin}/metrics"),
    ]
    screen = console()
    lines = [
        Text.assemble(("Turnout", "bold"), " listens on ", (public, "bold cyan")),
        *(Text.assemble((f"  {title:<9}", "dim"), text) for title, text in rows),
        *_examples(server.settings, public, where, keyed=keyed),
    ]
    for line in lines:
        screen.say(line)
    # The server prints nothing more, so that nothing else would flush it into a pipe.
    sys.stdout.flush()


def _examples(settings: ServerSettings, public: str, where: StoreOptions, *, keyed: bool) -> list[Text]:
    from rich.text import Text

    # Clients cannot connect to the wildcard address; on this machine, loopback works.
    here = public.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
    key = "" if not keyed else " -H 'authorization: Bearer tno_…'"
    follow = where.hint("log", "--follow", *(("--all-tenants",) if keyed else ()))
    any_key = f"a key from {where.hint('keys')}" if keyed else "any key"
    body = '{"model": "auto", "messages": [{"role": "user", "content": "What is 2+2?"}]}'
    lines = [
        "",
        "Try:",
        f"  curl -s {here}/v1/chat/completions{key} -H 'content-type: application/json' -d '{body}'",
        f'  curl -s {here}/v1/route{key} -d \'{{"text": "Prove it step by step"}}\'',
        f"  {follow}      every decision as it is made, in another terminal",
        f"  OPENAI_BASE_URL={here}/v1   ANTHROPIC_BASE_URL={here}   any client, {any_key}, model `auto`",
    ]
    if here != public and not settings.hosts:
        lines += ["", "Only requests to this machine's own names are accepted: list others as hosts in [server]."]
    return [Text(line) for line in [*lines, "", "Ctrl+C stops it when what is running has ended; twice, at once."]]


def _models(slots: Slots, where: StoreOptions) -> str:
    if slots.demo:
        more = hint("models", *(("--config", where.config) if where.config else ()))
        return f"the built-in demonstration model: no provider's key is set (see {more})"
    return ", ".join(f"{name} {slot.id}" + ("" if slot.usable else " (no key)") for name, slot in slots.slots.items())
