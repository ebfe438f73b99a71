"""A contender's interpreter: its environment from a lock file, and the process that answers jobs one at a time.

Only one contender works at any moment; the others wait on their standard input.
"""

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
SCRIPTS = HERE / "peers"
# Ignored by git: environments and logs.
WORKSHOP = HERE.parent / ".benchmarks"

# Importing a peer takes seconds; a machine on which it takes this long cannot measure anything.
START_S = 180.0
# A whole job, far above the slowest one: a hang ends the run instead of stalling it.
JOB_S = 600.0


def use_base_install() -> None:
    """Speed is what `pip install turnout` gives: a sentence embedder in the user's home would be found and measured."""
    os.environ["XDG_DATA_HOME"] = str(WORKSHOP / "home")


class PeerTimeout(Exception):
    """The job took longer than its limit; the process was ended and starts anew with the next job."""


class PeerDied(Exception):
    """The process ended by itself; the message holds the end of its log."""


class Answer(NamedTuple):
    ns: list[int]
    cpu_ns: list[int]  # empty for short texts


class Peer:
    def __init__(self, name: str, script: str, python: Path) -> None:
        self.name = name
        self.version = ""
        self._command = [str(python), str(SCRIPTS / script)]
        self._log = WORKSHOP / f"{name}.log"
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        WORKSHOP.mkdir(exist_ok=True)
        # Linear algebra on one thread: the process has one core.
        environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        with self._log.open("w", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=environment
            )
        self.version = str(json.loads(self._read(self._process, START_S))["version"])

    def time(self, router: str, texts: Sequence[str], *, warm: Sequence[str] = (), limit_s: float = JOB_S) -> Answer:
        """How long each text takes, after the warm ones."""
        answer = self._ask({"router": router, "warm": warm, "texts": texts, "label": False}, limit_s)
        return Answer(answer["ns"], answer["cpu_ns"])

    def label(self, router: str, texts: Sequence[str]) -> list[str]:
        """Where each text goes."""
        labels: list[str] = self._ask({"router": router, "warm": [], "texts": texts, "label": True}, JOB_S)["labels"]
        return labels

    def _ask(self, job: dict[str, Any], limit_s: float) -> dict[str, Any]:
        if self._process is None:
            self.start()
        process = self._process
        assert process is not None
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(job) + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            raise self._died() from None
        answer: dict[str, Any] = json.loads(self._read(process, limit_s))
        return answer

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            # Reaps the process and closes its pipes.
            self._process.communicate()
            self._process = None

    def _read(self, process: "subprocess.Popen[str]", limit_s: float) -> str:
        assert process.stdout is not None
        late = threading.Event()

        def end() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(limit_s, end)
        timer.start()
        line = process.stdout.readline()
        timer.cancel()
        if line:
            return line
        if late.is_set():
            self.close()
            raise PeerTimeout(f"{self.name}: no answer within {limit_s:g} s")
        raise self._died()

    def _died(self) -> PeerDied:
        self.close()
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return PeerDied("\n".join([f"{self.name} ended; the last lines of {self._log}:", *lines[-15:]]))


def environment(name: str, say: Callable[[str], None]) -> Path:
    """The interpreter of a virtual environment that holds exactly what `peers/<name>.txt` locks."""
    lock = SCRIPTS / f"{name}.txt"
    home = WORKSHOP / name
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp = home / ".locked"
    want = f"{hashlib.sha256(lock.read_bytes()).hexdigest()} {sys.version}"
    if not (stamp.exists() and stamp.read_text(encoding="utf-8") == want):
        say(f"{name}: installing {lock.name} into {home} (once)")
        uv = str(Path(sys.executable).with_name("uv"))
        subprocess.run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(home)], check=True)
        install = [uv, "pip", "install", "--quiet", "--python", str(python), "--require-hashes", "-r", str(lock)]
        subprocess.run(install, check=True)
        stamp.write_text(want, encoding="utf-8")
    return python
