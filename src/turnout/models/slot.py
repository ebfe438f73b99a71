"""Slots: the names a policy uses for models (`simple`, `main`, `classifier`), and the model that fills each.

A slot is configured in `turnout.toml`; its provider's row has the defaults. A slot without its key still exists and is
skipped with that reason, never silently.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import msgspec
import msgspec.inspect
from msgspec import Meta, Struct

from turnout.config.check import conform
from turnout.config.document import Document, read
from turnout.config.settings import settings_file
from turnout.core.errors import ConfigError, EgressRefused, Problem, suggest
from turnout.net.egress import Egress, Origin, Proxy, is_exposed, origin_of

from .provider import PROVIDERS, WIRES, Wire
from .proxy import read_proxy
from .secret import Secret, SecretPlace

Seconds = Annotated[float, Meta(gt=0.0)]
Price = Annotated[float, Meta(ge=0.0)]

# The tiers that the specification lists.
DEFAULT_TIERS = {
    "simple": "google/gemini-2.5-flash",
    "medium": "anthropic/claude-haiku-4-5",
    "complex": "anthropic/claude-sonnet-4-6",
    "reasoning": "anthropic/claude-opus-4-6",
}
# Variables that name an Ollama model for a slot that is not in the settings, as the specification lists them.
OLLAMA = {"main": "OLLAMA_MODEL_NAME", "conversational": "OLLAMA_MODEL_NAME_CONVERSATIONAL"}
AUDITORS = ("topic_finder", "source_checker", "adversarial_checker", "writing_agent", "publisher")
# The slot that stands in for one that is not configured.
STAND_INS = {
    **{"classifier": "simple", "router": "classifier", "conversational": "main", "main": "medium"},
    **{f"claims_{agent}": "main" for agent in AUDITORS},
}


class Prices(Struct, frozen=True, forbid_unknown_fields=True):
    """US dollars for a million tokens."""

    input_usd: Price
    output_usd: Price
    cached_input_usd: Price | None = None
    cache_write_usd: Price | None = None
    """Input stored in the provider's prompt cache; by default 1.25 times the input price, as with Anthropic."""
    cache_write_1h_usd: Price | None = None
    """Input stored there for an hour; by default twice the input price."""

    @property
    def cached_usd(self) -> float:
        return self.input_usd if self.cached_input_usd is None else self.cached_input_usd

    @property
    def write_usd(self) -> float:
        return 1.25 * self.input_usd if self.cache_write_usd is None else self.cache_write_usd

    @property
    def write_1h_usd(self) -> float:
        return 2.0 * self.input_usd if self.cache_write_1h_usd is None else self.cache_write_1h_usd


class SlotTerms(Struct, frozen=True, kw_only=True):
    """The settings of a slot that are used as they are written."""

    plain_http: bool = False
    """Its key may go to a public address over http, where others can read it."""
    context_tokens: Annotated[int, Meta(gt=0)] | None = None
    max_output_tokens: Annotated[int, Meta(gt=0)] | None = None
    """The longest answer the model can give: the limit set under a budget where a request has none."""
    hosted_tools_usd: Price | None = None
    """The most that tools run by the provider (web search, code) may cost in one request. Without it, requests that
    use them are refused under a budget: nothing else bounds their cost."""
    images: bool = True
    tools: bool = True
    structured: bool = False
    """It takes a JSON schema for its answer."""
    prices: Prices | None = None
    """By default what the price list knows; an unknown model has no price, not zero."""
    first_token_s: Seconds = 30.0
    """The wait for a stream's first token; an answer in one piece may take `total_s`."""
    idle_s: Seconds = 20.0
    total_s: Seconds = 600.0


class SlotFile(SlotTerms, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The table `[models.NAME]`."""

    model: str
    """`provider/model`."""
    base_url: str | None = None
    """An OpenAI-compatible server's; by default the provider's own."""
    key: SecretPlace | None = None
    wires: tuple[Wire, ...] | None = None
    """The wire formats the provider speaks."""
    private: bool = False
    """Its host may resolve to a private address."""


SLOT_TYPE = msgspec.inspect.type_info(SlotFile)


class Endpoint(NamedTuple):
    """A model at an address with an account. Slots with the same endpoint share a breaker; the same model behind
    another URL or key is another endpoint."""

    id: str
    origin: Origin | None
    path: str
    account: str
    """Where its key comes from, empty if it needs none: each account has its own limits."""


class Slot(SlotTerms, frozen=True):
    """A slot, ready for use."""

    name: str
    provider: str
    model: str
    """The provider's name for it."""
    id: str
    """`provider/model`, by which a client may ask for it."""
    origin: Origin | None
    """Its address; None for the demonstration model, which is built in."""
    path: str
    key: Secret | None
    needs_key: str
    """Where its missing key should be; empty if the slot can be used."""
    wires: tuple[Wire, ...]
    endpoint: Endpoint
    is_looked_up: bool = False
    """Whether `context_tokens` has the window from the price list."""

    @property
    def usable(self) -> bool:
        return not self.needs_key

    def hide(self, text: str) -> str:
        """A provider's text without the key that was sent to it."""
        return self.key.hide(text) if self.key is not None else text


class Slots(Struct, frozen=True):
    """Every slot by its name."""

    slots: Mapping[str, Slot]
    demo: bool = False
    """Nothing is configured: the demonstration model fills every slot."""
    proxy: Proxy | None = None
    """The proxy to addresses that are not private."""

    def find(self, name: str) -> Slot | None:
        """The slot with that name, or its stand-in."""
        seen = set()
        while name not in self.slots:
            if name in seen or name not in STAND_INS:
                return None
            seen.add(name)
            name = STAND_INS[name]
        return self.slots[name]

    def slot_for(self, name: str) -> Slot | None:
        """The slot that answers for a route; with nothing configured, the demonstration model."""
        found = self.find(name)
        return make_slot(name, SlotFile("demo/demo")) if found is None and self.demo else found

    def all_by_id(self, ident: str) -> list[Slot]:
        """The slots with the id `provider/model`, in the order of the settings."""
        if "/" not in ident:  # `auto` and the tiers, which most requests ask for
            return []
        wanted = ident.casefold()
        return [slot for slot in self.slots.values() if slot.id.casefold() == wanted]

    def by_id(self, ident: str) -> Slot | None:
        """The first slot with that id that has its key; else the first."""
        found = self.all_by_id(ident)
        return next((slot for slot in found if slot.usable), found[0] if found else None)

    @property
    def classifier(self) -> Slot | None:
        """The slot for classifying, if it can be used."""
        found = self.find("classifier")
        return found if found is not None and found.usable and found.provider != "demo" else None

    @property
    def origins(self) -> frozenset[Origin]:
        """The addresses of all models."""
        return frozenset(slot.origin for slot in self.slots.values() if slot.origin is not None)

    @property
    def egress(self) -> Egress:
        """The guard that allows connections to the models alone."""
        return Egress(self.origins, self.proxy)


def load_slots(config: str | os.PathLike[str] | None = None) -> Slots:
    """The slots of the user's settings. Without any: the default tiers if a key for one is there, else the demo."""
    file = settings_file(config)
    document = read(file) if file is not None else None
    proxy = read_proxy(document) if document is not None else None
    demo = False
    if document is not None and (table := document.tree.get("models")):
        slots = read_table(document, table)
    else:
        slots = {name: make_slot(name, SlotFile(model)) for name, model in DEFAULT_TIERS.items()}
        demo = not any(slot.usable for slot in slots.values())
        if demo:
            slots = {name: make_slot(name, SlotFile("demo/demo")) for name in DEFAULT_TIERS}
    # The environment names models only for slots that the settings do not.
    named = {name: os.environ.get(variable, "") for name, variable in OLLAMA.items() if name not in slots}
    slots |= {name: make_slot(name, SlotFile(f"ollama/{model}")) for name, model in named.items() if model}
    return Slots(slots, demo, proxy)


def read_table(document: Document, table: Any) -> dict[str, Slot]:
    if not isinstance(table, dict):
        raise ConfigError([document.problem(("models",), "must be a table of slots: [models.simple]")])
    problems: list[Problem] = []
    slots: dict[str, Slot] = {}
    for name, entry in table.items():
        if isinstance(entry, str):
            entry = {"model": entry}  # noqa: PLW2901 - the short form of the same table
        key = entry.get("key") if isinstance(entry, dict) else None
        # Anything else may be the key itself, and is not shown.
        if key is not None and not (isinstance(key, dict) and all(isinstance(value, str) for value in key.values())):
            why = 'a key does not belong in a file: key = { env = "NAME" } or { file = "PATH" }'
            problems.append(document.problem(("models", name, "key"), why))
            continue
        wrong = [document.problem(path, why) for path, why in conform(entry, SLOT_TYPE, ("models", name))]
        problems += wrong
        if wrong:
            continue
        try:
            slots[name] = make_slot(name, msgspec.convert(entry, SlotFile))
        except ConfigError as error:
            problems += [document.problem(("models", name), problem.message) for problem in error.problems]
    if problems:
        raise ConfigError(problems)
    return slots


def make_slot(name: str, file: SlotFile) -> Slot:
    where = f"models.{name}"
    provider, slash, model = file.model.partition("/")
    if not slash or not model:
        known = ", ".join(PROVIDERS)
        raise ConfigError([Problem(where, f"model {file.model!r} must be provider/model (providers: {known})")])
    row = PROVIDERS.get(provider)
    base = file.base_url or (row.base_url if row is not None else None)
    if base is None:
        near = suggest(provider, PROVIDERS)
        raise ConfigError([Problem(where, f"provider {provider!r} is not known{near}: set base_url (--base-url URL)")])
    origin, path = None, ""
    if base != "demo:":
        try:
            origin = origin_of(base, private=file.private)
        except EgressRefused as error:
            raise ConfigError([Problem(where, str(error))]) from None
        path = "/" + base.split("://", 1)[1].partition("/")[2].strip("/")
        path = "" if path == "/" else path
    place = file.key
    if place is None and row is not None and row.env is not None and file.base_url is None:
        place = SecretPlace(env=row.env)
    if place is not None and origin is not None and not file.plain_http and is_exposed(origin):
        why = (
            f"its key would go to {origin} unencrypted: use https, private = true for a host of your own network, or "
            "plain_http = true if that is meant"
        )
        raise ConfigError([Problem(where, why)])
    key = place.read(where) if place is not None else None
    return Slot(
        name=name,
        provider=provider,
        model=model,
        id=file.model,
        origin=origin,
        path=path,
        key=key,
        needs_key=place.place if place is not None and key is None else "",
        wires=file.wires or (row.wires if row is not None else WIRES[:1]),
        endpoint=Endpoint(file.model, origin, path, place.place if place is not None else ""),
        **{term: getattr(file, term) for term in SlotTerms.__struct_fields__},
    )
