"""Profiles: the profiles in use, and a check whether a changed one would load."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from turnout.apps.app import Answer, Call, Route
from turnout.config.champion import takes_model
from turnout.config.document import from_source
from turnout.config.load import shipped
from turnout.core.errors import ConfigError, Refused, TurnoutError
from turnout.core.profile import Profile
from turnout.runtime.load import load_profile

from .page import page, read_form

if TYPE_CHECKING:
    from .console import Console

# A profile has some kilobytes.
PROFILE_CHARACTERS = 200_000
PASTED = "pasted.toml"


def profile_routes(console: Console) -> Sequence[Route]:
    async def profiles(call: Call) -> Answer:
        """The profiles that are served."""
        found = await asyncio.to_thread(lambda: [_load(console, name) for name in console.known_profiles()])
        return console.show(call, "profiles.html", here="/profiles", profiles=found, default=console.runtime.profile)

    async def profile(call: Call) -> Answer:
        """A profile as it is used."""
        name = call.params["name"]
        call.check_profile(name)
        found = await asyncio.to_thread(_load, console, name)
        whole = msgspec.json.format(msgspec.json.encode(found.resolved), indent=2).decode()
        return console.show(call, "profile.html", here="/profiles", profile=found, whole=whole)

    async def check(call: Call) -> Answer:
        """Whether a profile loads: every mistake at once."""
        source = read_form(call).get("source", "")
        if len(source) > PROFILE_CHARACTERS:
            size = f"the profile has {len(source):,} characters, and {PROFILE_CHARACTERS:,} are read here"
            raise Refused(413, "request_too_large", size)
        profile, problems = await asyncio.to_thread(_try, source)
        return page("problems_part.html", problems=problems, profile=profile)

    return [
        Route("GET", "/profiles", "admin", profiles, is_page=True),
        Route("GET", "/profiles/{name}", "admin", profile, is_page=True),
        Route("POST", "/profiles/check", "admin", check, is_page=True),
    ]


def _load(console: Console, name: str) -> Profile:
    """The profile in use, or from its file if it was not used yet."""
    if (router := console.runtime.routers().get(name)) is not None:
        return router.profile
    return load_profile(name, config=console.runtime.config, local=True)


def _try(source: str) -> tuple[Profile | None, list[str]]:
    """A pasted profile, or what is wrong with it. It may only extend profiles that ship."""
    try:
        tree = from_source(source, PASTED).tree
        base = tree.get("extends")
        layers = tree.get("layers", ())
        for number, layer in enumerate(layers if isinstance(layers, list) else ()):
            if isinstance(layer, dict) and takes_model(layer) and "model" in layer:
                wrong = "a folder of the server's cannot be named here; leave it out, and the promoted model serves"
                return None, [f"{PASTED} layers[{number}].model: {wrong}"]
        if base is not None and base not in shipped():
            return None, [f"{PASTED} extends: here it may be one of {', '.join(shipped())}"]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / PASTED
            file.write_text(source, encoding="utf-8")
            return load_profile(str(file), config="", local=True), []
    except ConfigError as error:
        return None, [str(problem) for problem in error.problems]
    except TurnoutError as error:
        return None, [str(error)]
