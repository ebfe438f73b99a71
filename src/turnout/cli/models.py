"""`turnout models`: which model fills which slot, whether it answers, and how to change it."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any

import msgspec
from cyclopts import App, Parameter

from .app import epilogue
from .option import ConfigOption, JsonOption

app = App(name="models", help_epilogue=epilogue("models"))


@app.command(name="list")
def list_models(*, json: JsonOption = False, config: ConfigOption = None) -> int:
    """List the slots: model, where it is, prices, what it can do, and whether its key is there."""
    from turnout.models.price import context_of, prices_of
    from turnout.models.slot import STAND_INS, load_slots

    slots = load_slots(config)
    if json:
        from .screen import write_bytes

        rows = [
            {
                "slot": name,
                "model": slot.id,
                "usable": slot.usable,
                "needs_key": slot.needs_key or None,
                "where": str(slot.origin) if slot.origin is not None else None,
                "wires": slot.wires,
                "context_tokens": context_of(slot),
                "prices": msgspec.to_builtins(prices_of(slot)),
            }
            for name, slot in slots.slots.items()
        ]
        write_bytes(msgspec.json.encode(rows))
        return 0
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from .screen import console, width_of

    screen = console()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim", show_edge=False)
    for title in ("slot", "model", "speaks", "$ in / out per M", "state"):
        table.add_column(title, overflow="fold")
    for name, slot in slots.slots.items():
        prices = prices_of(slot)
        cost = "unknown" if prices is None else f"{prices.input_usd:g} / {prices.output_usd:g}"
        state = Text("ready", "green") if slot.usable else Text(f"no key: {slot.needs_key} is empty", "yellow")
        table.add_row(Text(name, "bold"), slot.id, ", ".join(slot.wires), cost, state)
    screen.print(table, width=width_of(screen))
    for name in STAND_INS:
        found = slots.find(name)
        if name not in slots.slots and found is not None:
            screen.print(Text(f"{name}: {found.name} stands in", "dim"))
    if slots.demo:
        screen.print("No key is set, so the built-in demonstration model answers. Set ANTHROPIC_API_KEY, or name a")
        screen.print("model: turnout models set simple ollama/llama3.2")
    return 0


@app.command(name="test")
def try_models(
    slot: Annotated[str | None, Parameter(help="One slot; all unless told.")] = None,
    /,
    *,
    config: ConfigOption = None,
) -> int:
    """Ask each slot for one word, and say how long it took or what went wrong."""
    from turnout.core.errors import StoreError, suggest
    from turnout.models.slot import load_slots

    slots = load_slots(config)
    if slot is not None and slots.find(slot) is None:
        raise StoreError(f"there is no slot {slot!r}{suggest(slot, slots.slots)}: {', '.join(slots.slots)}")
    names = [slot] if slot is not None else list(slots.slots)
    return asyncio.run(_test(slots, names))


async def _test(slots: Any, names: list[str]) -> int:
    from turnout.core.errors import NetError
    from turnout.core.model import Prompt
    from turnout.models.ask import Models
    from turnout.net.client import Client
    from turnout.net.egress import Egress

    from .screen import console

    screen = console()
    client = Client(Egress(slots.origins))
    models = Models(slots, client)
    bad = 0
    try:
        for name in names:
            found = slots.find(name)
            if not found.usable:
                bad += 1
                screen.print(f"{name}: {found.id} has no key: {found.needs_key} is empty", style="yellow")
                continue
            if found.provider == "demo":
                screen.print(f"{name}: the demonstration model, which is here")
                continue
            started = time.monotonic()
            try:
                reply = await models.ask(name, Prompt("Answer with the one word: ready", "ready?", 16, 20_000))
            except NetError as error:
                bad += 1
                screen.print(f"{name}: {error}", style="red", soft_wrap=True)
            else:
                took = (time.monotonic() - started) * 1000
                screen.print(f"{name}: {found.id} answered {reply.text[:40]!r} in {took:.0f} ms", highlight=False)
    finally:
        await client.close()
    return 1 if bad else 0


@app.command(name="set")
def set_model(
    slot: Annotated[str, Parameter(help="A slot: simple, medium, complex, reasoning, classifier, main, …")],
    model: Annotated[str, Parameter(help="provider/model, as anthropic/claude-haiku-4-5 or ollama/llama3.2.")],
    /,
    *,
    base_url: Annotated[str | None, Parameter(help="Of an OpenAI-compatible server.", metavar="URL")] = None,
    config: ConfigOption = None,
) -> int:
    """Fill a slot, in your turnout.toml; a running server takes it over within a second."""
    from turnout.models.edit import set_slot

    file = set_slot(slot, model, base_url, config)
    from .screen import console

    console().print(f"{slot} is {model} from now on ({file})", highlight=False, soft_wrap=True)
    return 0
