"""What an application is: routes of its own, commands of its own, and one way to act on a decision.

An application is handed a runtime and hands in its rows; neither the server nor the command line knows any by name.
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
    # Not needed to plug in, and more than the command line has time for.
    from turnout.core.decision import Decision
    from turnout.core.query import Query
    from turnout.core.router import Router
    from turnout.models.refusal import Refusal
    from turnout.models.wire.format import Format
    from turnout.runtime.runtime import Runtime
    from turnout.store import Store

    from .caller import Caller

GROUP = "turnout.apps"
"""Where installed packages name their applications: each a class that makes one of a runtime."""

Headers = list[tuple[bytes, bytes]]


class Body(Protocol):
    """A response that is sent as it comes. However it ends, it must be closed."""

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
    """What goes back to the client."""

    status: int
    headers: Headers
    body: bytes | Body


def answer(value: object, status: int = 200) -> Answer:
    """A value as JSON; bytes are JSON already."""
    body = value if isinstance(value, bytes) else msgspec.json.encode(value)
    return Answer(status, [(b"content-type", b"application/json")], body)


def refusal(form: Format, refused: Refused, decision: str = "", error: Refusal | None = None) -> Answer:
    """A refusal in the client's format; `error` is what a provider said, if it is the provider's."""
    headers = [(b"content-type", b"application/json")]
    if decision:
        headers.append((b"x-turnout-decision", decision.encode()))
    if refused.retry_after_s is not None:
        headers.append((b"retry-after", str(max(1, math.ceil(refused.retry_after_s))).encode()))
    body = form.write_error(refused.status, refused.kind, str(refused), decision, error)
    return Answer(refused.status, headers, body)


class Call(NamedTuple):
    """A request that is allowed."""

    runtime: Runtime
    caller: Caller
    body: bytes
    headers: Mapping[str, str]
    params: Mapping[str, str]
    """What its path names."""
    options: Mapping[str, str] = MappingProxyType({})
    """What stands behind the `?`."""

    @property
    def store(self) -> Store:
        if self.runtime.store is None:
            raise Refused(503, "not_available", "this server keeps no log: start it with a store")
        return self.runtime.store

    def check_profile(self, profile: str | None = None) -> str:
        """The name of a profile that is served and that this caller may use; without one, the default."""
        name = self.runtime.name_of(profile) if profile else self.runtime.profile
        try:
            self.runtime.check_offered(name)
        except UnknownProfile as error:
            said = f"no profile {name[:SHOWN]!r} is served here{suggest(name, error.known)}: {', '.join(error.known)}"
            raise Refused(404, "not_found_error", said) from None
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
            said = f"the profile {name!r} cannot be used: the server's log says what is wrong with it"
            raise Refused(503, "not_available", said) from None


SOCKET = "WS"
"""The method, in the route table, of what is a WebSocket."""


class Route(NamedTuple):
    """A row of the route table. A WebSocket's handler returns an answer whose body is a stream: each piece of it is a
    text message."""

    method: str
    path: str
    scope: str
    """Empty: open to everybody."""
    handler: Callable[[Call], Awaitable[Answer]]
    """The first sentence of its docstring is what the OpenAPI document says of the route."""
    body: type | None = None
    """What it takes, where that is Turnout's own and not a provider's format."""
    asks: bool = False
    """Its handler may ask models: it is stopped when its client leaves."""
    is_batch: bool = False
    """It does the work of many requests: fewer of them are let in at once."""
    is_page: bool = False
    """For people with a browser: who they are is told by a cookie, and a refusal is a page."""


class AppCommand(NamedTuple):
    """A command that the command line offers."""

    name: str
    run: Callable[..., int]
    """Its parameters are the options, its docstring the help."""


class AppTool(NamedTuple):
    """Something that a model may have done: what the MCP server offers."""

    name: str
    description: str
    body: type
    """What it takes, a struct."""
    run: Callable[[Any, Caller], Awaitable[object]]
    """What it returns is told as JSON, or as it is if it is text. Raises Refused for what cannot be done."""


class App(Protocol):
    """What one makes of a runtime."""

    name: ClassVar[str]
    commands: ClassVar[Sequence[AppCommand]]
    """Of the class: the command line needs no runtime to offer them."""

    @property
    def routes(self) -> Sequence[Route]: ...


class ActingApp(App, Protocol):
    """An application that answers itself; the gateway passes on what clients send, and has nothing to act."""

    def act(self, decision: Decision, query: Query, caller: Caller) -> AsyncIterator[Event]:
        """Do what the decision's policy says, on an account of the ledger's, and tell what happens."""
        ...


class AnsweringApp(ActingApp, Protocol):
    """An application that answers in a chat: under the names of models that it adds to `Runtime.answering`."""

    models: ClassVar[Sequence[str]]

    def answer(self, query: Query, caller: Caller) -> AsyncGenerator[Event, None]:
        """Decide and act: the last event is a `Done`, or one with its text as `result`."""
        ...


class MakesApp(Protocol):
    """The class of an application."""

    name: str
    commands: Sequence[AppCommand]

    def __call__(self, runtime: Runtime) -> App: ...


def installed_apps() -> list[MakesApp]:
    """The applications that other packages bring."""
    found: list[Any] = [entry.load() for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)]
    return found


def find_apps() -> list[MakesApp]:
    """All there are, our own first."""
    from .assist.app import AssistApp
    from .claims.app import ClaimsApp
    from .decide.app import DecideApp
    from .gateway.app import GatewayApp
    from .sources.app import SourcesApp
    from .study.app import StudyApp

    return [GatewayApp, DecideApp, SourcesApp, ClaimsApp, StudyApp, AssistApp, *installed_apps()]
