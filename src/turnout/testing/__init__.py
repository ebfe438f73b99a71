"""For authors of layers and for tests: a conformance suite, doubles, routers built in code, and a scripted provider.

    >>> from turnout import Gate, Verdict
    >>> from turnout.testing import PassLayer, ScriptedLayer, check_layer, make_router, place
    >>> check_layer(PassLayer())
    >>> sure = ScriptedLayer([Verdict(("second",), 0.9)])
    >>> router = make_router([place(sure, "mine", gate=Gate(confidence=0.8))], routes=("first", "second"))
    >>> router.route_sync("anything").by
    'mine'

Turnout itself uses none of this, and nothing is patched: a double is a layer like any other, and a scripted provider is
a server like any other.
"""

from __future__ import annotations

from turnout.config.cases import read_cases as load_cases
from turnout.config.cases import run_cases

from .conformance import Finding, check_layer, layer_findings
from .doubles import PassLayer, ScriptedLayer, ScriptedNetworkLayer, Stall
from .fault import ScriptedFault as Fault
from .hostile import ORDINARY, hostile_queries
from .provider import ScriptedProvider
from .reply import Received, ToolCall
from .reply import ScriptedReply as Reply
from .router import ROUTES, make_profile, make_reading, make_router, place
from .transport import ScriptedTransport

__all__ = [
    "ORDINARY",
    "ROUTES",
    "Fault",
    "Finding",
    "PassLayer",
    "Received",
    "Reply",
    "ScriptedLayer",
    "ScriptedNetworkLayer",
    "ScriptedProvider",
    "ScriptedTransport",
    "Stall",
    "ToolCall",
    "check_layer",
    "hostile_queries",
    "layer_findings",
    "load_cases",
    "make_profile",
    "make_reading",
    "make_router",
    "place",
    "run_cases",
]
