"""The table of commands. A command's module is imported when the command runs, so that help is quick."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cyclopts import App, CycloptsError, Group, UnknownOptionError, UnusedCliTokensError

from turnout import __version__
from turnout.core.errors import suggest

from .question import STDIN, clean
from .screen import complain

HELP = "Decides what happens next with every question that reaches an LLM application, and says why."


class Command(NamedTuple):
    """A row of the table. The help stands here because reading it must not cost an import."""

    name: str
    help: str
    """The first sentence is the one in the list of commands."""
    examples: tuple[str, ...]


COMMANDS = (
    Command(
        "route",
        "Decide what happens with one question.",
        (
            'turnout route "Define entropy" -p study',
            "git log -1 --format=%B | turnout route --json",
            'turnout route "And the second one?" --session chat.jsonl',
        ),
    ),
    Command(
        "explain",
        "Draw how a decision came about, and what would change it.\n\n"
        "Every layer with its time, what fired and how much it adds, scores, gates, the policy that follows, and which "
        "route it would be without one signal.",
        (
            'turnout explain "Prove step by step that sqrt(2) is irrational"',
            'turnout explain "Define entropy" -p study',
        ),
    ),
    Command(
        "plan",
        "Draw what a question asks for, part by part.\n\n"
        "Each part of a compound question with its role, its words, its routes and sources, and who decided it. A "
        "question that is not split is its only part.",
        (
            'turnout plan "Will it rain in Paris, and who won the game?" -p sources',
            'turnout plan "If it rains, check the news" -p sources --json | jq .parts',
        ),
    ),
    Command(
        "batch",
        "Decide a whole JSONL file, on all cores.\n\n"
        'Every row gives exactly one row, in order: {"row", "id" if it had one, "decision"}, or {"row", "error"}. '
        "Local layers only: no model is asked. The exit code is 1 if some row could not be decided.",
        (
            "turnout batch questions.jsonl -p tiers -o decisions.jsonl",
            "zcat logs.gz | turnout batch - --field prompt | jq .decision.route",
        ),
    ),
    Command(
        "serve",
        "Serve the gateway: clients change their base URL and ask for `auto`.\n\n"
        "OpenAI's and Anthropic's interfaces and Turnout's own, on this machine unless told otherwise. Every decision "
        "is logged. Without a provider's key a built-in demonstration model answers. Needs the extra: pip install "
        "'turnout[serve]'.",
        (
            "turnout serve",
            "turnout serve --port 9000 -p tiers-local",
            "turnout serve --host 0.0.0.0 --db postgresql://turnout@db.example.org/turnout",
        ),
    ),
    Command(
        "models",
        "List, try or change the models that fill the slots.",
        (
            "turnout models list",
            "turnout models test simple",
            "turnout models set simple ollama/llama3.2",
            "turnout models set main mine/large --base-url https://models.example.org/v1",
        ),
    ),
    Command(
        "embed",
        "Install the sentence embedder of this machine, or see what is installed.\n\n"
        "A student that was trained with vectors needs the embedder they are from.",
        (
            "turnout embed install --from minilm",
            "turnout embed list",
            'turnout embed text "Where is my parcel?" "When does my order arrive?" "Define entropy"',
        ),
    ),
    Command(
        "keys",
        "Make, list, change or revoke the keys of a server.\n\n"
        "On one machine none is needed. As soon as there is one, every request needs one.",
        (
            "turnout keys create alice",
            "turnout keys create ci --tenant ci --ceiling MEDIUM --budget-usd 5 --days 30",
            "turnout keys list",
            "turnout keys update 4k2m9x0c7q1z --budget-day-usd 2 --remove ceiling",
            "turnout keys revoke 4k2m9x0c7q1z",
        ),
    ),
    Command(
        "log",
        "List the decisions that were logged, the newest last.\n\n"
        "A line each: when, the end of its id, the outcome letters, the route, how sure, by whom, and the question. "
        "turnout route logs what it decides; so does every program that opens the decision log.",
        (
            "turnout log",
            "turnout log --follow",
            "turnout log --since 2h --outcome 'F?' --text refund",
            "turnout log --key 4k2m9x0c7q1z",
            "turnout log --json -n 1000 | jq -r .route",
        ),
    ),
    Command(
        "show",
        "Draw a logged decision, and what became of it.\n\n"
        "The picture of turnout explain, as it was decided then; below it what happened, what people said of it and "
        "which rules of the contract were broken.",
        ("turnout show", "turnout show 7Q2M5K00", "turnout show last --json | jq .outcome"),
    ),
    Command(
        "stats",
        "See who decides, how fast and for how much.\n\n"
        "Shares of each layer over time and the share a model was asked for, routes, outcomes, latency, and spending "
        "where the log knows it.",
        (
            "turnout stats",
            "turnout stats --since 7d --by day -p tiers",
            "turnout stats --by key --since 30d",
            "turnout stats --json | jq .model_share",
        ),
    ),
    Command(
        "feedback",
        "Say whether a decision was right, or what it should have been.\n\n"
        "The decision stays as it is; your word is kept beside it, and the last word counts.",
        (
            "turnout feedback last right",
            "turnout feedback last RETRIEVAL",
            'turnout feedback 7Q2M5K00 wrong --note "the tables were never asked for"',
        ),
    ),
    Command(
        "profiles",
        "List the profiles that ship with Turnout, or show one.",
        ("turnout profiles", "turnout profiles show study", "turnout profiles show tiers --json | jq .profile.routes"),
    ),
    Command(
        "init",
        "Start a profile from a few example questions.\n\n"
        "Writes NAME.toml, commented, with phrases proposed from the words that are distinctive for each route, and "
        "NAME.cases.jsonl, the examples as golden cases. Without examples: a small working demonstration.",
        (
            "turnout init support --from examples.jsonl",
            'turnout init support --route "billing=I want a refund" --route "technical=The app crashes"',
        ),
    ),
    Command(
        "check",
        "Find every mistake in a profile; run its golden cases.\n\n"
        "Each mistake with file, line and suggestion. The exit code is 1 if there is one, or if a case that must hold "
        "does not.",
        ("turnout check my-profile.toml", "turnout check tiers --cases", "turnout check tiers --cases mine.jsonl"),
    ),
    Command(
        "diff",
        "Compare two profiles on a file of questions.\n\n"
        "How many questions get another route, from which to which, how outcomes shift, and the questions themselves "
        "with what fired in each profile. Local layers only: no model is asked. The exit code is 1 if some row could "
        "not be read.",
        (
            "turnout diff tiers my-profile.toml questions.jsonl",
            "turnout diff tiers tiers-local questions.jsonl --json | jq .share",
        ),
    ),
    Command(
        "replay",
        "Decide again what a batch has decided, and compare.\n\n"
        "With the profile that decided then, any difference in route, outcome or confidence is an error and the exit "
        "code is 1. With another profile, what changes is reported as turnout diff does.",
        (
            "turnout replay decisions.jsonl -p tiers",
            "turnout batch questions.jsonl --with-text | turnout replay -",
        ),
    ),
    Command(
        "train",
        "Train a profile's student on labelled questions.\n\n"
        "Duplicates are collapsed, rows that look planted are set aside, a fifth is held out to judge by, and the "
        "student is stood on the shelf as a candidate: turnout promote lets it serve. With --outcomes a profile learns "
        "which model is good enough. Needs the extra: pip install 'turnout[learn]'.",
        (
            "turnout train labels.jsonl more.csv -p assist",
            "turnout train --from-log --since 30d --promote",
            "turnout train --outcomes outcomes.jsonl -p tiers-learned --keep-quality 95%",
        ),
    ),
    Command(
        "tune",
        "Fit the weights of a signals layer to labelled questions.\n\n"
        "Weights, band edges and steepness move, signs and overrides stay. Accuracy before and after comes from "
        "questions that fitted nothing. With --out the numbers are written as a profile that extends the old one, if "
        "they are shown to be better; the exit code is 1 if they are not.",
        (
            "turnout tune labels.jsonl -p tiers-local --out my-tiers.toml",
            "turnout tune labels.csv -p study --layer local --json | jq .moved",
        ),
    ),
    Command(
        "calibrate",
        "Choose all gates of a profile together, with a bound on errors.\n\n"
        "The largest share that local layers may decide such that at most so much of it is wrong: proven on labelled "
        "questions, for any number of them. With --out the gates are written as a profile that extends the old one. "
        "The exit code is 1 if nothing could be proven. Needs the extra: pip install 'turnout[learn]'.",
        (
            "turnout calibrate labels.jsonl -p assist --max-error 2% --confidence 95%",
            "turnout calibrate labels.jsonl -p assist --out my-assist.toml",
        ),
    ),
    Command(
        "evaluate",
        "Measure a profile's layers on labelled questions.\n\n"
        "Accuracy and calibration of each local layer and of all together, who is taken for whom, and the share that "
        "is left to a language model; two models are compared on the same questions. Needs the extra: pip install "
        "'turnout[learn]'.",
        (
            "turnout evaluate labels.jsonl -p assist",
            "turnout evaluate labels.jsonl -p assist --model old --model new",
            "turnout evaluate labels.jsonl -p assist --card card.html",
        ),
    ),
    Command(
        "shadow",
        "Let a trained student decide logged questions beside the one that serves.\n\n"
        "How often the two agree, which questions change from which route to which, and how many of each are right "
        "where people said so. Nothing is served by it; what was found is kept for turnout promote.",
        (
            "turnout shadow -p assist",
            "turnout shadow -p assist --since 7d --model 3f2a91",
        ),
    ),
    Command(
        "promote",
        "Let a trained student serve, if every check says it may.\n\n"
        "Accuracy and the difference to the champion as lower bounds, the recall of each label, golden cases, "
        "contract, flip rate, shadow decisions, suspicious rows and words. The exit code is 1 if it does not serve "
        "afterwards.",
        (
            "turnout promote -p assist",
            "turnout promote 3f2a91 --check",
            'turnout promote 3f2a91 --force --why "the champion answers nothing in Spanish"',
        ),
    ),
    Command(
        "rollback",
        "Let the student before this one serve again.\n\n"
        "One step back each time, down to the one that came with Turnout. --history lists who served when, and why.",
        ("turnout rollback -p assist", "turnout rollback -p assist --history"),
    ),
    Command(
        "drift",
        "See whether the traffic has changed since the student learnt from it.\n\n"
        "Routes, layers, confidence, unknown questions, unseen words and corrections, before and now. A change counts "
        "that is beyond chance and large enough. The exit code is 1 if there is one.",
        (
            "turnout drift -p assist",
            "turnout drift -p assist --since 7d --against 37d",
        ),
    ),
    Command(
        "export",
        "Write the decision log as rows to learn from.\n\n"
        "One row a decision, parts of compound questions included: its text, who says what it is (a human's word wins "
        "over a teacher's), what was decided and what came of it. JSONL, or Parquet in row groups.",
        (
            "turnout export labels.parquet --labelled",
            "turnout export -p assist --since 30d | jq -r .text",
        ),
    ),
    Command(
        "contract",
        "See whether the rules of a contract were kept.\n\n"
        "The rules a profile declares are checked on every decision and on what happened after it.",
        ("turnout contract report --since 7d", "turnout contract flips -p assist"),
    ),
    Command(
        "db",
        "Migrate, verify, back up, restore or prune the decision log.",
        (
            "turnout db info",
            "turnout db backup friday.db",
            "turnout db restore friday.db --db postgresql://turnout@db.example.org/turnout",
            "turnout db prune --keep-days 90 --text-days 30",
        ),
    ),
    Command(
        "schema",
        "Print the JSON Schema of profile files, for editors.\n\n"
        "It knows every key, type and range, and the keys of each kind of layer that is installed here.",
        ("turnout schema -o profile.schema.json",),
    ),
    Command(
        "doctor",
        "See what is installed here, what is missing, and what to do.\n\n"
        "The exit code is 1 only if something is broken.",
        ("turnout doctor",),
    ),
)

GROUPS = frozenset({"profiles", "contract", "db", "models", "keys", "embed"})
"""Commands that have commands of their own."""


def epilogue(name: str | None = None) -> str:
    """The examples that end a command's help; the first of each for the list of commands."""
    lines = [
        line
        for command in COMMANDS
        for line in (command.examples if name else command.examples[:1])
        if name in (None, command.name)
    ]
    return "\n".join(("Examples:", *(f"  {line}" for line in lines)))


def build() -> App:
    app = App(
        name="turnout",
        help=HELP,
        help_epilogue=epilogue(),
        help_format="plaintext",
        version=f"turnout {__version__}",
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    app["--help"].group = app["--version"].group = Group("Options", sort_key=1)
    for order, command in enumerate(COMMANDS):
        name = command.name
        if name in GROUPS:  # an App, which brings its own examples
            app.command(f"turnout.cli.{name}:app", name=name, help=command.help, sort_key=order)
        else:
            target = f"turnout.cli.{name}:{name}"
            app.command(target, name=name, help=command.help, help_epilogue=epilogue(name), sort_key=order)
    return app


def run_command(argv: Sequence[str]) -> int:
    arguments = [STDIN if argument == "-" else argument for argument in argv]
    try:
        code = build()(arguments, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        first = arguments[0] if arguments else ""
        if first.startswith("-") and not error.command_chain:
            near = suggest(first, ("--help", "--version"))
            complain(f"unknown option {clean(first)!r}{near} (see turnout --help)")
        else:
            complain(_sentence(error))
        return 2
    return code if isinstance(code, int) else 0


def _sentence(error: CycloptsError) -> str:
    error.verbose = False
    chain = " ".join(("turnout", *(error.command_chain or ())))
    hint = f"(see {chain} --help)"
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        extra = error.unused_tokens[0]
        known = [name for name in (error.app or ()) if not name.startswith("-")]
        if known:
            return f"{chain} has no command {extra!r}{suggest(extra, known)} {hint}"
        return f"unexpected argument {extra!r}: put a text of several words in quotes {hint}"
    said = str(error).strip().replace(STDIN, "-")
    if isinstance(error, UnknownOptionError) and chain.endswith(("route", "explain")):
        said += " A text that begins with '-' goes after '--'."
    return f"{said} {hint}"
