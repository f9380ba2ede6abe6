"""Crowds of connections that show no token keep nobody out of a server."""

import contextlib
import resource
import socket
import urllib.request
from pathlib import Path

import pytest

from tests.e2e.proctor import TOKEN, server
from tests.pace import slowly

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
