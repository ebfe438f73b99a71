"""`turnout sources`: list, try or add the sources that questions are answered from."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import App, Parameter

from turnout.apps.sources.ask import PROFILE
from turnout.apps.sources.source import Health, Source
from turnout.config.write import Value
from turnout.core.errors import TurnoutError, suggest

from ..app import examples_of
from ..application import needing
from ..draw.screen import console, visible, write_json
from ..option import ConfigOption, FileOption, JsonOption, NameOption, find_path, hint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from turnout.apps.sources.settings import Sources

app = App(name="sources", help_epilogue=examples_of("sources"))

NO_FOLDER = "folder: make it first, or name another"
NO_FILE = "file: download it first, or name another"
EXTRA = ("sources need", "serve,sources")
# The options `add` needs for each kind; kinds that are missing here need none.
NEEDS: dict[str, tuple[str, ...]] = {
    "kiwix": ("--url", "URL"),
    "forecast": ("--place", "TOWN"),
    "news": ("--url", "FEED"),
    "web": ("--url", "URL"),
    "ha": ("--url", "URL", "--token-env", "VAR"),
    "uptime": ("--url", "URL"),
    "files": ("--folder", "DIR"),
}


@app.default
@app.command(name="list")
async def list_sources(*, json: JsonOption = False, config: ConfigOption = None) -> None:
    """List the sources you have, and those you could add. None of them is asked."""
    opened = _open(config)
    health = {
        # A source without its token reports that itself, without being asked over the network.
        name: Health("configured") if name in opened.configured else await source.check()
        for name, source in opened.sources.items()
    }
    missing = {name: Health("not_configured", _how_to_add(name, config)) for name in _routes(config)}
    await opened.close()
    _show(opened.sources, missing | health, json=json)


@app.command(name="test")
async def try_sources(
    name: Annotated[str | None, Parameter(help="One source; by default all you have.")] = None,
    /,
    *,
    json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    """Ask each source you have whether it can answer, all at once, five seconds at most.

    The exit code is 1 if one of them cannot.
    """
    from turnout.apps.sources.health import check_all

    opened = _open(config)
    try:
        if name is not None and name not in opened.sources:
            raise TurnoutError(_unknown(name, opened, config))
        chosen = opened.sources if name is None else {name: opened.sources[name]}
        health = await check_all((), chosen)
    finally:
        await opened.close()
    if not chosen and not json:
        console().say(f"No source is configured. Those there could be: {_hint(config, 'sources', 'list')}")
        return 0
    _show(chosen, health, json=json)
    return 0 if all(one.status == "ok" for one in health.values()) else 1


def _unknown(name: str, opened: Sources, config: str | None) -> str:
    if name in (routes := _routes(config)):
        return f"{name} is not configured: {_how_to_add(name, config)}"
    known = (*opened.sources, *routes)
    return f"there is no source {name[:80]!r}{suggest(name, known)} (see {_hint(config, 'sources', 'list')})"


@app.command(name="add")
def add_source(
    name: Annotated[str, Parameter(help="Its name, and its kind unless --kind is given.")],
    /,
    *,
    kind: Annotated[str | None, Parameter(help="kiwix, news, web, forecast, ha, uptime, changes or files.")] = None,
    url: Annotated[str | None, Parameter(help="Where it is; for news, a feed, or FreshRSS with --user.")] = None,
    folder: Annotated[str | None, Parameter(help="The folder that is searched.", metavar="DIR")] = None,
    zim: Annotated[FileOption, Parameter(help="A ZIM file, for kiwix without a server.")] = None,
    token_env: Annotated[
        str | None, Parameter(help="The environment variable with its token, never the token itself.", metavar="VAR")
    ] = None,
    user: Annotated[NameOption, Parameter(help="The user of FreshRSS.")] = None,
    place: Annotated[str | None, Parameter(help="The town whose weather is meant.", metavar="TEXT")] = None,
    private: Annotated[bool, Parameter(help="Its host is in your own network.")] = False,
    config: ConfigOption = None,
) -> None:
    """Add a source to your turnout.toml; a running server picks it up within a second.

    The rest of the file stays as it is. Other settings of a kind are written there by hand.
    """
    with needing(*EXTRA):
        from turnout.apps.sources import edit
        from turnout.apps.sources.make import UnconfiguredSource

    is_feed = (kind or name) == "news" and user is None and token_env is None
    # A folder that is only written to need not exist.
    is_folder = bool if (kind or name) == "changes" else os.path.isdir
    settings: dict[str, Value | None] = {
        "kind": kind if kind != name else None,
        "url": url if not is_feed else None,
        "feeds": [url] if is_feed and url is not None else None,
        "user": user,
        "folder": find_path("--folder", folder, is_folder, NO_FOLDER) if folder is not None else None,
        "zim": [find_path("--zim", zim, os.path.isfile, NO_FILE)] if zim is not None else None,
        "token": {"env": token_env} if token_env is not None else None,
        "place": place,
        "private": private or None,
    }
    given = {"--url": url or zim, "--folder": folder, "--token-env": token_env, "--place": place}
    _check_needs(name, kind or name, given, config)
    added = edit.add_source(name, {key: value for key, value in settings.items() if value is not None}, config)
    screen = console()
    screen.say(f"added the source {name} ({visible(str(added.file))})")
    if isinstance(added.source, UnconfiguredSource):
        screen.say((f"Its token is missing: set ${token_env}.", "yellow"))
    screen.say(f"Next: {_hint(config, 'sources', 'test', name)}")


def _check_needs(name: str, kind: str, given: Mapping[str, str | None], config: str | None) -> None:
    """Raise with the complete command if an option that a kind needs is missing."""
    if kind == "http-json":
        raise TurnoutError(
            f"http-json has more to say than fits here: write [sources.{name}] into your turnout.toml (url, text and "
            "where they are: docs/reference/sources.md)"
        )
    needs = NEEDS.get(kind, ())
    if missing := [option for option in needs if option in given and given[option] is None]:
        words = ("sources", "add", name, *(("--kind", kind) if kind != name else ()), *needs)
        other = ", or --zim FILE without a server" if kind == "kiwix" else ""
        raise TurnoutError(f"{kind} needs {' and '.join(missing)}: {_hint(config, *words)}{other}")


def _open(config: str | None) -> Sources:
    with needing(*EXTRA):
        from turnout.apps.sources.settings import open_sources

    return open_sources(config)


def _routes(config: str | None) -> tuple[str, ...]:
    """The sources of the profile."""
    from turnout import load

    return tuple(load(PROFILE, config=config).profile.routes)


def _how_to_add(name: str, config: str | None) -> str:
    return _hint(config, "sources", "add", name, *NEEDS.get(name, ()))


def _hint(config: str | None, *words: str) -> str:
    return hint(*words, *(("--config", config) if config is not None else ()))


def _show(sources: Mapping[str, Source], health: Mapping[str, Health], *, json: bool) -> None:
    if json:
        rows = [
            {"source": name, **msgspec.to_builtins(one), "knows": sources[name].description if name in sources else ""}
            for name, one in health.items()
        ]
        write_json(rows)
        return
    from ..draw.sources import source_table

    screen = console()
    screen.inset(source_table(sources, health, screen.glyphs), "")
