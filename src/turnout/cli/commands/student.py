"""`turnout student`: watch trained students beside the one in use, promote them and roll them back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import App, Parameter
from rich.text import Text

from turnout.config.champion import SHIPPED, champion_digest, shipped_model
from turnout.config.load import read_chain
from turnout.config.name import DEFAULT_PROFILE, warn_of
from turnout.learn import registry
from turnout.learn.contest import find_trained
from turnout.runtime.load import open_embedder
from turnout.runtime.log import reading_log
from turnout.text.count import counted

from ..app import examples, examples_of, show_paragraphs
from ..draw.checks import CheckRow, draw_checks
from ..draw.screen import clock, console, quoted, visible, write_json
from ..draw.shape import columns
from ..labelled import AcceptOption, LayerOption, name_as_typed, needing_learn
from ..option import (
    ConfigOption,
    JsonOption,
    NumberOption,
    ProfileOption,
    SinceOption,
    TenantOptions,
    TimeOptions,
    check_least,
    hint,
    moment,
    user_name,
)
from ..stream import progressing

if TYPE_CHECKING:
    from turnout.learn.drift import Drift
    from turnout.learn.promote import Check, Promotion
    from turnout.learn.shadow import Difference, Shadow

# Questions and pairs of routes that `shadow` lists; --json has all pairs.
LISTED = 10
# Characters of a question that are quoted.
QUOTED = 100
# Changes that `rollback --history` lists; --json has all.
CHANGES = 20

app = App(name="student", help_epilogue=examples_of("student"))


@Parameter(name="*")
@dataclass(frozen=True)
class StudentOptions:
    """Which student, and how the report is printed."""

    profile: ProfileOption = DEFAULT_PROFILE
    layer: LayerOption = None
    json: JsonOption = False


WhyOption = Annotated[str, Parameter(name="--why", help="The reason, for the history.")]


# --- shadow


@app.command(
    sort_key=0,
    help_epilogue=examples(
        "turnout student shadow -p assist", "turnout student shadow -p assist --since 7d --model 3f2a91"
    ),
)
def shadow(
    *,
    which: StudentOptions = StudentOptions(),
    model: Annotated[
        str | None, Parameter(help="The challenger; by default the newest that is not in use.", metavar="DIGEST")
    ] = None,
    limit: Annotated[NumberOption, Parameter(help="At most this many questions, the newest.")] = 10_000,
    when: TimeOptions = TimeOptions(),
    where: TenantOptions = TenantOptions(),
) -> None:
    """Let a trained student decide logged questions beside the one in use.

    How often the two agree, which questions change from which route to which, and how many of each are right according
    to feedback. It is not put into use; the result is kept for turnout student promote.
    """
    check_least("--limit", limit)
    with needing_learn(which.profile):
        from turnout.config.learning import learn_settings
        from turnout.learn.contest import open_contest
        from turnout.learn.shadow import shadow_log

        embedder = open_embedder(where.config, local=True)
        contest = open_contest(which.profile, layer=which.layer, digest=model, embedder=embedder, config=where.config)
    span = when.span()
    with reading_log(where) as store, progressing("questions") as progress:
        found, differences = shadow_log(contest, store, tenant=where.tenant, span=span, most=limit, progress=progress)
    needed = learn_settings(where.config).shadow_decisions
    if which.json:
        shares = {"agreement": found.agreement, "old_accuracy": found.old.accuracy, "new_accuracy": found.new.accuracy}
        write_json({**msgspec.to_builtins(found), **shares, "needed": needed})
    else:
        _print_shadow(found, differences, needed, which.profile)


def _print_shadow(found: Shadow, differences: list[Difference], needed: int, profile: str) -> None:
    screen = console()
    arrow = f" {screen.glyphs.arrow} "
    _print_head(found, "beside")
    screen.say(f"{counted(found.decisions, 'decision')}, {found.agreement:.1%} alike, {found.flips:,} in another way")
    grid = columns("", "right", "right")
    grid.add_row("", Text("champion", "dim"), Text("challenger", "dim"))
    grid.add_row("decided here", *(f"{one.decided / max(found.decisions, 1):.1%}" for one in (found.old, found.new)))
    for name, old, new in (
        ("right, where people labelled", (found.old.right, found.old.labelled), (found.new.right, found.new.labelled)),
        ("as a model had said", (found.old.agreed, found.old.taught), (found.new.agreed, found.new.taught)),
    ):
        if old[1] or new[1]:
            grid.add_row(name, *(f"{hits / of:.1%} of {of:,}" if of else "none" for hits, of in (old, new)))
    screen.inset(grid)
    for moved in found.moved[:LISTED]:
        now = (visible(moved.now), "bold")
        screen.inset(Text.assemble(visible(moved.was), arrow, now, (f"  {moved.count:,}", "dim")))
    for one in differences[:LISTED]:
        text = (f"{quoted(one.text, screen.glyphs, QUOTED)} ", "dim")
        screen.inset(Text.assemble(text, visible(one.was), arrow, visible(one.now)), "    ")
    for count, reason in (
        (found.elsewhere, "were decided before they reached it"),
        (found.unread, "were logged without their text"),
        (found.refused, "are refused by this profile by now"),
    ):
        if count:
            screen.say((f"{counted(count, 'question')} {reason}", "dim"))
    if found.decisions < needed:
        screen.say((f"a promotion asks for {needed:,} decisions: {needed - found.decisions:,} more", "yellow"))
    else:
        screen.say(f"enough for {hint('student', 'promote', '-p', profile)} ({needed:,} decisions)")


def _print_head(found: Promotion | Shadow, relation: str) -> None:
    """Print the names of the two students."""
    champion = found.champion
    if champion == SHIPPED:
        champion = "the shipped one" if shipped_model(found.profile, found.layer) is not None else "no champion"
    name = f"{visible(found.profile)} {visible(found.layer)}"
    console().say((name, "bold"), f"  {found.challenger}", (f" {relation} {champion}", "dim"))


# --- promote


@app.command(
    sort_key=1,
    help_epilogue=examples(
        "turnout student promote -p assist",
        "turnout student promote 3f2a91 -p assist --check",
        'turnout student promote 3f2a91 -p assist --force --why "the champion answers nothing in Spanish"',
    ),
)
def promote(
    digest: Annotated[
        str | None,
        Parameter(
            name="DIGEST",
            help="The student, or the beginning of its digest; by default the newest that is not in use.",
        ),
    ] = None,
    /,
    *,
    which: StudentOptions = StudentOptions(),
    check: Annotated[bool, Parameter(help="Only say whether it would be promoted.")] = False,
    force: Annotated[bool, Parameter(help="Put it into use whatever the checks say.")] = False,
    why: WhyOption = "",
    accept: AcceptOption = (),
    config: ConfigOption = None,
) -> int:
    """Put a trained student into use, if it passes every check.

    Accuracy and the difference to the champion as lower bounds, the recall of each label, golden cases, contract, flip
    rate, shadow decisions, suspicious rows and words. The exit code is 1 if it is not in use afterwards.
    """
    found = let_serve(which.profile, digest, which.layer, config, accept=accept, check=check, force=force, why=why)
    if which.json:
        write_json(promotion_form(found))
    else:
        print_promotion(found, which.profile, asked=not check)
    return 0 if found.promoted or (check and found.passed) else 1


def let_serve(
    profile: str,
    digest: str | None,
    layer: str | None,
    config: str | None,
    *,
    accept: tuple[str, ...] = (),
    check: bool = False,
    force: bool = False,
    why: str = "",
) -> Promotion:
    """Promote a model if it passes every check against the champion; there is no other way to let one serve."""
    with needing_learn(profile), progressing("checks") as progress:
        from turnout.learn.promote import promote as contest

        return contest(
            profile,
            layer=layer,
            digest=digest,
            accept=accept,
            embedder=open_embedder(config, local=True),
            config=config,
            check=check,
            force=force,
            who=user_name(),
            why=why,
            progress=progress,
        )


def promotion_form(found: Promotion) -> dict[str, object]:
    return {**msgspec.to_builtins(found), "passed": found.passed}


def print_promotion(found: Promotion, profile: str, *, asked: bool) -> None:
    """Print the report. `profile` is its name as typed; `asked` is whether a promotion was wanted, not only a check."""
    screen = console()
    _print_head(found, "against")
    rows = [CheckRow(one.check, one.value, one.limit, one.passed, _why(one, profile)) for one in found.checks]
    screen.inset(draw_checks(rows, screen.glyphs))
    failed = len(found.failed)
    if found.promoted:
        forced = f", with {counted(failed, 'failed check')}" if found.forced else ""
        back = f"{hint('student', 'rollback', '-p', profile)} goes back"
        screen.say((f"{found.challenger} serves now{forced} ({back})", "bold green"))
    elif found.passed:
        command = hint("student", "promote", found.challenger, "-p", profile)
        screen.say((f"it may serve: {command}", "bold green"))
    else:
        verdict = "not promoted" if asked else "it may not serve"
        screen.say((f"{verdict}: {failed} of {len(found.checks)} checks failed", "bold red"))


def _why(check: Check, profile: str) -> str:
    """What a check means and, if it failed, the setting of its limit."""
    return check.why if check.passed else f"{name_as_typed(check.why, profile)} ({check.setting})"


# --- rollback


@app.command(
    sort_key=2,
    help_epilogue=examples("turnout student rollback -p assist", "turnout student rollback -p assist --history"),
)
def rollback(
    *,
    which: StudentOptions = StudentOptions(),
    history: Annotated[bool, Parameter(help="Only list which student was in use when, and why.")] = False,
    why: WhyOption = "",
    config: ConfigOption = None,
) -> int:
    """Go back to the previous student.

    One step back each time, down to the one that came with Turnout. --history lists which student was in use when, and
    why.
    """
    # The profile is only read, not built: a broken champion may prevent that.
    chain = read_chain(which.profile)
    warn_of(chain.notices, stacklevel=1)
    tree = chain.document.tree
    name = str(tree.get("name", ""))
    layer, _ = find_trained(name, [entry for entry in tree.get("layers", ()) if isinstance(entry, dict)], which.layer)
    change = None if history else registry.rollback(name, layer, who=user_name(), why=why)
    changes = registry.read_history(name, layer)
    serving = champion_digest(name, layer)
    if which.json:
        write_json({"profile": name, "layer": layer, "champion": serving, "changes": changes})
        return 0

    def model(digest: str) -> str:
        shipped = "the shipped model" if shipped_model(name, layer) is not None else "no model"
        return f"model {digest}" if digest != SHIPPED else shipped

    screen = console()
    head = f"{visible(name)} {visible(layer)}:"
    if change is not None:
        screen.say(f"{head} {model(change.to)} serves again, instead of {model(change.was)}")
        if change.to == SHIPPED and shipped_model(name, layer) is None:
            again = hint("student", "promote", change.was, "-p", which.profile, "--force")
            text = f"The layer has no student now and passes every question on. {again} puts the last one back."
            screen.say((text, "yellow"))
    elif not changes:
        screen.say(f"{head} {model(serving)} serves, and no other ever did")
    else:
        grid = columns("dim", "", "", "wrap")
        for one in changes[-CHANGES:]:
            moved = Text.assemble(one.was[:8], f" {screen.glyphs.arrow} ", (one.to[:8], "bold"))
            grid.add_row(one.at, one.kind, moved, visible(f"{one.who}  {one.why}".strip()))
        screen.print(grid)
        screen.say(f"{model(serving)} serves")
    return 0


# --- drift


@app.command(
    sort_key=3,
    help_epilogue=examples(
        "turnout student drift -p assist", "turnout student drift -p assist --since 7d --against 37d"
    ),
)
def drift(
    *,
    which: StudentOptions = StudentOptions(),
    since: SinceOption = None,
    against: Annotated[
        str | None,
        Parameter(
            help="Compare with what was logged from then until --since; by default, with everything before it.",
            metavar="WHEN",
        ),
    ] = None,
    where: TenantOptions = TenantOptions(),
) -> int:
    """Check whether the traffic has changed since the student was trained.

    Routes, layers, confidence, unknown questions, unseen words and corrections, before and now. A change counts if it
    is significant and large enough. The exit code is 1 if there is one.
    """
    with needing_learn(which.profile):
        from turnout.learn.contest import open_serving
        from turnout.learn.drift import measure_drift

        embedder = open_embedder(where.config, local=True)
        serving = open_serving(which.profile, layer=which.layer, embedder=embedder, config=where.config)
    with reading_log(where) as store:
        found, since_ms = measure_drift(
            serving,
            store,
            tenant=where.tenant,
            since_ms=moment(since, "--since") if since is not None else None,
            against_ms=moment(against, "--against") if against is not None else 0,
        )
    if which.json:
        write_json({**msgspec.to_builtins(found), "drifted": found.drifted, "since_ms": since_ms})
    else:
        _print_drift(serving.router.profile.name, found, since_ms, which.profile)
    return 1 if found.drifted else 0


def _print_drift(name: str, found: Drift, since_ms: int, profile: str) -> None:
    from turnout.learn.drift import LEAST

    screen = console()
    recent = f"  {counted(found.recent, 'decision')} since {clock(since_ms)}"
    screen.say((visible(name), "bold"), recent, (f", {found.before:,} before", "dim"))
    if not found.enough:
        screen.say(f"too few to tell: {LEAST} on either side are needed (--since, --against, --tenant choose others)")
        return
    rows = []
    for one in found.measures:
        known = one.p is not None and one.effect is not None
        value = f"{one.statistic} {one.effect:.3f}" if known else "unknown"
        limit = f"drift from {one.limit:.2f}; p = {one.p:.2g}" if known else ""
        rows.append(CheckRow(one.name, value, limit, (not one.drifted) if known else None, one.said))
    screen.inset(draw_checks(rows, screen.glyphs))
    if found.drifted:
        train = hint("train", "-p", profile, "--from-log")
        screen.say((f"drift in {', '.join(found.drifted)}: {train}", "bold red"))
    else:
        screen.say(("no drift", "bold green"))


show_paragraphs(app)
