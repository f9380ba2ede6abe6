"""Crowds of connections keep nobody out of a server, and many trials at once need no higher `ulimit -n`."""

import contextlib
import resource
import socket
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.e2e.proctor import TOKEN, environment, scored, server
from tests.pace import slowly
from tests.support import finished

TASKS = "tasks: [{name: db-own, environment: db, parameters: {engine: sqlite}}]\n"
ARGUMENTS = {
    "worker": ("worker", "--tasks", "tasks.yaml"),
    "controller": ("controller", "--settle=0"),
    "agents": ("agents", "--tasks", "tasks.yaml"),
}


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_1100_silent_sockets_at_a_server_with_1024_descriptors(tmp_path: Path, kind: str) -> None:
    (tmp_path / "tasks.yaml").write_text(TASKS)
    with server(*ARGUMENTS[kind], cwd=tmp_path) as running, contextlib.ExitStack() as stack:
        resource.prlimit(running.process.pid, resource.RLIMIT_NOFILE, (1024, 1024))
        base = running.url.removesuffix("/v1")
        port = int(base.rpartition(":")[2])
        for _ in range(1100):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=slowly(20)))
        for path in ("/healthz", "/metrics"):
            request = urllib.request.Request(base + path, headers={"Authorization": f"Bearer {TOKEN}"})
            with urllib.request.urlopen(request, timeout=slowly(20)) as reply:
                assert reply.status == 200


PLAN = """\
name: many
epochs: 10
agents: [{name: naive, builtin: naive, concurrency: 200}]
tasks: [{name: db-own, environment: db, capacity: 200, parameters: {engine: sqlite}}]
"""


@pytest.mark.parametrize(("soft", "hard"), [(128, 4096), (1024, 1024)])
def test_a_run_raises_its_soft_limit_of_descriptors_to_what_its_trials_need(
    tmp_path: Path, soft: int, hard: int
) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    limit = f"ulimit -Sn {soft} && ulimit -Hn {hard} && exec"
    program = Path(sys.executable).with_name("proctor")
    done = finished(
        ["bash", "-c", f'{limit} "$0" run plan.yaml --name many -q', program],
        cwd=tmp_path,
        env=environment(),
        timeout=slowly(120),
    )
    assert done.returncode == 0, done.stderr
    assert scored(tmp_path, "many") == 200
    assert "descriptors" not in done.stderr
