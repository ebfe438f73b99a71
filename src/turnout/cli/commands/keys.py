"""`turnout keys`: make, list, change or revoke the keys of a server that others can reach."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from cyclopts import App, Parameter, validators

from turnout.apps.caller import PERIODS
from turnout.config.load import load_profile
from turnout.config.name import DEFAULT_PROFILE
from turnout.config.server import server_settings
from turnout.core.errors import NoLogYet, TurnoutError, suggest
from turnout.runtime.log import reading_log, writing_log
from turnout.store.keys import Key, Keys
from turnout.store.row import now_ms
from turnout.text.count import counted
from turnout.web.auth import SCOPES, read_credential
from turnout.web.key import make_key

from ..app import examples_of
from ..draw.screen import console, dollars, visible, write_json
from ..draw.shape import headed
from ..option import JsonOption, StoreOptions

app = App(name="keys", help_epilogue=examples_of("keys"))

DAY_MS = 86_400_000
DEFAULT_SCOPES: tuple[str, ...] = Key("", "", "").scopes


def _check_amount(_: object, amount: float | None) -> None:
    if amount is not None and (amount < 0 or not math.isfinite(amount)):
        raise ValueError("Must be >= 0 and finite: an amount of US dollars")


DollarOption = Annotated[float | None, Parameter(metavar="USD", validator=_check_amount)]
CountOption = Annotated[int | None, Parameter(metavar="N", validator=validators.Number(gte=1))]


@Parameter(name="*")
@dataclass(frozen=True)
class Rights:
    """The options that say what a key may do."""

    scope: Annotated[
        tuple[str, ...],
        Parameter(help="What it may do: ask, route, decisions:read, feedback:write, admin; by default all but admin."),
    ] = ()
    profile: Annotated[tuple[str, ...], Parameter(help="The profiles it may use; by default all.", metavar="NAME")] = ()
    ceiling: Annotated[str | None, Parameter(help="The most expensive tier it may have.", metavar="ROUTE")] = None
    budget_usd: Annotated[DollarOption, Parameter(help="What it may spend in total.")] = None
    budget_day_usd: Annotated[DollarOption, Parameter(help="What it may spend in a day (UTC).")] = None
    budget_month_usd: Annotated[DollarOption, Parameter(help="What it may spend in a calendar month (UTC).")] = None
    per_minute: Annotated[CountOption, Parameter(help="How many requests per minute it may send.")] = None
    days: Annotated[CountOption, Parameter(help="How long it is valid, from now.")] = None

    def given(self, now_ms: int) -> dict[str, Any]:
        """The options that were given, by name, with the values a key has."""
        values = {name: value for name, value in asdict(self).items() if value not in (None, ())}
        return values | ({"days": now_ms + self.days * DAY_MS} if self.days is not None else {})

    def check(self) -> None:

        for scope in self.scope:
            if scope not in SCOPES:
                raise TurnoutError(f"there is no scope {scope[:80]!r}{suggest(scope, SCOPES)}: {', '.join(SCOPES)}")


NONE_GIVEN = Rights()
KeyArgument = Annotated[
    str, Parameter(name="ID", help="The key's id, or its name if no other key has it (see turnout keys list).")
]


@app.command
def create(
    name: Annotated[str, Parameter(help="What the key is for: a person, a program.")],
    /,
    *,
    tenant: Annotated[
        str, Parameter(help="The tenant whose decisions it makes and sees; by default only its own.", metavar="NAME")
    ] = "",
    no_force: Annotated[bool, Parameter(help="It may not choose tiers or models itself.")] = False,
    rights: Rights = NONE_GIVEN,
    json: JsonOption = False,
    where: StoreOptions = StoreOptions(),
) -> None:
    """Make a key. It is shown once: the store keeps only a digest of it.

    The first key changes things: from then on a server that uses this store requires one with every request.
    """
    _check_name(name)
    rights.check()
    _check_ceiling(rights.ceiling, rights.profile, where)
    now = now_ms()
    fields = _fields(rights.given(now)) | {"tenant": tenant, "may_force": not no_force, "created_ms": now}
    with writing_log(where, create=True) as store:
        is_first = not store.keys.any()
        key, credential = make_key(store.keys, name, **fields)
    if json:
        write_json({"id": key.id, "key": credential, "name": name, "tenant": key.tenant or key.id})
        return
    screen = console()
    screen.say(credential)
    screen.say(("Save it now: it is not shown again. Send it as Authorization: Bearer, or as x-api-key.", "dim"))
    if is_first:
        notice = "It is the first: within half a minute, servers that use this store require a key with every request."
        screen.say((notice, "dim"))


Removable = Literal["budget-usd", "budget-day-usd", "budget-month-usd", "per-minute", "ceiling", "profile", "days"]


def _fields(options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a key that the options set."""
    names = {"scope": "scopes", "profile": "profiles", "days": "expires_ms", "force": "may_force"}
    return {names.get(option, option): value for option, value in options.items()}


@app.command
def update(
    ident: KeyArgument,
    /,
    *,
    name: Annotated[str | None, Parameter(help="What the key is for.")] = None,
    force: Annotated[
        bool | None, Parameter(negative="--no-force", help="Whether it may choose tiers or models itself.")
    ] = None,
    rights: Rights = NONE_GIVEN,
    remove: Annotated[
        tuple[Removable, ...], Parameter(help="Take this limit away; several if given several times.")
    ] = (),
    json: JsonOption = False,
    where: StoreOptions = StoreOptions(),
) -> None:
    """Change what a key may do; its secret, its tenant and everything not named stay the same.

    Running servers notice within half a minute. A new limit counts what was spent before.
    """
    own = {"name": name, "force": force}
    changes = {option: value for option, value in own.items() if value is not None} | rights.given(now_ms())
    for limit in remove:
        if limit.replace("-", "_") in changes:
            raise TurnoutError(f"--{limit} and --remove {limit} contradict each other: give one of them")
    changes |= {limit.replace("-", "_"): None for limit in remove}
    if not changes:
        options = ", ".join(f"--{option.replace('_', '-')}" for option in (*own, *asdict(rights)))
        raise TurnoutError(f"nothing to change: name at least one of {options}, or --remove")
    _check_name(name)
    rights.check()
    with _open_key(ident, where) as (keys, key):
        changed = msgspec.structs.replace(key, **_fields(changes))
        if {"ceiling", "profile"} & changes.keys():
            _check_ceiling(changed.ceiling, changed.profiles or (), where)
        if not keys.update(changed):
            raise TurnoutError(f"the key {key.id} was revoked meanwhile: {_new(where)} makes another")
        spent = _spent(keys, changed.id)
    _print_keys([(changed, spent)], json=json)


@contextlib.contextmanager
def _open_key(ident: str, where: StoreOptions) -> Iterator[tuple[Keys, Key]]:
    """The keys of the store, and the one that is named."""
    try:
        with reading_log(where) as store:
            yield store.keys, _find_key(store.keys, ident, where)
    except NoLogYet:
        raise TurnoutError(f"no valid key {ident[:80]!r}: there are none; {_new(where)} makes one") from None


def _new(where: StoreOptions) -> str:
    return where.hint("keys", "create", "NAME")


def _find_key(keys: Keys, ident: str, where: StoreOptions) -> Key:
    """The key with this id, or with this name if no other has it, unless it is revoked. A whole credential stands for
    its id."""
    credential = read_credential(ident)
    ident = credential.key_id if credential is not None else ident
    all_keys = keys.all()
    known = {key.id: key for key in all_keys if key.revoked_ms is None}
    if ident in known:
        return known[ident]
    namesakes = [key for key in known.values() if key.name == ident]
    if len(namesakes) == 1:
        return namesakes[0]
    if namesakes:
        ids = ", ".join(key.id for key in namesakes)
        raise TurnoutError(f"{len(namesakes)} keys are called {ident[:80]!r}: name one by its id, {ids}")
    if any(key.id == ident for key in all_keys):
        raise TurnoutError(f"the key {ident} is revoked, and stays so: {_new(where)} makes another")
    near = suggest(ident, [*known, *(key.name for key in known.values())])
    raise TurnoutError(f"no valid key {ident[:80]!r}{near} (see {where.hint('keys', 'list')})")


def _check_name(name: str | None) -> None:
    if name is not None and not name.strip():
        raise TurnoutError("a key needs a name: say what it is for")


def _check_ceiling(ceiling: str | None, profiles: tuple[str, ...], where: StoreOptions) -> None:
    """Raise if a profile the key will be used with does not exist or has no such tier: every request would fail."""
    default = server_settings(where.config).profile or DEFAULT_PROFILE
    for name in profiles or ((default,) if ceiling is not None else ()):
        profile = load_profile(name, config=where.config)
        tiers = profile.routes if profile.ordered else ()
        if ceiling is not None and ceiling not in tiers:
            listed = f": {', '.join(tiers)}" if tiers else ", which has no order of tiers"
            raise TurnoutError(f"{ceiling[:80]!r} is not a tier of the profile {name}{suggest(ceiling, tiers)}{listed}")


class KeySpending(NamedTuple):
    """What a key has spent in total, in this month and on this day, both in UTC."""

    total: float
    month: float
    day: float


def _spent(keys: Keys, key_id: str) -> KeySpending:
    now = time.time()
    return KeySpending(*(keys.spent(key_id, round(period.start(now) * 1000)) for period in PERIODS))


@app.default
@app.command(name="list")
def list_keys(*, json: JsonOption = False, where: StoreOptions = StoreOptions()) -> None:
    """List the keys, what each may do and what it has spent."""
    rows: list[tuple[Key, KeySpending]] = []
    with contextlib.suppress(NoLogYet), reading_log(where) as store:
        rows = [(key, _spent(store.keys, key.id)) for key in store.keys.all()]
    if not rows and not json:
        console().say(f"No keys: on this machine none is needed. {_new(where)} makes one.")
        return
    _print_keys(rows, json=json)


def _print_keys(rows: Sequence[tuple[Key, KeySpending]], *, json: bool) -> None:
    if not json:
        _draw(rows)
        return
    forms = []
    for key, spent in rows:
        form = msgspec.to_builtins(key)
        del form["digest"]
        forms.append(form | dict(zip(("spent_usd", "spent_month_usd", "spent_day_usd"), spent, strict=True)))
    write_json(forms)


def _draw(rows: Sequence[tuple[Key, KeySpending]]) -> None:
    table = headed({"id": "", **dict.fromkeys(("name", "tenant", "may", "spent", "state"), "fold")})
    now = now_ms()
    for key, spent in rows:
        scopes = ["all but admin"] if key.scopes == DEFAULT_SCOPES else list(key.scopes)
        may = [*scopes, *(f"profile {name}" for name in key.profiles or ())]
        may += [f"up to {key.ceiling}"] if key.ceiling is not None else []
        may += [] if key.may_force else ["auto only"]
        may += [f"{key.per_minute} a minute"] if key.per_minute is not None else []
        tenant = "(its own)" if key.tenant == key.id else visible(key.tenant)
        lists = ("\n".join(map(visible, may)), "\n".join(_money(key, spent)))
        table.add_row(key.id, visible(key.name), tenant, *lists, _state(key, now))
    console().inset(table, "")


def _money(key: Key, spent: KeySpending) -> list[str]:
    lines = [dollars(spent.total) + ("" if key.budget_usd is None else f" of {dollars(key.budget_usd)}")]
    if key.budget_month_usd is not None:
        lines.append(f"{dollars(spent.month)} of {dollars(key.budget_month_usd)} this month")
    if key.budget_day_usd is not None:
        lines.append(f"{dollars(spent.day)} of {dollars(key.budget_day_usd)} today")
    return lines


def _state(key: Key, now_ms: int) -> str:
    if key.revoked_ms is not None:
        return "revoked"
    if key.expires_ms is None:
        return "valid"
    day = time.strftime("%Y-%m-%d", time.localtime(key.expires_ms / 1000))
    return f"until {day}" if key.is_valid(now_ms) else f"expired {day}"


@app.command
def revoke(ident: KeyArgument, /, *, where: StoreOptions = StoreOptions()) -> None:
    """Make a key invalid; running servers notice within half a minute.

    After the last one is revoked, servers still require a key, and refuse every request: turnout keys open changes
    that.
    """
    with _open_key(ident, where) as (keys, key):
        keys.revoke(key.id)
        valid = _valid(keys)
    screen = console()
    screen.say(f"{key.id} is revoked; running servers take it for half a minute more, or until they are reloaded.")
    if not valid:
        screen.say(
            "It was the last valid key: servers that use this store now refuse every request. "
            f"{_new(where)} makes another; {where.hint('keys', 'open')} lets this machine ask without one again."
        )


def _valid(keys: Keys) -> list[str]:
    now = now_ms()
    return [key.id for key in keys.all() if key.is_valid(now)]


@app.command(name="open")
def open_up(*, where: StoreOptions = StoreOptions()) -> None:
    """Delete the keys when none is valid any more, so that this machine needs none.

    A server on loopback then accepts any request from this machine; decisions made with the keys stay in the log.
    """
    deleted, valid = 0, list[str]()
    with contextlib.suppress(NoLogYet), reading_log(where) as store:
        deleted = store.keys.delete_all()
        valid = _valid(store.keys)
    if valid:
        have = "is still valid" if len(valid) == 1 else "are still valid"
        raise TurnoutError(
            f"{counted(len(valid), 'key')} {have} ({', '.join(valid[:5])}{', …' * (len(valid) > 5)}), so servers go on "
            f"asking for one: {where.hint('keys', 'revoke', valid[0])} first"
        )
    if not deleted:
        console().say("There are no keys: a server on this machine asks for none.")
    else:
        console().say(
            f"{counted(deleted, 'key')} deleted, none of them valid. Within half a minute a server on loopback takes "
            "any request from this machine, without a key; one that other machines can reach takes none "
            f"until {_new(where)}."
        )
