"""`turnout student promote`: lets a trained student serve, if every check says it may."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from turnout.config.champion import SHIPPED, shipped_model
from turnout.core.errors import LearnError
from turnout.text.count import counted

from ..draw.screen import console, glyphs_for, visible, write_json
from ..option import DEFAULT_PROFILE, ConfigOption, JsonOption, ProfileOption, hint, user_name
from ..stream import progressing

if TYPE_CHECKING:
    from rich.console import Console

    from turnout.core.embed import Embeds
    from turnout.learn.examine import Check, Promotion
    from turnout.learn.shadow import Shadow

LayerOption = Annotated[
    str | None,
    Parameter(name="--layer", help="The student's layer; needed only where a profile has several.", metavar="ID"),
]
ModelArgument = Annotated[
    str | None,
    Parameter(
        name="DIGEST",
        help="The student, or the beginning of its digest; by default the newest that does not serve.",
        show_default=False,
    ),
]
AcceptOption = Annotated[
    tuple[str, ...],
    Parameter(name="--accept", help="A new word you know: it is no trigger. May be repeated.", metavar="WORD"),
]


def promote(
    digest: ModelArgument = None,
    /,
    *,
    profile: ProfileOption = DEFAULT_PROFILE,
    layer: LayerOption = None,
    check: Annotated[
        bool, Parameter(name="--check", negative=(), show_default=False, help="Only say whether it would be promoted.")
    ] = False,
    force: Annotated[
        bool,
        Parameter(name="--force", negative=(), show_default=False, help="Let it serve whatever the checks say."),
    ] = False,
    why: Annotated[str, Parameter(name="--why", help="A word for the history.", show_default=False)] = "",
    accept: AcceptOption = (),
    json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    found = hold(profile, digest, layer=layer, accept=accept, config=config, check=check, force=force, why=why)
    if json:
        write_json(msgspec.json.encode(form(found)))
    else:
        print_promotion(console(), found, profile, asked=not check)
    return 0 if found.promoted or (check and found.passed) else 1


def hold(
    profile: str,
    digest: str | None,
    *,
    layer: str | None = None,
    accept: tuple[str, ...] = (),
    config: str | None = None,
    check: bool = False,
    force: bool = False,
    why: str = "",
) -> Promotion:
    """The one way to let a model serve: held against the champion by every check that applies to it."""
    with needing_learn():
        from turnout.learn.promote import promote as let_serve
    with progressing("checks") as progress:
        return let_serve(
            profile,
            layer=layer,
            digest=digest,
            accept=accept,
            embedder=embedder_here(),
            config=config,
            check=check,
            force=force,
            who=user_name(),
            why=why,
            progress=progress,
        )


@contextlib.contextmanager
def needing_learn() -> Iterator[None]:
    """What is imported inside needs the packages of the extra `learn`."""
    try:
        yield
    except ImportError as error:
        raise LearnError(f"this needs {error.name}: pip install 'turnout[learn]'") from None


def embedder_here() -> Embeds | None:
    """The embedder of this machine, if one is installed."""
    from turnout.models.embed import find_embedder

    return find_embedder()


def champion_name(found: Promotion | Shadow) -> str:
    """The champion of a report, as people know it."""
    if found.champion != SHIPPED:
        return found.champion
    return "the shipped one" if shipped_model(found.profile, found.layer) is not None else "no champion"


def form(found: Promotion) -> dict[str, object]:
    return {**msgspec.to_builtins(found), "passed": found.passed}


def print_promotion(screen: Console, found: Promotion, profile: str, *, asked: bool) -> None:
    """The report; `profile` is what it is called here, `asked` says whether it was to serve, or only looked at."""
    from rich.text import Text

    from ..draw.checks import CheckRow, draw_checks
    from ..draw.shape import Rail

    glyphs = glyphs_for(screen)
    head = Text.assemble((f"{visible(found.profile)} {visible(found.layer)}", "bold"), f"  {found.challenger}")
    screen.print(head.append(f" against {champion_name(found)}", "dim"), soft_wrap=True)
    rows = [CheckRow(one.check, one.value, one.limit, one.passed, _why(one)) for one in found.checks]
    screen.print(Rail(draw_checks(rows, glyphs), "  "))
    failed = len(found.failed)
    if found.promoted:
        said = f"{found.challenger} serves now" + (f", with {counted(failed, 'failed check')}" if found.forced else "")
        back = hint("student", "rollback", "-p", profile)
        screen.print(Text(f"{said} ({back} goes back)", "bold green"), soft_wrap=True)
    elif found.passed:
        promote = hint("student", "promote", found.challenger, "-p", profile)
        screen.print(Text(f"it may serve: {promote}", "bold green"), soft_wrap=True)
    else:
        told = f"{failed} of {len(found.checks)} checks failed"
        screen.print(Text(f"not promoted: {told}" if asked else f"it may not serve: {told}", "bold red"))


def _why(check: Check) -> str:
    """What a check means; where it failed, also where its limit is set."""
    return check.why if check.passed else f"{check.why} ({check.setting})"
