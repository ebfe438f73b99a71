"""What only a real process shows: bytes on the command line, closed pipes, signals, encodings, what is imported."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import turnout
from child import running
from toml_router import LOCAL
from turnout.config.load import shipped
from turnout.store import open_store

Process = Callable[..., subprocess.CompletedProcess[bytes]]


class Case(NamedTuple):
    id: str
    argv: tuple[str | bytes, ...]
    out: bytes
    stdin: bytes = b""
    env: tuple[tuple[str, str], ...] = ()


CASES = [
    Case("version", ("--version",), b"turnout "),
    Case("bytes-in-argv", ("explain", b"define \xff\xfe"), "define \ufffd\ufffd".encode()),
    Case(
        "ascii-output",
        ("explain", "Write a função", "-p", LOCAL),
        b"`-> fallback",
        env=(("PYTHONIOENCODING", "ascii"),),
    ),
    Case("latin-1-output", ("route", "é", "-p", "study-seed"), b"score", env=(("PYTHONIOENCODING", "latin-1"),)),
    Case("piped-in", ("route", "-", "--json"), b'"route":"SIMPLE"', stdin=b"hello\n"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_process(case: Case, process: Process) -> None:
    ran = process(*case.argv, stdin=case.stdin, **dict(case.env))
    assert ran.returncode == 0, ran
    assert case.out in ran.stdout
    assert ran.stderr == b""
    assert b"\x1b" not in ran.stdout


def test_errors_can_be_printed_in_ascii(process: Process) -> None:
    ran = process("route", "x", "-p", "é\U0001f682", PYTHONIOENCODING="ascii")
    assert ran.returncode == 2
    assert b"no such profile" in ran.stderr


def test_a_closed_pipe_is_quiet(tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    file.write_text('{"text":"hello"}\n' * 2000)
    command = [sys.executable, "-m", "turnout.cli", "batch", str(file), "--workers", "1"]
    with running(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as ran:
        assert ran.stdout is not None
        assert ran.stderr is not None
        ran.stdout.readline()
        ran.stdout.close()
        assert ran.stderr.read() == b""
        assert ran.wait(timeout=30) == 141


PRINTING = [
    ("--help",),
    ("--version",),
    ("profiles",),
    ("doctor",),
    ("route", "hello"),
    ("explain", "hello"),
    ("diff", "tiers", "tiers-seed", "in.jsonl"),
    ("check", "tiers", "--cases"),
    ("schema",),
    ("batch", "in.jsonl"),
    ("log",),
    ("log", "--follow"),
    ("show",),
    ("stats",),
    ("feedback", "last", "right"),
]


@pytest.mark.alike(3)
@pytest.mark.parametrize("argv", PRINTING, ids=" ".join)
def test_nobody_reads_the_output(argv: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"text":"hello"}\n')
    with open_store() as store:
        store.record(turnout.load("tiers", config="").route_sync("hello"))
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-W", "error", "-m", "turnout.cli", *argv]
    try:
        ran = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False, timeout=60, cwd=tmp_path)
    finally:
        os.close(writing)
    assert ran.returncode == 141, ran.stderr
    assert b"Error" not in ran.stderr


def _with_stdout_closed(*argv: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    command = ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-W", "error", "-m", "turnout.cli", *argv]
    return subprocess.run(command, stderr=subprocess.PIPE, check=False, timeout=60, cwd=cwd)


@pytest.mark.skipif(os.name != "posix", reason="needs a shell that closes stdout")
@pytest.mark.parametrize(
    "argv", [("route", "hi"), ("route", "hi", "--json"), ("doctor",), ("--version",)], ids=" ".join
)
def test_a_closed_stdout_is_said(argv: tuple[str, ...], tmp_path: Path) -> None:
    ran = _with_stdout_closed(*argv, cwd=tmp_path)
    assert ran.returncode == 2
    assert ran.stderr == b"turnout: output: stdout is closed\n"


@pytest.mark.skipif(os.name != "posix", reason="needs a shell that closes stdout")
def test_a_closed_stdout_does_not_keep_a_batch_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"text":"hello"}\n')
    ran = _with_stdout_closed("batch", "in.jsonl", "-o", "out.jsonl", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "out.jsonl").read_bytes().startswith(b'{"row":1,')


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_said() -> None:
    command = [sys.executable, "-m", "turnout.cli", "route", "x"]
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False, timeout=30)
    assert ran.returncode == 2
    assert ran.stderr == b"turnout: output: No space left on device\n"


def test_an_interrupted_batch_is_quiet_and_leaves_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    command = [sys.executable, "-m", "turnout.cli", "batch", "-", "-o", str(out), "--workers", "2"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with running(command, start_new_session=True, **pipes) as ran:
        assert ran.stdin is not None
        assert ran.stderr is not None
        ran.stdin.write(b'{"text":"hello"}\n' * 5000)
        ran.stdin.flush()
        deadline = time.monotonic() + 20
        while not list(tmp_path.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.01)
        # As Ctrl-C does: every process of the group is told, those that are only just starting too.
        time.sleep(0.1)
        os.killpg(ran.pid, signal.SIGINT)
        assert ran.wait(timeout=30) == 130
        assert ran.stderr.read() == b""
    assert list(tmp_path.iterdir()) == []


def test_importing_turnout_brings_no_terminal_with_it() -> None:
    code = "import sys, turnout, turnout.cli; print([name for name in ('rich', 'cyclopts') if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=30)
    assert ran.stdout.strip() == b"[]"


def test_help_imports_no_command() -> None:
    code = (
        "import sys; from turnout.cli import main; main(['--help']); "
        "found = [m for m in sys.modules if m.startswith('turnout.cli.')]; print(sorted(found), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=30)
    assert b"turnout.cli.app" in ran.stderr
    assert not any(f"turnout.cli.commands.{name}'".encode() in ran.stderr for name in ("route", "batch", "check"))
    assert b"turnout.cli.draw.picture" not in ran.stderr


def test_demo_draws_every_profile() -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-m", "turnout.cli.commands.demo"], capture_output=True, check=False, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    for name in shipped():
        assert f"\n{name} · ".encode() in b"\n" + ran.stdout
