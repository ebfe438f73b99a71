"""The public names of `turnout.store`, exactly. Adding one is a decision; removing one breaks somebody."""

import inspect
import subprocess
import sys

import turnout.store
from turnout.core.errors import StoreError, TurnoutError

PUBLIC = [
    "LEVELS",
    "BreachRow",
    "Bucket",
    "Checked",
    "Counts",
    "Feedback",
    "Intent",
    "Journal",
    "Label",
    "Level",
    "Logged",
    "Outcome",
    "Records",
    "RuleCount",
    "Session",
    "Spent",
    "Stats",
    "Store",
    "TimeSpan",
    "open_store",
]


def test_the_names_are_these_and_in_order() -> None:
    assert turnout.store.__all__ == PUBLIC
    assert all(hasattr(turnout.store, name) for name in PUBLIC)


def test_nothing_else_is_public() -> None:
    visible = {
        name for name, one in vars(turnout.store).items() if not name.startswith("_") and not inspect.ismodule(one)
    }
    assert visible - {"annotations"} == set(PUBLIC)


def test_what_it_raises_on_purpose_is_of_our_tree() -> None:
    from turnout.core import errors
    from turnout.store.backend import Unwritable

    raised = [one for one in vars(errors).values() if inspect.isclass(one) and issubclass(one, StoreError)]
    assert all(issubclass(one, TurnoutError) for one in (*raised, Unwritable))


def test_a_store_in_a_file_needs_no_driver() -> None:
    """psycopg takes a fifth of a second to import: only a store that needs it does."""
    code = (
        "import sys, tempfile, turnout.store\n"
        "turnout.store.open_store(tempfile.mkdtemp() + '/x.db', config='').close()\n"
        "print([name for name in ('psycopg', 'psycopg_pool', 'pyarrow') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
