"""What an application is: routes, commands, and one way to act on a decision.

An application is made of a runtime. The server knows none by name: `find_apps` lists our own and those of other
packages. The commands of our own are in `cli/commands`, those of others come from `commands`.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import msgspec

from turnout.core.errors import SHOWN, ConfigError, EmbedderError, Refused, UnknownProfile, suggest

from .event import Event

if TYPE_CHECKING:
    # Importing these would slow the command line down.
    from turnout.core.decision import Decision
    from turnout.core.query import Query
    from turnout.core.router import Router
    from turnout.models.refusal import Refusal
    from turnout.models.wire.format import Format
    from turnout.runtime.runtime import Runtime
    from turnout.store import Store

    from .caller import Caller

GROUP = "turnout.apps"
"""The entry points of applications in installed packages: each a class that is called with a runtime."""

Headers = list[tuple[bytes, bytes]]


class Body(Protocol):
    """A streamed response. However it ends, it must be closed."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def aclose(self) -> None: ...


class StreamBody:
    """A body made of pieces as they come. Closing it runs `close` even if no piece was ever sent: that ends the work
    behind the pieces and closes its account."""

    def __init__(self, pieces: AsyncGenerator[bytes, None], close: Callable[[], Awaitable[None]]) -> None:
        self._pieces = pieces
        self._close = close

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces

    async def aclose(self) -> None:
        try:
            await self._pieces.aclose()
        finally:
            await self._close()


class Answer(NamedTuple):
    """A response."""

    status: int
    headers: Headers
    body: bytes | Body


def answer(value: object, status: int = 200) -> Answer:
    """A value as JSON; bytes are taken for JSON."""
    body = value if isinstance(value, bytes) else msgspec.json.encode(value)
    return Answer(status, [(b"content-type", b"application/json")], body)


def refusal(form: Format, refused: Refused, decision: str = "", error: Refusal | None = None) -> Answer:
    """A refusal in the client's format; `error` is the provider's, if it refused."""
    headers = [(b"content-type", b"application/json")]
    if decision:
        headers.append((b"x-turnout-decision", decision.encode()))
    if refused.retry_after_s is not None:
        headers.append((b"retry-after", str(max(1, math.ceil(refused.retry_after_s))).encode()))
    body = form.write_error(refused.status, refused.kind, str(refused), decision, error)
    return Answer(refused.status, headers, body)


class Call(NamedTuple):
    """An admitted and authenticated request."""

    runtime: Runtime
    caller: Caller
    body: bytes
    headers: Mapping[str, str]
    params: Mapping[str, str]
    """The parameters in its path."""
    options: Mapping[str, str] = MappingProxyType({})
    """The parameters in its query string."""

    @property
    def store(self) -> Store:
        if self.runtime.store is None:
            raise Refused(503, "not_available", "this server keeps no log: start it with a store")
        return self.runtime.store

    def check_profile(self, profile: str | None = None) -> str:
        """The name of a served profile that this caller may use; without one, the default."""
        name = self.runtime.name_of(profile) if profile else self.runtime.profile
        try:
            self.runtime.check_offered(name)
        except UnknownProfile as error:
            others = f"{suggest(name, error.known)}: {', '.join(error.known)}"
            raise Refused(404, "not_found_error", f"no profile {name[:SHOWN]!r} is served here{others}") from None
        self.caller.check_profile(name)
        return name

    async def decide(self, query: Query, profile: str | None = None) -> Decision:
        """Decide under the caller's budget."""
        from .ledger import decide

        slots, store = self.runtime.models.slots, self.runtime.store
        return await decide(await self.router(profile), query, self.caller, slots, store)

    async def router(self, profile: str | None = None) -> Router:
        name = self.check_profile(profile)
        try:
            return await self.runtime.find_router(name)
        except UnknownProfile as error:
            raise Refused(404, "not_found_error", str(error)) from None
        except (ConfigError, EmbedderError):
            message = f"the profile {name!r} cannot be used: the server's log says what is wrong with it"
            raise Refused(503, "not_available", message) from None


SOCKET = "WS"
"""The method of a WebSocket in the route table."""


class Route(NamedTuple):
    """A row of the route table. The body of a WebSocket's answer is a stream of text messages."""

    method: str
    path: str
    scope: str
    """Empty: no key is needed."""
    handler: Callable[[Call], Awaitable[Answer]]
    """The first sentence of its docstring describes the route in the OpenAPI document."""
    body: type | None = None
    """The type of the body, if it is Turnout's own and not a provider's format."""
    asks: bool = False
    """Its handler may ask models, and is stopped when the client leaves."""
    is_batch: bool = False
    """It does the work of many requests, so that fewer are admitted at once."""
    is_page: bool = False
    """A page for a browser: authenticated by a cookie, and refused with a page."""


class AppCommand(NamedTuple):
    """A command of the command line."""

    name: str
    run: Callable[..., int]
    """Its parameters are the options, its docstring the help."""


class AppTool(NamedTuple):
    """A tool of the MCP server."""

    name: str
    description: str
    body: type
    """The struct of its arguments."""
    run: Callable[[Any, Caller], Awaitable[object]]
    """Returns a text, or a value to be sent as JSON. Raises Refused."""


class App(Protocol):
    name: ClassVar[str]
    commands: ClassVar[Sequence[AppCommand]]
    """Of the class, so that the command line needs no runtime to list them."""

    @property
    def routes(self) -> Sequence[Route]: ...


class ActingApp(App, Protocol):
    """An application that acts on decisions. The gateway does not: it passes requests on."""

    def act(self, decision: Decision, query: Query, caller: Caller) -> AsyncIterator[Event]:
        """Do what the decision's policy says, within an account of the ledger, and yield what happens."""


class AnsweringApp(ActingApp, Protocol):
    """An application that answers in a chat, under the model names that it adds to `Runtime.chat_apps`."""

    models: ClassVar[Sequence[str]]

    def answer(self, query: Query, caller: Caller) -> AsyncGenerator[Event, None]:
        """Decide and act. The last event is a `Done`, or has its text as `result`."""


class MakesApp(Protocol):
    """The class of an application."""

    name: str
    commands: Sequence[AppCommand]

    def __call__(self, runtime: Runtime) -> App: ...


def installed_apps() -> list[MakesApp]:
    """The applications of other packages."""
    apps: list[Any] = [entry.load() for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)]
    return apps


def find_apps() -> list[MakesApp]:
    """All applications, our own first."""
    from .assist.app import AssistApp
    from .claims.app import ClaimsApp
    from .decide.app import DecideApp
    from .gateway.app import GatewayApp
    from .sources.app import SourcesApp
    from .study.app import StudyApp

    return [GatewayApp, DecideApp, SourcesApp, ClaimsApp, StudyApp, AssistApp, *installed_apps()]
