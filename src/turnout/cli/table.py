"""The table of commands: name, help and examples of each, so that showing help imports no command."""

from __future__ import annotations

from typing import NamedTuple


class Command(NamedTuple):
    """A row of the table."""

    name: str
    help: str
    """Its first sentence is shown in the list of commands."""
    examples: tuple[str, ...]


def _row(name: str, help: str, *examples: str) -> Command:
    return Command(name, help, examples)


DECIDE = (
    _row(
        "route",
        "Decide what happens with one question.",
        'turnout route "Define entropy" -p study',
        "git log -1 --format=%B | turnout route --json",
        'turnout route "And the second one?" --session chat.jsonl',
    ),
    _row(
        "explain",
        "Draw how a decision was made, and what would change it.\n\n"
        "Every layer with its time, what fired and how much it adds, scores, gates, the policy that follows, and which "
        "route it would be without one signal. With --plan, an overview of a compound question instead: each part "
        "with its role, its words, its routes and sources, and the layer that decided it.",
        'turnout explain "Prove step by step that sqrt(2) is irrational"',
        'turnout explain "Define entropy" -p study',
        'turnout explain --plan "Will it rain in Paris, and who won the game?" -p sources',
    ),
    _row(
        "batch",
        "Decide a whole JSONL file, on all cores.\n\n"
        'Every row gives exactly one row, in order: {"row", "id" if it had one, "decision"}, or {"row", "error"}. '
        "Local layers only: no model is asked. The exit code is 1 if some row could not be decided.",
        "turnout batch questions.jsonl -p tiers -o decisions.jsonl",
        "zcat logs.gz | turnout batch - --field prompt | jq .decision.route",
    ),
)

SERVE = (
    _row(
        "ask",
        "Ask all configured sources: one question, the sources that know, one answer.\n\n"
        "A compound question is split, a condition is checked, a follow-up in a session is understood. Each "
        "source is shown as it answers, and the answer says which sources gave it, had nothing or were too slow. The "
        "exit code is 1 if no source answered. Needs the extra: pip install 'turnout[serve]'.",
        'turnout ask "Is the garage door open, and will it rain tomorrow?"',
        'turnout ask --plan "If it rains tomorrow, cancel the picnic and check the news"',
        'turnout ask "Who was Ada Lovelace?" --source kiwix',
        'turnout ask "and her father?" --session chat.jsonl',
    ),
    _row(
        "serve",
        "Serve the gateway: clients change their base URL and ask for `auto`.\n\n"
        "OpenAI's and Anthropic's interfaces and Turnout's own, on this machine by default. Every decision is "
        "logged. Without a provider's key a built-in demonstration model answers. Needs the extra: pip install "
        "'turnout[serve]'.",
        "turnout serve",
        "turnout serve --port 9000 -p tiers-seed",
        "turnout serve --host 0.0.0.0 --db postgresql://turnout@db.example.org/turnout",
    ),
    _row(
        "assist",
        "Read documentation, in several versions, and ask it questions.\n\n"
        "Markdown, HTML, reStructuredText, text, PDF and code. The type of a question decides whether the documents "
        "are searched and which model answers; every citation is checked. Needs the extra: pip install "
        "'turnout[serve]'.",
        "turnout assist ingest docs --library mylib --version 2.0",
        'turnout assist ask "How do I retry a request?"',
        'turnout assist ask "What does this do?" --selected client.py',
        "turnout assist list",
    ),
    _row(
        "mcp",
        "Offer Turnout's tools to a program that speaks MCP, over stdin and stdout.\n\n"
        "`route` decides what happens with a text, `ask` and `search` ask your sources, `resolve-library-id` and "
        "`query-docs` the documentation you have ingested. Needs the extras: pip install "
        "'turnout[serve,mcp]'.",
        "turnout mcp",
        "claude mcp add turnout -- turnout mcp",
    ),
    _row(
        "models",
        "List, try or change the models that fill the slots.",
        "turnout models list",
        "turnout models test simple",
        "turnout models set simple ollama/llama3.2",
        "turnout models set main mine/large --base-url https://models.example.org/v1",
        "turnout models unset main",
    ),
    _row(
        "sources",
        "List, try or add the sources that questions are answered from.\n\n"
        "Each is a table [sources.NAME] of your turnout.toml. Needs the extras: pip install 'turnout[serve,sources]'.",
        "turnout sources list",
        "turnout sources test kiwix",
        "turnout sources add kiwix --url http://192.168.1.5:8080",
        "turnout sources add ha --url http://ha.lan:8123 --private --token-env HA_TOKEN",
        "turnout sources add notes --kind files --folder ~/notes",
    ),
    _row(
        "study",
        "Ask about the page in front of you; only what the question needs is sent.\n\n"
        "Answers come sentence by sentence. Sessions that have ended are remembered until you forget them. Needs the "
        "extra: pip install 'turnout[serve]'.",
        'turnout study ask "Define osmosis" --image page.jpg',
        'turnout study ask "What does the second paragraph say?" --image page.jpg --notes ~/vault',
        'turnout study ask "look at the page" --image page.jpg',
        "turnout study end",
        "turnout study memory list",
        "turnout study savings",
    ),
    _row(
        "claims",
        "Ask a library of audited claims, look into it, or have a claim audited.\n\n"
        "A question gets the card that answers it, a synthesis of cards that is marked as one, or a new audit. Needs "
        "the extra: pip install 'turnout[serve]'.",
        'turnout claims ask "Did the flood happen?"',
        'turnout claims ask "Which is more likely?" --session chat.jsonl',
        'turnout claims search "flood"',
        'turnout claims audit "Lightning never strikes the same place twice"',
        "turnout claims feedback last wrong",
    ),
    _row(
        "embed",
        "Install the sentence embedder of this machine, or see what is installed.\n\n"
        "A student that was trained with vectors needs the same embedder.",
        "turnout embed install --from minilm",
        "turnout embed list",
        'turnout embed text "Where is my parcel?" "When does my order arrive?" "Define entropy"',
    ),
    _row(
        "keys",
        "Make, list, change or revoke the keys of a server.\n\n"
        "On one machine no key is needed. As soon as there is a key, every request needs one.",
        "turnout keys create alice",
        "turnout keys create ci --tenant ci --ceiling MEDIUM --budget-usd 5 --days 30",
        "turnout keys list",
        "turnout keys update 4k2m9x0c7q1z --budget-day-usd 2 --remove ceiling",
        "turnout keys revoke 4k2m9x0c7q1z",
    ),
    _row(
        "doctor",
        "See what is installed here, what is missing, and what to do.\n\n"
        "The exit code is 1 only if something is broken.",
        "turnout doctor",
    ),
)

LOG = (
    _row(
        "log",
        "List the logged decisions, newest last.\n\n"
        "A line each: when, the end of its id, the outcome letters, the route, how sure, the layer and the question. "
        "turnout route logs its decisions; so does every program that opens the decision log.",
        "turnout log",
        "turnout log --follow",
        "turnout log --since 2h --outcome 'F?' --text refund",
        "turnout log --wrong -p assist",
        "turnout log --key 4k2m9x0c7q1z",
        "turnout log --json -n 1000 | jq -r .route",
    ),
    _row(
        "show",
        "Draw a logged decision, and what happened afterwards.\n\n"
        "The picture of turnout explain, as it was decided then; below it the outcome, the feedback and the broken "
        "rules of the contract.",
        "turnout show",
        "turnout show 7Q2M5K00",
        "turnout show last --json | jq .outcome",
    ),
    _row(
        "stats",
        "Show which layers decide, how fast and at what cost.\n\n"
        "Shares of each layer over time and the share that used a model, routes, outcomes, latency, and spending "
        "if the log has it.",
        "turnout stats",
        "turnout stats --since 7d --by day -p tiers",
        "turnout stats --by key --since 30d",
        "turnout stats --json | jq .model_share",
    ),
    _row(
        "feedback",
        "Say whether a decision was right, or what it should have been.\n\n"
        "The decision is not changed; your feedback is kept with it, and the latest counts.",
        "turnout feedback last right",
        "turnout feedback last RETRIEVAL",
        'turnout feedback 7Q2M5K00 wrong --note "the tables were never asked for"',
    ),
    _row(
        "export",
        "Export the decision log as training rows.\n\n"
        "One row per decision, parts of compound questions included: its text, its label (a person's wins over a "
        "teacher's), what was decided and the outcome. JSONL, or Parquet in row groups.",
        "turnout export labels.parquet --labelled",
        "turnout export -p assist --since 30d | jq -r .text",
    ),
    _row(
        "contract",
        "See whether the rules of a contract were kept.\n\n"
        "The rules a profile declares are checked on every decision and on what happened after it.",
        "turnout contract report --since 7d",
        "turnout contract flips -p assist",
    ),
    _row(
        "db",
        "Migrate, verify, back up, restore or prune the decision log.",
        "turnout db info",
        "turnout db backup friday.db",
        "turnout db restore friday.db --db postgresql://turnout@db.example.org/turnout",
        "turnout db prune --keep-days 90 --text-days 30",
    ),
)

PROFILE = (
    _row(
        "profiles",
        "List the profiles that ship with Turnout, or show one.",
        "turnout profiles",
        "turnout profiles show study",
        "turnout profiles show tiers --json | jq .profile.routes",
    ),
    _row(
        "init",
        "Make a profile from labelled texts, ready to use.\n\n"
        "A fifth of the rows is held out, a student is trained, how often the whole profile is right on those rows is "
        "reported, and the student learns from them as well. NAME.toml is written; turnout route, turnout serve and "
        "turnout.load use it at once. Columns are guessed if they are clear. Needs the extra: pip install "
        "'turnout[learn]'. Without --from, a small profile to look at and change.",
        "turnout init shop --from tickets.csv --text subject --label queue",
        "turnout init shop --from tickets.jsonl --fallback general",
        "turnout init support",
    ),
    _row(
        "check",
        "Find every mistake in a profile; run its golden cases.\n\n"
        "Each mistake with file, line and suggestion. The exit code is 1 if there is one, or if a case that must hold "
        "does not.",
        "turnout check my-profile.toml",
        "turnout check tiers --cases",
        "turnout check tiers --cases mine.jsonl",
    ),
    _row(
        "diff",
        "Compare two profiles, or what was decided with what is decided now.\n\n"
        "How many questions get another route, from which to which, how outcomes shift, and the questions themselves "
        "with what fired. OLD and NEW are compared on the questions of a file or, with --from-log, of the decision "
        "log. Without them, recorded decisions are compared with what --profile decides now: of decisions that "
        "profile has made, any difference in route, outcome or confidence is an error. Local layers only: no model is "
        "asked. The exit code is 1 if there is such an error, or a row that could not be read.",
        "turnout diff tiers my-profile.toml questions.jsonl",
        "turnout diff tiers my-profile.toml --from-log --since 7d",
        "turnout diff decisions.jsonl -p tiers",
        "turnout diff --from-log -p tiers",
        "turnout batch questions.jsonl --with-text | turnout diff -",
    ),
    _row(
        "schema",
        "Print the JSON Schema of profile files, for editors.\n\n"
        "It knows every key, type and range, and the keys of each kind of layer that is installed here.",
        "turnout schema -o profile.schema.json",
    ),
)

LEARN = (
    _row(
        "train",
        "Train a profile's student on labelled questions.\n\n"
        "Duplicates are collapsed, rows that look planted are set aside, a fifth is held out to judge by, and the "
        "student becomes a candidate: turnout student promote lets it serve. With --outcomes a profile learns which "
        "model is good enough. Needs the extra: pip install 'turnout[learn]'.",
        "turnout train labels.jsonl more.csv -p assist",
        "turnout train --from-log --since 30d -p assist --promote",
        "turnout train --outcomes outcomes.jsonl -p tiers --keep-quality 95%",
    ),
    _row(
        "evaluate",
        "Measure a profile's layers on labelled questions.\n\n"
        "Accuracy and calibration of each local layer and of all together, which routes are confused, and the share "
        "that is left to a language model; two models are compared on the same questions. Needs the extra: pip install "
        "'turnout[learn]'.",
        "turnout evaluate labels.jsonl -p assist",
        "turnout evaluate labels.jsonl -p assist --model old --model new",
        "turnout evaluate labels.jsonl -p assist --card card.html",
    ),
    _row(
        "calibrate",
        "Choose all gates of a profile together, with a bound on errors.\n\n"
        "The largest share that local layers may decide so that at most the allowed share of it is wrong: proven on "
        "labelled questions, for any number of them. With --out the gates are written as a profile that extends the "
        "old one. The exit code is 1 if nothing could be proven. Needs the extra: pip install 'turnout[learn]'.",
        "turnout calibrate labels.jsonl -p assist --max-error 2% --confidence 95%",
        "turnout calibrate labels.jsonl -p assist --out my-assist.toml",
    ),
    _row(
        "student",
        "Watch, promote or roll back the students of a profile.",
        "turnout student shadow -p assist",
        "turnout student promote -p assist",
        "turnout student rollback -p assist",
        "turnout student drift -p assist",
    ),
)

COMMANDS: dict[str, tuple[Command, ...]] = {
    "Decide": DECIDE,
    "Serve": SERVE,
    "Log": LOG,
    "Profile": PROFILE,
    "Learn": LEARN,
}
"""The commands by purpose, in the order of the help."""

SUBCOMMANDS = frozenset(
    ("profiles", "contract", "db", "models", "sources", "claims", "study", "assist", "keys", "embed", "student")
)
"""Commands that have subcommands."""

RENAMED: dict[str, tuple[str, ...]] = {
    "plan": ("explain", "--plan"),
    "replay": ("diff",),
    "shadow": ("student", "shadow"),
    "promote": ("student", "promote"),
    "rollback": ("student", "rollback"),
    "drift": ("student", "drift"),
}
"""The old names of commands, and their new ones. The old names still work in this version only."""

REMOVED = {
    "tune": "turnout train FILE -p PROFILE learns from the same labels",
}
"""Removed commands, and what to do instead."""
