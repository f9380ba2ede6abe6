"""Runs `proctor` and its servers as a user would: real processes, real sockets, real files."""

import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.e2e.preloaded import Forked, preloaded
from tests.pace import slowly

TOKEN = "token-of-the-tests"
COMMAND = [sys.executable, "-m", "eval_client.cli.main"]


VARYING = {"run", "seconds", "model_seconds", "world_seconds", "tries", "ended_at", "attempts", "model", "interrupted"}
INTERRUPTED = "ended with the client: "
"""What the note on attempts that a kill has ended says."""

begun: list[subprocess.Popen[str]] = []


def environment(**extra: str) -> dict[str, str]:
    """The environment for a subprocess: ours without colours, with a wide terminal."""
    return {**os.environ, "NO_COLOR": "1", "COLUMNS": "200", "PROCTOR_TOKEN": TOKEN, **extra}


def proctor(
    *arguments: str, cwd: Path, answers: str | None = None, within: Sequence[str] = (), **extra: str
) -> subprocess.CompletedProcess[str]:
    """`proctor ...` to its end, with `answers` on its standard input; `within` is a command that starts it."""
    pipe, full = subprocess.PIPE, environment(**extra)
    stdin = None if answers is None else pipe
    process = _begin(arguments, cwd, full, within=within, stdin=stdin, stdout=pipe, stderr=pipe)
    with process:
        try:
            output, errors = process.communicate(answers, timeout=slowly(300))
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def exits(
    code: int, *arguments: str, cwd: Path, answers: str | None = None, within: Sequence[str] = (), **extra: str
) -> subprocess.CompletedProcess[str]:
    """`proctor ...` to its end, whose exit code must be this one."""
    ended = proctor(*arguments, cwd=cwd, answers=answers, within=within, **extra)
    assert ended.returncode == code, ended.stdout + ended.stderr
    return ended


def begin(*arguments: str, cwd: Path, **extra: str) -> subprocess.Popen[str]:
    """`proctor ...` under way; to be waited for."""
    pipe = subprocess.PIPE
    begun.append(_begin(arguments, cwd, environment(**extra), stdout=pipe, stderr=pipe))
    return begun[-1]


def completed(process: subprocess.Popen[str], code: int = 0, within_s: float = 300.0) -> str:
    """What a process has said as errors by its end, which comes in time and with this exit code."""
    output, errors = process.communicate(timeout=slowly(within_s))
    assert process.returncode == code, output + errors
    return errors


def _begin(
    arguments: Sequence[str],
    cwd: Path,
    full: Mapping[str, str],
    *,
    within: Sequence[str] = (),
    **streams: Any,
) -> subprocess.Popen[str]:
    forks = preloaded(arguments[0], full) if arguments and not within else None
    if forks is not None:
        return Forked(forks, arguments, cwd, env=full, **streams)
    return subprocess.Popen([*within, *COMMAND, *arguments], cwd=cwd, env=full, text=True, **streams)


@contextlib.contextmanager
def ended() -> Iterator[None]:
    """What was begun within and still runs, since a test failed, is killed; its pipes are closed."""
    before = len(begun)
    yield
    for process in begun[before:]:
        with process:
            process.kill()
    del begun[before:]


@dataclass(frozen=True)
class Server:
    """A server of ours under way."""

    url: str
    process: subprocess.Popen[str]

    def metric(self, name: str) -> float:
        """The sum over all series of a Prometheus metric, or of those whose labels the pattern goes on to give."""
        request = urllib.request.Request(self.url.removesuffix("/v1") + "/metrics")
        request.add_header("Authorization", f"Bearer {TOKEN}")
        with urllib.request.urlopen(request, timeout=slowly(10)) as reply:
            text = reply.read().decode()
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if re.match(rf"{name}(?![a-z_])", line))

    def kill(self) -> None:
        """kill -9"""
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def server(*arguments: str, cwd: Path, within: Sequence[str] = (), **extra: str) -> Iterator[Server]:
    """`proctor worker|controller|agents ...`, ended afterwards by closing its standard input."""
    pipe, log, full = subprocess.PIPE, (cwd / f"{arguments[0]}.log").open("a"), environment(**extra)
    given = [*arguments, "--stop-with-stdin"]
    process = _begin(given, cwd, full, within=within, stdin=pipe, stdout=pipe, stderr=log)
    with log, process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            url = process.stdout.readline().strip()
            assert url.startswith("http"), (cwd / f"{arguments[0]}.log").read_text()
            yield Server(url, process)
        finally:
            process.stdin.close()
            try:
                process.wait(timeout=slowly(40))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                raise


def scored(folder: Path, run: str) -> int:
    """How many trials of a run in a folder's `runs` have a score; 0 where it is not there yet."""
    return int(_read(folder, run, "SELECT count(score) FROM proctor_trial") or 0)


def told_scored(folder: Path, **extra: str) -> int:
    """How many trials have a score as `proctor status` says of run `r`; 0 where it is not there yet."""
    said = proctor("status", "r", "--json", cwd=folder, **extra)
    return sum(int(pair["scored"]) for pair in json.loads(said.stdout)["pairs"]) if said.returncode == 0 else 0


def lasting(value: object, *more: str) -> object:
    """JSON that tells of a run without what differs between equal runs, and without `more` fields."""
    if isinstance(value, dict):
        return {key: lasting(each, *more) for key, each in value.items() if key not in {*VARYING, *more}}
    if isinstance(value, list):
        return [lasting(each, *more) for each in value if not (isinstance(each, str) and INTERRUPTED in each)]
    return value


def troubles(folder: Path, run: str = "r") -> str:
    """What a run in a folder's `runs` says that holds it up; empty where nothing does."""
    view = _read(folder, run, "SELECT view FROM proctor_live")
    return "\n".join(json.loads(view)["troubles"]) if view else ""


def _read(folder: Path, run: str, query: str) -> Any:
    with contextlib.suppress(sqlite3.OperationalError):
        uri = f"file:{quote(str(folder / 'runs' / run / 'run.sqlite'))}?mode=ro"
        with contextlib.closing(sqlite3.connect(uri, uri=True)) as store:
            return next(store.execute(query), [None])[0]
    return None


def rows(run: str, cwd: Path, **extra: str) -> list[dict[str, object]]:
    """A run's trials, without what differs between equal runs (times, attempts)."""
    exits(0, "export", run, "--to", "rows.jsonl", cwd=cwd, **extra)
    varying = {"run", "seconds", "attempts", "ended_at"}
    lines = (cwd / "rows.jsonl").read_text().splitlines()
    return [{key: value for key, value in json.loads(line).items() if key not in varying} for line in lines]
