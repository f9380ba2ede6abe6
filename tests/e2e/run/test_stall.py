"""A run that makes no progress says why within ten seconds, in plain lines as on the screen."""

import contextlib
import json
import os
import pty
import re
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, Queue

from eval_client.core.stall import CALM_S
from tests.e2e.proctor import COMMAND, Server, environment, exits, server
from tests.e2e.scripted import ScriptedEndpoint
from tests.pace import slowly, until

WITHIN_S = slowly(10)
LEASE_S = slowly(2)
STYLES = re.compile("\x1b\\[[0-9;?]*[A-Za-z]")
STATUS = ("status", "r", "--json")
GIVE_UP_S = CALM_S + slowly(60)
PLAN = """\
controller: {controller}
limits: {{patience_s: {patience_s}}}
agents: [{{name: m, endpoint: '{endpoint}'}}]
tasks: [{{name: db-own}}]
"""
TASKS = "tasks: [{name: db-own, environment: db, parameters: {engine: sqlite}}]\n"


@contextlib.contextmanager
def running(
    folder: Path, controller: str, endpoint: str, name: str = "r", *, terminal: bool = False
) -> Iterator[Callable[[str], int]]:
    """A run; gives a function that waits until a pattern is said, and gives the number that its group has found."""
    (folder / "plan.yaml").write_text(PLAN.format(controller=controller, endpoint=endpoint, patience_s=GIVE_UP_S))
    ours, theirs = pty.openpty() if terminal else os.pipe()
    client = subprocess.Popen(
        [*COMMAND, "run", "plan.yaml", "--name", name],
        cwd=folder,
        env=environment(OPENAI_API_KEY="sk-canary-canary", TERM="xterm"),
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    texts: Queue[str] = Queue()

    def read() -> None:
        with contextlib.suppress(OSError):  # a terminal's end
            while chunk := os.read(ours, 1 << 16):
                texts.put(chunk.decode(errors="replace"))

    reading = threading.Thread(target=read, daemon=True)
    reading.start()

    def said(pattern: str) -> int:
        seen, give_up = "", time.monotonic() + GIVE_UP_S
        while True:
            try:
                seen += STYLES.sub("", texts.get(timeout=max(0.0, give_up - time.monotonic())))
            except Empty:
                raise AssertionError(f"not said: {pattern}\n{seen[-2000:]}") from None
            if found := re.search(pattern, seen):
                assert "canary" not in seen
                return int(found[1]) if found.groups() else 0

    with client:
        try:
            yield said
        finally:
            client.kill()
            reading.join()
            os.close(ours)


def test_a_run_whose_task_has_no_worker_says_so(tmp_path: Path, endpoint: ScriptedEndpoint) -> None:
    (tmp_path / "tasks.yaml").write_text(TASKS)
    endpoint.always = True
    with (
        server("controller", "--settle=0", f"--lease={LEASE_S}", cwd=tmp_path) as controller,
        server("worker", "--tasks=tasks.yaml", f"--controller={controller.url}", cwd=tmp_path) as worker,
        running(tmp_path, controller.url, endpoint.url) as said,
    ):
        said(r"0/\d+ trials")
        worker.kill()
        endpoint.always = False
        assert said(r"no progress for (\d+) s: task db-own waits: no live worker holds it") <= WITHIN_S + LEASE_S


def test_a_run_that_cannot_begin_says_what_it_waits_for(tmp_path: Path, endpoint: ScriptedEndpoint) -> None:
    with (
        server("controller", f"--settle={GIVE_UP_S}", cwd=tmp_path) as controller,
        running(tmp_path, controller.url, endpoint.url) as said,
    ):
        assert (
            said(r"not started after (\d+) s: .*the samples of db-own.*waiting for the workers to report") <= WITHIN_S
        )


def test_a_silent_model_a_locked_store_and_slots_that_others_hold_are_named(
    tmp_path: Path, worker: Server, endpoint: ScriptedEndpoint
) -> None:
    endpoint.always = True
    with running(tmp_path, worker.url, endpoint.url) as said:
        silent = r"no progress for (\d+) s: model of agent m: \d+ requests without an answer for \d+ s"
        assert CALM_S <= said(silent) <= CALM_S + WITHIN_S
        until(lambda: "model of agent m" in str(json.loads(exits(0, *STATUS, cwd=tmp_path).stdout)["troubles"]))
        assert json.loads(exits(0, *STATUS, cwd=tmp_path).stdout)["state"] == "running"
        with running(tmp_path, worker.url, endpoint.url, name="other", terminal=True) as other_said:
            other_said(r"no progress for \d+ s: task server, a session of db-own: \d+ requests")
        with contextlib.closing(sqlite3.connect(tmp_path / "runs" / "r" / "run.sqlite")) as locking:
            locking.execute("BEGIN IMMEDIATE")
            endpoint.hang_up()
            assert said("the store can't be written to, waiting: database is locked") == 0
