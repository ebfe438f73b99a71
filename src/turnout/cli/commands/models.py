"""`turnout models`: list, try, set or unset the models that fill the slots."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import App, Parameter
from rich.text import Text

from turnout.config.document import read
from turnout.config.load import read_chain, shipped
from turnout.config.settings import settings_file
from turnout.core.errors import NetError, TurnoutError, suggest
from turnout.core.model import Prompt
from turnout.models.edit import set_slot, unset_slot
from turnout.models.price import context_of, prices_of
from turnout.models.slot import DEFAULT_TIERS, STAND_INS, Slot, Slots, load_slots

from ..app import examples_of
from ..application import needing
from ..draw.screen import console, visible, write_json
from ..draw.shape import headed
from ..option import ConfigOption, JsonOption, hint

if TYPE_CHECKING:
    from turnout.models.ask import Models

app = App(name="models", help_epilogue=examples_of("models"))

# A model that does not answer with one word by then is not ready for use.
PATIENCE_MS = 20_000


@app.default
@app.command(name="list")
def list_models(*, json: JsonOption = False, config: ConfigOption = None) -> None:
    """List the slots: model, formats, prices, and whether its key is there."""
    slots = load_slots(config)
    if json:
        write_json([_row(slot) for slot in slots.slots.values()])
        return
    _draw(slots, config)


def _row(slot: Slot) -> dict[str, object]:
    return {
        "slot": slot.name,
        "model": slot.id,
        "usable": slot.usable,
        "needs_key": slot.needs_key or None,
        "where": str(slot.origin) if slot.origin is not None else None,
        "wires": slot.wires,
        "context_tokens": context_of(slot),
        "prices": msgspec.to_builtins(prices_of(slot)),
    }


def _draw(slots: Slots, config: str | None) -> None:
    screen = console()
    # The column `where` is shown if two slots have the same model in two places.
    ambiguous = len({slot.id for slot in slots.slots.values()}) < len({slot.endpoint for slot in slots.slots.values()})
    titles = ("slot", "model", *(("where",) if ambiguous else ()), "speaks", "$/M in, out", "state")
    table = headed({title: "" if title in ("slot", "model") else "fold" for title in titles})
    for name, slot in slots.slots.items():
        prices = prices_of(slot)
        cost = "unknown" if prices is None else f"{prices.input_usd:g}, {prices.output_usd:g}"
        state = Text("ready", "green") if slot.usable else Text("no key", "yellow")
        speaks = ", ".join(wire.partition("-")[2] for wire in slot.wires)
        where = (visible(f"{slot.origin or 'here'}{slot.path}"),) if ambiguous else ()
        table.add_row(Text(visible(name), "bold"), visible(slot.id), *where, speaks, cost, state)
    screen.inset(table, "")
    missing = dict.fromkeys(slot.needs_key for slot in slots.slots.values() if not slot.usable)
    others = {name: slots.find(name) for name in STAND_INS if name not in slots.slots}
    stand_ins = [f"{name} ({found.name})" for name, found in others.items() if found is not None]
    setting = hint("models", "set", "simple", "ollama/llama3.2", *(("--config", config) if config else ()))
    demo = (
        "No provider's key is set, so a built-in demonstration model answers. Set one, such as ANTHROPIC_API_KEY, "
        f"or name a model: {setting}"
    )
    for applies, note, style in (
        (missing, f"Keys that are missing: {', '.join(missing)}", "yellow"),
        (stand_ins, f"Not set, others answer for: {', '.join(stand_ins)}", "dim"),
        (slots.demo, demo, ""),
    ):
        if applies:
            screen.print()
            screen.print(Text(note, style), width=screen.room)


@app.command(name="test")
async def try_models(
    slot: Annotated[str | None, Parameter(help="One slot; by default all.")] = None,
    /,
    *,
    config: ConfigOption = None,
) -> int:
    """Ask each slot for one word, and say how long it took or what went wrong.

    The exit code is 1 if one of them does not answer. A paid model charges for it, far less than a cent.
    """
    with needing("asking a model needs"):
        from turnout.models.ask import Models
        from turnout.net.client import Client

    slots = load_slots(config)
    if slot is not None and slots.find(slot) is None:
        raise TurnoutError(f"there is no slot {slot[:80]!r}{suggest(slot, slots.slots)}: {', '.join(slots.slots)}")
    models = Models(slots, Client(slots.egress))
    names = [slot] if slot is not None else list(slots.slots)
    screen = console()
    failed = 0
    width = max(10, *(len(visible(name)) for name in names)) + 2
    try:
        for name in names:
            answers, message = await _try_slot(models, name)
            failed += not answers
            screen.say((f"{visible(name):<{width}}", "bold"), (visible(message), "" if answers else "red"))
    finally:
        await models.client.close()
    return 1 if failed else 0


async def _try_slot(models: Models, name: str) -> tuple[bool, str]:
    """Whether a slot answers, and a sentence about it."""
    slot = models.slots.find(name)
    assert slot is not None  # noqa: S101 - looked up before
    if not slot.usable:
        return False, f"{slot.id} has no key: {slot.needs_key} is empty"
    if slot.provider == "demo":
        return True, "the demonstration model, which is always here"
    started = time.monotonic()
    try:
        reply = await models.ask(name, Prompt("Answer with the one word: ready", "ready?", 16, PATIENCE_MS))
    except NetError as error:
        return False, str(error.__cause__ or error)
    took = (time.monotonic() - started) * 1000
    return True, f"{slot.id} answered {reply.text[:40]!r} in {took:.0f} ms"


def _known_slots() -> tuple[str, ...]:
    """The slots that Turnout itself uses: the tiers, slots that others stand in for, and those of shipped profiles."""
    layers = [layer for name in shipped() for layer in read_chain(name).document.tree.get("layers", ())]
    return (*DEFAULT_TIERS, *STAND_INS, "embedder", *(str(layer["slot"]) for layer in layers if "slot" in layer))


@app.command(name="set")
def set_model(
    slot: Annotated[str, Parameter(help="A slot: simple, medium, complex, reasoning, classifier, main, …")],
    model: Annotated[str, Parameter(help="provider/model, such as anthropic/claude-haiku-4-5 or ollama/llama3.2.")],
    /,
    *,
    base_url: Annotated[
        str | None,
        Parameter(help="Where it is, for a provider Turnout does not know; it speaks OpenAI's format.", metavar="URL"),
    ] = None,
    custom: Annotated[bool, Parameter(help="The slot is one of your own, even if its name looks misspelt.")] = False,
    config: ConfigOption = None,
) -> None:
    """Fill a slot, in your turnout.toml; a running server picks it up within a second.

    The rest of the file stays as it is. The first slot you set also writes the default tiers.
    """
    before = settings_file(config)
    written = read(before).tree.get("models", {}) if before is not None and before.exists() else {}
    known = (*_known_slots(), *written)
    # A profile of the user's own may name any slot: only a name that is nearly a known one is refused.
    if slot not in known and not custom and (near := suggest(slot, known)):
        raise TurnoutError(
            f"no profile that ships with Turnout has a slot {slot[:80]!r}{near} (--custom sets it for a profile of "
            "your own)"
        )
    file = set_slot(slot, model, base_url, config)
    screen = console()
    screen.say(f"{slot} now uses {visible(model)} ({visible(str(file))})")
    slots = load_slots(file).slots
    added = [name for name in slots if name != slot and name not in written]
    if added:
        missing = sorted({slots[name].needs_key for name in added if not slots[name].usable})
        keys = f"; set {', '.join(missing)}, or set them to other models" if missing else ""
        screen.say((f"The default tiers are written beside it: {', '.join(added)}{keys}.", "yellow"))
    if not slots[slot].usable:
        screen.say((f"Its key is missing: set {slots[slot].needs_key}.", "yellow"))


@app.command(name="unset")
def unset_model(
    slot: Annotated[str, Parameter(help="A slot that your turnout.toml fills.")],
    /,
    *,
    config: ConfigOption = None,
) -> None:
    """Remove a slot from your turnout.toml; a running server picks it up within a second.

    The rest of the file stays as it is.
    """
    file = unset_slot(slot, config)
    screen = console()
    screen.say(f"{visible(slot)} is no longer set ({visible(str(file))})")
    found = load_slots(file).find(slot)
    if found is None:
        screen.say(("Nothing fills it now.", "yellow"))
    elif found.name == slot:
        screen.say(f"It is {visible(found.id)} by default.")
    else:
        screen.say(f"{visible(found.name)}, {visible(found.id)}, stands in for it.")
