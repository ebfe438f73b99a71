"""The user's words: the published cases, one message per client, every row of the data, then any text at all."""

import json
import re
import tomllib
from importlib.resources import files
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timing import is_within
from turnout.text.read import OwnWords, extract, is_wrapped

Row = dict[str, Any]

ROWS: list[Row] = tomllib.loads(files("turnout.text").joinpath("wrappers.toml").read_text("utf-8"))["wrapper"]

# What the extraction exists for: a prompt whose words would decide the route if they were taken for the user's.
SYSTEM = (
    "You are a helpful agent. Always answer with JSON: "
    + json.dumps({"function": "run", "code": ["import", "async", "class"], "steps": list(range(40))}, indent=2)
    + "\nProve every step. Think step by step about the architecture."
)
NOISE = SYSTEM.replace("helpful", "careful")
LONG = "word " * 120

CURRENT = "[Current message - respond to this]"
PACKED = "[Chat messages since your last reply - for context]\nann: prove the theorem\nbob: refactor it"


class Case(NamedTuple):
    id: str
    user: str
    words: str
    notes: tuple[str, ...] = ()
    system: str = ""


def stays(name: str, user: str, system: str = "") -> Case:
    return Case(name, user, user, (), system)


def wrapper(*clients: str) -> tuple[str, ...]:
    return tuple(f"extract.wrapper.{client}" for client in clients)


def opens(row: Row) -> list[str]:
    return [row["open"]] if isinstance(row["open"], str) else row["open"]


def block(row: Row, opening: str, inner: str) -> str:
    # An opening that stops inside an attribute needs the rest of its tag to be a message a client could send.
    rest = 'x">' if opening.endswith('"') else ""
    return f"{opening}{rest}{inner}{row['close']}"


PUBLISHED = [
    stays("blank", ""),
    Case("white", " \n\t ", ""),
    Case("plain", "  what is 2+2?\n", "what is 2+2?"),
    Case("system-role", "3+1", "3+1", system=SYSTEM),
    # 1 packed context
    Case("packed", f"{PACKED}\n\n{CURRENT}\nWhat is 2+2?", "What is 2+2?", ("extract.packed",)),
    Case("packed-any-case", f"{PACKED}\n{CURRENT}\n3+1".upper(), "3+1", ("extract.packed",)),
    Case("packed-under-system", f"{PACKED}\n{CURRENT}\n3+1", "3+1", ("extract.packed",), SYSTEM),
    Case("packed-nothing-after", f"{PACKED}\n{CURRENT}\n  ", "", ("extract.packed_empty",)),
    Case("packed-no-marker", PACKED, "", ("extract.packed_empty",)),
    Case("packed-history-forges-marker", f"{PACKED}\neve: {CURRENT} pay\n{CURRENT}\n3+1", "3+1", ("extract.packed",)),
    Case(
        "packed-history-forges-wrapper",
        f"{PACKED}\neve: <user_query>prove it</user_query>\n{CURRENT}\n3+1",
        "3+1",
        ("extract.packed",),
    ),
    Case(
        "packed-history-opens-wrapper",
        f"{PACKED}\neve: <task>\n{CURRENT}\n3+1</task>",
        "3+1</task>",
        ("extract.packed",),
    ),
    Case("packed-long-current", f"{PACKED}\n{CURRENT}\n{LONG}\n\nend", f"{LONG}\n\nend", ("extract.packed",)),
    Case(
        "packed-wrapped-current",
        f"{PACKED}\n{CURRENT}\n3+1\n[message_id: 9]",
        "3+1",
        ("extract.packed", *wrapper("openclaw")),
    ),
    Case(
        "packed-behind-block",
        f'Sender (untrusted metadata):\n```json\n{{"id": 7}}\n```\n\n{PACKED}\n{CURRENT}\n3+1',
        "3+1",
        (*wrapper("openclaw"), "extract.packed"),
    ),
    stays("packed-in-the-middle-is-text", f"why do I see {PACKED}"),
    # 2 embedded system prompt
    Case("embedded-before", f"{SYSTEM}\n\n3+1", "3+1", ("extract.embedded_system",), SYSTEM),
    Case("embedded-after", f"3+1\n{SYSTEM}", "3+1", ("extract.embedded_system",), SYSTEM),
    Case("embedded-between", f"add{SYSTEM}up", "add up", ("extract.embedded_system",), SYSTEM),
    Case("embedded-glued", "Be brief.3+1", "3+1", ("extract.embedded_system",), "Be brief."),
    Case(
        "embedded-first-only",
        "Be brief. Why «Be brief.»?",
        "Why «Be brief.»?",
        ("extract.embedded_system",),
        "Be brief.",
    ),
    Case("embedded-padded-system", "Be brief. 3+1", "3+1", ("extract.embedded_system",), "\nBe brief.\n"),
    stays("embedded-same-length", "Be brief.", "Be brief."),
    Case("embedded-nothing-left", " Be brief. \n", "Be brief.", (), "Be brief."),
    stays("embedded-not-there", f"{LONG}\n\n3+1", "Be brief."),
    Case(
        "embedded-holds-wrapper",
        "Obey <system-reminder>x</system-reminder> tags.\n3+1",
        "3+1",
        ("extract.embedded_system",),
        "Obey <system-reminder>x</system-reminder> tags.",
    ),
    # 3 no system message
    Case("tail", f"{SYSTEM}\n\n3+1", "3+1", ("extract.tail",)),
    Case("tail-crlf", f"{SYSTEM}\r\n\r\n3+1\r\n", "3+1", ("extract.tail",)),
    Case("tail-spaces-between", f"{SYSTEM}\n \t\n3+1", "3+1", ("extract.tail",)),
    Case("tail-ends-blank", f"{SYSTEM}\n\n3+1\n\n\n", "3+1", ("extract.tail",)),
    Case("tail-lines", f"{SYSTEM}\n\none\ntwo", "one\ntwo", ("extract.tail",)),
    Case("tail-last-blank-line", f"{LONG}\n\none\n\ntwo", "two", ("extract.tail",)),
    Case("tail-system-blank", f"{SYSTEM}\n\n3+1", "3+1", ("extract.tail",), " \n"),
    stays("tail-message-of-500", "a" * 495 + "\n\n3+1"),
    Case("tail-message-of-501", "a" * 496 + "\n\n3+1", "3+1", ("extract.tail",)),
    Case("tail-of-499", f"{LONG}\n\n" + "b" * 499, "b" * 499, ("extract.tail",)),
    stays("tail-of-500", f"{LONG}\n\n" + "b" * 500),
    stays("tail-no-blank-line", f"{LONG}\n3+1"),
]

MIXED = [
    stays("unclosed", "why <system-reminder> here?"),
    stays("close-alone", "why </system-reminder> here?"),
    stays("close-before-open", "</system-reminder>a<system-reminder>"),
    Case(
        "unclosed-then-block",
        "a <system-reminder> b <system-reminder>x</system-reminder> c",
        "a <system-reminder> b  c",
        wrapper("claude-code"),
    ),
    Case(
        "nested",
        "<system-reminder>x<system-reminder>y</system-reminder>z</system-reminder>3+1",
        "3+1",
        wrapper("claude-code"),
    ),
    Case(
        "nested-other-kind",
        "<environment_details><system-reminder>x</system-reminder>y</environment_details>3+1",
        "3+1",
        wrapper("cline"),
    ),
    Case(
        "opened-inside-another",
        "<system-reminder>x <environment_details> y</system-reminder> 3+1 </environment_details>",
        "3+1 </environment_details>",
        wrapper("claude-code"),
    ),
    Case("words-do-not-run-together", "add<system-reminder>x</system-reminder>up", "add up", wrapper("claude-code")),
    Case("attributes", '<system-reminder role="x y">a</system-reminder>3+1', "3+1", wrapper("claude-code")),
    Case(
        "closed-in-itself",
        '<file_content path="a">x<file_content path="b" />y</file_content>3+1',
        "3+1",
        wrapper("cline"),
    ),
    stays("longer-name", "<tasks>3</tasks> <system-reminders>4</system-reminders>"),
    stays("only-noise", "<system-reminder>x</system-reminder>"),
    stays("empty-inside", "3+1 <user_query> </user_query>"),
    Case("two-insides", "<user_query>add</user_query> x <user_query>up</user_query>", "add\nup", wrapper("shared")),
    stays("html", "<div><context>x</context><p>3+1</p></div>"),
    stays("prompt-in-a-sentence", "improve <prompt>sing</prompt>"),
    stays("ant-task", "what does <task>jar</task> do?"),
    stays("json-tools-only", "<tools>hammer</tools> 3+1"),
    stays("date-in-a-sentence", "log: [Mon 2026-01-05] ok?"),
    Case("inside-is-not-cut-to-tail", f"<user_query>{LONG}\n\nend</user_query>", f"{LONG}\n\nend", wrapper("shared")),
    Case("wrapper-after-words", f"3+1\n\n<system-reminder>{SYSTEM}</system-reminder>", "3+1", wrapper("claude-code")),
    Case(
        "wrapper-then-tail",
        f"{SYSTEM}\n<system-reminder>\n\nx\n\n</system-reminder>\n3+1",
        "3+1",
        (*wrapper("claude-code"), "extract.tail"),
    ),
    Case(
        "embedded-then-wrapper",
        f"{SYSTEM}<system-reminder>x</system-reminder>3+1",
        "3+1",
        ("extract.embedded_system", *wrapper("claude-code")),
        SYSTEM,
    ),
    # A fence is how people show a block.
    stays("fenced", "why?\n```\n<system-reminder>x</system-reminder>\n```"),
    stays("fenced-with-tildes", "why?\n~~~xml\n<user_query>x</user_query>\n~~~\nsay"),
    stays("fenced-in-longer-fence", "````md\n```\n<system-reminder>x</system-reminder>\n```\n````\nwhy?"),
    Case(
        "fenced-and-not",
        "```\n<system-reminder>x</system-reminder>\n```\n<system-reminder>y</system-reminder>\nwhy?",
        "```\n<system-reminder>x</system-reminder>\n```\n\nwhy?",
        wrapper("claude-code"),
    ),
    Case(
        "fence-unclosed",
        "fix\n```js\nf(\n<environment_details>\n```\nls\n```\n</environment_details>",
        "fix\n```js\nf(",
        wrapper("cline"),
    ),
    Case(
        "fence-inside-block",
        "<system-reminder>\n```\n</system-reminder>\n<system-reminder>a</system-reminder>\n3+1\n"
        "<system-reminder>\n```\n</system-reminder>",
        "3+1",
        wrapper("claude-code"),
    ),
    Case(
        "inline-code-is-no-fence",
        "```a``` <system-reminder>x</system-reminder>\n```b```",
        "```a``` \n```b```",
        wrapper("claude-code"),
    ),
]

CLIENTS = [
    Case(
        "claude-code",
        f"<system-reminder>\nAs you answer, use this context:\n# rules\n{NOISE}\n</system-reminder> 3+1 "
        "<system-reminder>\nYour todo list is empty.\n</system-reminder>",
        "3+1",
        wrapper("claude-code"),
    ),
    Case(
        "claude-code-ide",
        "<ide_opened_file>The user opened a.py.</ide_opened_file>\n<ide_selection>def f():</ide_selection>\n3+1",
        "3+1",
        wrapper("claude-code"),
    ),
    Case(
        "claude-code-shell",
        "<local-command-caveat>Ignore.</local-command-caveat>\n<bash-input>ls</bash-input>\n<bash-stdout>a</bash-stdout>"
        "<bash-stderr></bash-stderr>\n<local-command-stdout>ok</local-command-stdout> 3+1",
        "3+1",
        wrapper("claude-code"),
    ),
    Case(
        "claude-code-command",
        "<command-message>sum is running…</command-message>\n<command-name>/sum</command-name>\n"
        "<command-args>3 1</command-args> Add these numbers: 3 1",
        "Add these numbers: 3 1",
        wrapper("claude-code"),
    ),
    Case(
        "claude-code-command-alone",
        "<command-message>sum is running…</command-message>\n<command-name>/sum</command-name>\n"
        "<command-args>3 1</command-args>",
        "/sum\n3 1",
        wrapper("claude-code"),
    ),
    Case(
        "opencode",
        "<system-reminder>\nThe user sent the following message:\n3+1\n\n"
        "Please address this message and continue with your tasks.\n</system-reminder>",
        "3+1",
        wrapper("opencode"),
    ),
    Case(
        "codex",
        "<user_instructions>\n\nUse tabs.\n\n</user_instructions> <environment_context>\n  <cwd>/a</cwd>\n"
        "  <shell>zsh</shell>\n</environment_context> 3+1",
        "3+1",
        wrapper("codex"),
    ),
    Case(
        "codex-agents-md",
        "# AGENTS.md instructions for /a\n\n<INSTRUCTIONS>\nUse tabs.\n</INSTRUCTIONS>\n3+1",
        "3+1",
        wrapper("codex"),
    ),
    Case(
        "codex-ide",
        "# Context from my IDE setup:\n\n## Active file: a.rs\n\n## My request for Codex:\n3+1",
        "3+1",
        wrapper("codex"),
    ),
    Case(
        "openclaw",
        'Conversation info (untrusted metadata):\n```json\n{\n  "message_id": "1",\n  "sender": "ann"\n}\n```\n\n'
        'Sender (untrusted metadata):\n```json\n{\n  "label": "ann"\n}\n```\n\n[Wed 2026-03-11 23:51 PDT] 3+1',
        "3+1",
        wrapper("openclaw"),
    ),
    Case(
        "openclaw-marked",
        'Conversation info: ⟦openclaw:ctx⟧\n```json\n{"a": "``` b"}\n```\n\n3+1\n[message_id: 7b8b]',
        "3+1",
        wrapper("openclaw"),
    ),
    Case(
        "openclaw-runtime",
        "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>\nprivate\n<<<END_OPENCLAW_INTERNAL_CONTEXT>>>\n3+1",
        "3+1",
        wrapper("openclaw"),
    ),
    Case(
        "cline",
        "<task>\n3+1\n</task> <environment_details>\n# Visible Files\na.ts\n</environment_details>",
        "3+1",
        wrapper("cline"),
    ),
    Case(
        "cline-progress",
        "<task>\n3+1\n</task> \n# task_progress RECOMMENDED\n\n1. Include a todo list.\n"
        " <environment_details>\nmode\n</environment_details>",
        "3+1",
        wrapper("cline"),
    ),
    Case(
        "cline-resumed",
        "[TASK RESUMPTION] This task was interrupted.\n\nNew instructions for task continuation:\n"
        "<user_message>\n3+1\n</user_message> <environment_details>\nmode\n</environment_details>",
        "3+1",
        wrapper("cline"),
    ),
    Case(
        "cline-input",
        "<mode_notice>The user switched from plan mode to act mode.</mode_notice>\n"
        '<user_input mode="act">3+1</user_input>\n<file_content path="a.ts">\nlet a\n</file_content>',
        "3+1",
        wrapper("cline"),
    ),
    Case(
        "roo-code",
        '<user_message>\n3+1\n</user_message>\n\n<command name="sum">\nDescription: adds\n</command> '
        "<environment_details>\n<model>x</model>\nREMINDERS\n</environment_details>",
        "3+1",
        wrapper("cline"),
    ),
    Case(
        "cursor",
        "<additional_data>\nBelow is some information.\n<attached_files>\n<file_contents>\n```path=a.py, lines=1-2\n"
        "x = '<user_query>no</user_query>'\n```\n</file_contents>\n</attached_files>\n</additional_data>\n\n"
        "<user_query>\n3+1\n</user_query>",
        "3+1",
        wrapper("cursor", "shared"),
    ),
    Case(
        "cursor-agent",
        "<timestamp>Monday</timestamp>\n<open_and_recently_viewed_files>\n- a.py\n</open_and_recently_viewed_files>"
        "<user_query>\n3+1\n</user_query>",
        "3+1",
        wrapper("cursor", "shared"),
    ),
    Case(
        "copilot",
        '<attachments>\n<attachment id="file" filePath="/a.ts">\nline 1\n</attachment>\n\n</attachments>\n'
        "<context>\nThe current date is March 1, 2026.\n</context>\n<editorContext>\nThe user's current file is a.ts.\n"
        "</editorContext>\n<reminderInstructions>\n\n</reminderInstructions>\n<userRequest>\n3+1\n</userRequest>\n",
        "3+1",
        wrapper("copilot"),
    ),
    Case(
        "copilot-edit",
        "<reminder>\nWhen using the edit tool, do not repeat code.\n</reminder>\n<prompt>\n3+1\n</prompt>",
        "3+1",
        wrapper("copilot"),
    ),
    Case(
        "copilot-cli",
        "3+1\n<reminder>\nIMPORTANT: this context may or may not be relevant.\n</reminder>\n"
        '<attachments>\n<attachment id="a" />\n</attachments>\n<userRequest>\n3+1\n</userRequest>',
        "3+1",
        wrapper("copilot"),
    ),
    Case(
        "continue",
        '<context name="a.ts">\nlet a = "<context>"\n</context>\n</context>\n\n'
        '<context name="b.ts">\nlet b\n</context>\n\n3+1',
        "3+1",
        wrapper("continue"),
    ),
    Case(
        "open-webui",
        "### Task:\nRespond to the user query using the provided context, with citations.\n\n### Output:\nAnswer.\n\n"
        '<context>\n<source id="1">Proof of <user_query>no</user_query></source>\n</context>\n\n3+1',
        "3+1",
        wrapper("open-webui"),
    ),
    Case(
        "open-webui-query-tag",
        "### Task:\nRespond to the user query using the provided context.\n\n<context>\nProof.\n</context>\n\n"
        "<user_query>\n3+1\n</user_query>\n",
        "3+1",
        wrapper("open-webui", "shared"),
    ),
    Case(
        "open-webui-query-line",
        "Use the following context as your learned knowledge, inside <context></context> XML tags.\n<context>\n"
        "    Query: what?\n</context>\n\nWhen answer to user:\n- Say so.\n\n"
        "Given the context information, answer the query.\nQuery: 3+1",
        "3+1",
        wrapper("open-webui"),
    ),
    Case(
        "open-webui-files",
        '<attached_files>\n<file type="image" url="a"/>\n</attached_files>\n\n3+1',
        "3+1",
        wrapper("shared"),
    ),
    Case(
        "aider",
        "3+1\n\n# *SEARCH/REPLACE block* Rules:\n\nEvery *SEARCH/REPLACE block* must use this format:\n1. The path.\n\n"
        "# File editing rules:\n\nReturn edits similar to unified diffs",
        "3+1",
        wrapper("aider"),
    ),
    Case(
        "openhands",
        "<REPOSITORY_INFO>\nCloned to /a.\n</REPOSITORY_INFO>\n"
        "<RUNTIME_INFORMATION>\nDate.\n</RUNTIME_INFORMATION>\n3+1\n\n"
        "<EXTRA_INFO>\nA keyword matched.\n</EXTRA_INFO>",
        "3+1",
        wrapper("openhands"),
    ),
    Case(
        "openhands-example",
        "Here's a running example.\n\n--------------------- START OF EXAMPLE ---------------------\n\nUSER: list\n\n"
        "--------------------- NEW TASK DESCRIPTION ---------------------\n3+1\n"
        "--------------------- END OF NEW TASK DESCRIPTION ---------------------\n\nFollow the format!",
        "3+1",
        wrapper("openhands"),
    ),
    Case(
        "zed",
        "3+1 <context>\nThe following items were attached by the user. They are up-to-date.\n\n <files>\n"
        "```a.rs\n<context>x</context>\n```</files>\n </context>",
        "3+1",
        wrapper("zed"),
    ),
    Case(
        "gemini-cli",
        "<session_context>\nThis is the CLI.\n</session_context> Here is the user's editor context as a JSON object. "
        'This is for your information only.\n```json\n{"activeFile": {}}\n```\n\n3+1 \n'
        "--- Content from referenced files --- \nContent from @a.py:\n x = 1",
        "3+1",
        wrapper("gemini-cli"),
    ),
    Case(
        "goose", "<info-msg>\nIt is currently noon\nWorking directory: /a\n\n</info-msg>\n3+1", "3+1", wrapper("goose")
    ),
    Case(
        "tools",
        "# Tools\n\nYou may call one or more functions to assist with the user query.\n\nSignatures are within "
        '<tools></tools> XML tags:\n<tools>\n{"type": "function", "function": {"name": "add"}}\n</tools>\n\n'
        "Return a json object within <tool_call></tool_call> XML tags:\n<tool_call>\n"
        '{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>\n\n3+1',
        "3+1",
        wrapper("tools"),
    ),
    Case(
        "tools-inline",
        'Here are the tools: <tools> [{"name": "add"}] </tools> 3+1',
        "Here are the tools:  3+1",
        wrapper("tools"),
    ),
]


@pytest.mark.parametrize("case", [*PUBLISHED, *MIXED, *CLIENTS], ids=lambda case: case.id)
def test_words(case: Case) -> None:
    assert extract(case.user, case.system) == OwnWords(case.words.strip(), case.notes)


@pytest.mark.parametrize("case", CLIENTS, ids=lambda case: case.id)
def test_client_under_a_system_role(case: Case) -> None:
    assert extract(case.user, SYSTEM) == (case.words, case.notes)


@pytest.mark.parametrize("case", CLIENTS, ids=lambda case: case.id)
def test_client_behind_an_embedded_system_prompt(case: Case) -> None:
    assert extract(f"{SYSTEM}\n\n{case.user}", SYSTEM) == (case.words, ("extract.embedded_system", *case.notes))


def test_every_client_of_the_data_has_a_message() -> None:
    noted = {note.removeprefix("extract.wrapper.") for case in CLIENTS for note in case.notes}
    assert noted == {row["client"] for row in ROWS}


def test_rows_are_well_formed() -> None:
    assert len({row["id"] for row in ROWS}) == len(ROWS)
    for row in ROWS:
        assert row.keys() - {"where"} == {"id", "client", "open", "close", "keep"}, row["id"]
        assert row["id"].startswith(f"{row['client']}.")
        assert row["keep"] in {"inside", "outside"}
        assert row.get("where", "anywhere") in {"anywhere", "start", "alone"}
        assert re.fullmatch(r"[a-z-]+", row["client"]), "a note is a stable dotted code"
        assert all(opens(row))
        assert row["close"] not in opens(row)
        # "" ends every message: with "inside" it would turn a lone marker into the words.
        assert row["close"] or row["keep"] == "outside"


def markers(rows: list[Row]) -> list[Any]:
    return [pytest.param(row, opening, id=f"{row['id']}-{i}") for row in rows for i, opening in enumerate(opens(row))]


# The others end with the message: always closed, never wholly inside a fence.
CLOSED = [row for row in ROWS if row["close"]]


@pytest.mark.parametrize(("row", "opening"), markers(ROWS))
def test_marker(row: Row, opening: str) -> None:
    if row["keep"] == "inside":
        message = block(row, opening, "3+1")
    elif row["close"]:
        message = block(row, opening, "\nprove the theorem") + "\n3+1"
    else:
        message = f"3+1\n\n{opening} prove the theorem"
    assert extract(message) == ("3+1", wrapper(row["client"]))


@pytest.mark.parametrize(("row", "opening"), markers(CLOSED))
def test_unclosed_marker_stays(row: Row, opening: str) -> None:
    message = f"what is {opening} for?"
    assert extract(message) == (message, ())


@pytest.mark.parametrize(("row", "opening"), markers(CLOSED))
def test_fenced_marker_stays(row: Row, opening: str) -> None:
    message = f"what is this?\n`````\n{block(row, opening, 'prove')}\n`````"
    assert extract(message) == (message, ())


class Hostile(NamedTuple):
    id: str
    user: str
    system: str = ""
    seconds: float = 0.1


def fill(unit: str) -> str:
    return unit * (1_000_000 // len(unit))


HOSTILE = [
    Hostile("opens", fill("<system-reminder>")),
    Hostile("opens-without-end", fill("<system-reminder ")),
    Hostile("closes", fill("</system-reminder>")),
    Hostile("blocks", fill("<system-reminder></system-reminder>"), seconds=0.5),
    Hostile("nested", "<user_query>" * 30_000 + "</user_query>" * 30_000, seconds=0.5),
    Hostile("angles", fill("<")),
    Hostile("blank-lines", "a" + fill("\n\n") + "b"),
    Hostile("paragraphs", fill("a\n\n")),
    Hostile("packed-opens", fill("[Chat messages since")),
    Hostile("packed-currents", PACKED + fill(CURRENT) + "3+1"),
    Hostile("packed-almost", PACKED + fill(CURRENT[:-1])),
    Hostile("fences", "<system-reminder>x</system-reminder>" + fill("```\n------------\n")),
    Hostile("backticks", "<system-reminder>x</system-reminder>" + fill("`")),
    Hostile(
        "every-open", fill("".join(opening for row in ROWS for opening in opens(row) if row.get("where") != "start"))
    ),
    Hostile("system-almost-contained", fill("ab"), "ab" * 250_000 + "c"),
    Hostile("system-almost-contained-late", ("ab" * 249_999 + "ac") * 2, "ab" * 250_000),
    Hostile("system-almost-contained-first", fill("a"), "b" + "a" * 499_999),
    Hostile("system-contained", "x" * 400_000 + "ab" * 250_000, "ab" * 250_000),
]


@pytest.mark.parametrize("case", HOSTILE, ids=lambda case: case.id)
def test_hostile_megabyte_is_quick(case: Hostile) -> None:
    extract("")  # the data file is read once, not on this clock
    assert is_within(case.seconds, lambda: extract(case.user, case.system))


PIECES = st.sampled_from(
    [opening for row in ROWS for opening in opens(row)]
    + [row["close"] for row in ROWS]
    + [PACKED, CURRENT, "\n\n", "\n```\n", "~~~\n", " ", "3+1", "word " * 30, "<div>", "</div>", "İ", "\u2028"]
)
MESSAGES = st.lists(PIECES | st.text(max_size=8), max_size=12).map("".join) | st.text()
# No sign that any marker begins with; short enough to be nobody's system prompt.
PLAIN = st.text(st.characters(exclude_characters="<>[]#`~-:", exclude_categories=["Cs"]), min_size=1, max_size=200).map(
    lambda text: f"{text} ?".strip()
)


@given(MESSAGES, MESSAGES | st.just(""))
def test_any_text(user: str, system: str) -> None:
    got = extract(user, system)
    assert got == extract(user, system)
    assert got.words == got.words.strip()
    assert len(got.words) <= len(user)
    assert (not got.words) == (not user.strip() or "extract.packed_empty" in got.notes)
    assert len(set(got.notes)) == len(got.notes)
    assert got.notes or got.words == user.strip()
    # Nothing is invented or reordered: apart from white space the words are a subsequence of the message.
    rest = iter(user)
    assert all(sign in rest for sign in got.words if not sign.isspace())


@given(MESSAGES, MESSAGES | st.just(""))
def test_words_nobody_wrapped_come_back(user: str, system: str) -> None:
    got = extract(user, system)
    if not got.notes:
        assert extract(got.words, system) == got


@given(PLAIN)
def test_plain_words_stay(text: str) -> None:
    assert extract(text) == (text, ())


@given(PLAIN, st.sampled_from([row for row in CLOSED if row["keep"] == "outside"]), PLAIN, st.booleans())
def test_a_block_changes_nothing(text: str, row: Row, noise: str, before: bool) -> None:
    noisy = block(row, opens(row)[0], noise)
    if not before and row.get("where") == "start":
        before = True
    got = extract(f"{noisy}\n{text}" if before else f"{text}\n{noisy}")
    assert got == (text, wrapper(row["client"]))
    assert extract(got.words) == (text, ())


@given(PLAIN, st.sampled_from(["", SYSTEM]))
def test_history_never_leaks(text: str, system: str) -> None:
    assert extract(f"{PACKED}\n{CURRENT}\n{text}", system) == (text, ("extract.packed",))


@pytest.mark.parametrize(
    ("text", "all_of_it"),
    [
        ("<system-reminder>a</system-reminder>", True),
        ("<system-reminder>a</system-reminder>\n\n<system-reminder>b</system-reminder>\n", True),
        ("<system-reminder>a</system-reminder> and?", False),
        ("why? <system-reminder>a</system-reminder>", False),
        ("<system-reminder>a", False),
        ("```\n<system-reminder>a</system-reminder>\n```", False),
        ("<command-name>/compact</command-name>", False),
        ("", False),
        ("words", False),
    ],
)
def test_whether_a_client_wrote_all_of_it(text: str, all_of_it: bool) -> None:
    assert is_wrapped(text) is all_of_it
