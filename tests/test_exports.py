"""The public names of `turnout`, exactly. Adding one is a decision; removing one breaks somebody."""

import inspect

import turnout

PUBLIC = [
    "ConfigError",
    "Counterfactual",
    "Decision",
    "Gate",
    "Layer",
    "LiveRouter",
    "Policy",
    "Problem",
    "Profile",
    "Query",
    "QueryError",
    "QueryTooLarge",
    "Reading",
    "Reason",
    "Reloaded",
    "ReplayMismatch",
    "Router",
    "Step",
    "Supplies",
    "Turn",
    "TurnoutError",
    "UnknownProfile",
    "UnknownRoute",
    "Verdict",
    "Violation",
    "kind",
    "load",
    "load_profile",
    "profile_names",
]

ROUTER = ["accept", "counterfactuals", "from_examples", "profile", "replay", "route", "route_recorded", "route_sync"]
ROUTER += ["stations", "steps"]

# Rooms a reader of `dir(turnout)` sees because something has imported them.
ROOMS = {
    *("apps", "cli", "config", "core", "explain", "layers", "learn", "models", "net", "profiles", "runtime", "store"),
    *("console", "search", "testing", "text", "web"),
}


def test_the_names_are_these_and_in_order() -> None:
    assert turnout.__all__ == PUBLIC
    assert sorted(PUBLIC) == PUBLIC


def test_a_router_has_these_members() -> None:
    assert [name for name in dir(turnout.Router) if not name.startswith("_")] == ROUTER


def test_every_name_is_there() -> None:
    assert all(hasattr(turnout, name) for name in PUBLIC)


def test_nothing_else_is_public() -> None:
    visible = {name for name in vars(turnout) if not name.startswith("_")}
    assert visible - ROOMS - {"annotations"} <= set(PUBLIC)


def test_a_star_import_gives_the_names() -> None:
    names: dict[str, object] = {}
    exec("from turnout import *", names)  # noqa: S102 - the only way to do it inside a function
    assert {name for name in names if not name.startswith("__")} == set(PUBLIC)


def test_what_is_raised_can_be_caught_by_its_public_name() -> None:
    errors = [one for one in vars(turnout).values() if inspect.isclass(one) and issubclass(one, Exception)]
    assert all(issubclass(error, turnout.TurnoutError) for error in errors)


def test_the_version_is_the_packages() -> None:
    from importlib import metadata

    assert turnout.__version__ == metadata.version("turnout")


def test_the_example_in_the_docstring_is_true() -> None:
    decision = turnout.load("study", config="").route_sync("Define entropy")
    assert (decision.route, decision.policy.max_sentences) == ("standalone_definition", 2)
    assert "('standalone_definition', 2)" in (turnout.__doc__ or "")
