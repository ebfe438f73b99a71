"""Routers from TOML in a string: for tests that are about a kind of layer and not about files."""

from functools import cache
from pathlib import Path

from msgspec.structs import replace

import turnout
from turnout import Router
from turnout.config.document import from_source
from turnout.config.resolve import build

LOCAL = str(Path(__file__).with_name("local.toml"))
"""`tiers` where no model is asked and nothing was learnt."""
ASKING = str(Path(__file__).with_name("asking.toml"))
"""`tiers` where nothing was learnt, so that a model is asked in doubt."""


def router_of(source: str) -> Router:
    return Router(build(from_source(source, "test.toml")))


def layer_router(layer: str, routes: str = '["a", "b", "c"]') -> Router:
    """One layer, given as its table; every route has an empty policy and the fallback is the first one."""
    names = [name.strip(' "') for name in routes.strip("[]").split(",")]
    policies = "\n".join(f"[policy.{name}]" for name in names)
    head = f'name = "test"\nroutes = {routes}\nordered = true\nfallback = {{ route = "{names[0]}" }}\n'
    # A kind nobody provides may choose any route, so no route of a small test is called unreachable.
    anything = '[[layers]]\nkind = "anything.v1"\noptional = true\n'
    return router_of(f"{head}[[layers]]\n{layer}\n{anything}\n{policies}\n")


@cache
def unlearnt(profile: str) -> Router:
    """A shipped profile without what was learnt: what its words and rules alone decide, whichever student ships. Words
    of `tiers` are evidence for its student and decide next to nothing: an heir in which they do stands for it."""
    if profile == "tiers":
        return Router(replace(turnout.load(ASKING, config="").profile, name="tiers"))
    return unlearn(turnout.load(profile, config=""))


def unlearn(router: Router) -> Router:
    """A router without what was learnt: in doubt it asks its model."""
    whole = router.profile
    layers = tuple(place for place in whole.layers if place.kind not in ("student.v1", "gain.v1"))
    return Router(replace(whole, layers=layers))
