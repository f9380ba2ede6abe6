"""An endpoint that is down is named with its cause, and its trials wait for it instead of being left unscored."""

import os
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.proctor import Server, begin, ended, exits, rows, troubles
from tests.e2e.scripted import GOOD, ScriptedEndpoint, listening, reply, write_plan
from tests.pace import slowly, until

PATIENCE_S = slowly(1)
LIMITS = f"limits: {{patience_s: {PATIENCE_S}}}"
GONE = reply(503, b'{"error": {"message": "no backend"}}', f"Retry-After: {PATIENCE_S}")
DOWN = "endpoint scripted is down, 20 trials wait for it; it has answered nothing for "
FAILED = reply(500, b'{"error": {"message": "oops"}}', f"Retry-After: {PATIENCE_S}")


def until_so(client: subprocess.Popen[str], is_so: Callable[[], bool]) -> None:
    """Until a condition holds while the client is there."""
    until(lambda: client.poll() is not None or is_so(), 90)
    assert client.poll() is None, client.communicate()[1]


def lines_until(client: subprocess.Popen[str], pattern: str) -> str:
    """What a client says up to a line that matches."""
    assert client.stderr is not None
    read = ""
    late = threading.Timer(slowly(90), client.kill)
    late.start()
    for line in client.stderr:
        read += line
        if re.search(pattern, line):
            late.cancel()
            return read
    raise AssertionError(read)


def test_trials_wait_for_an_endpoint_behind_a_gateway_and_go_on_when_it_is_back(
    tmp_path: Path, worker: Server, endpoint: ScriptedEndpoint
) -> None:
    endpoint.always = GONE
    write_plan(tmp_path, worker, endpoint.url, LIMITS, max_tries=3)
    with ended():
        client = begin("run", "plan.yaml", "--name", "r", cwd=tmp_path)
        until_so(client, lambda: DOWN in troubles(tmp_path))
        until_so(client, lambda: len(endpoint.requests) >= 2 + 2)  # those of two trials, and the first that ask again
        assert "no backend" in troubles(tmp_path)
        said = lines_until(client, re.escape(DOWN) + ".*no backend")
        endpoint.always = False
        _, rest = client.communicate(timeout=slowly(90))
    assert client.returncode == 0, said + rest
    assert [row["reason"] for row in rows("r", tmp_path)] == ["completed"] * 20


def test_no_trial_is_lost_to_an_endpoint_that_goes_down_in_the_middle_of_a_run(
    tmp_path: Path, worker: Server, endpoint: ScriptedEndpoint
) -> None:
    endpoint.bad = [*[reply(200, GOOD)] * 5, *[GONE] * 4]  # a call, two probes of it and one for a single token
    write_plan(tmp_path, worker, endpoint.url, LIMITS, max_tries=1)
    settings = "limits.patience_s=600", "agents.model.concurrency=1"
    exits(0, "run", "plan.yaml", "--name", "r", *(f"--set={each}" for each in settings), cwd=tmp_path)
    assert [row["reason"] for row in rows("r", tmp_path)] == ["completed"] * 20
    assert len(endpoint.requests) == 20 + 4


def test_trials_wait_for_an_endpoint_that_nobody_listens_at(tmp_path: Path, worker: Server) -> None:
    scripted = ScriptedEndpoint()
    with socket.socket() as bound, ended():
        bound.bind(("127.0.0.1", 0))  # nobody else listens there either
        scripted.bound = bound
        write_plan(tmp_path, worker, f"http://127.0.0.1:{bound.getsockname()[1]}/v1", LIMITS, max_tries=7)
        client = begin("run", "plan.yaml", "--name", "r", cwd=tmp_path)
        said = lines_until(client, r"endpoint scripted .*has answered nothing for \d+ s: .*onnect")
        with listening(scripted):
            _, errors = client.communicate(timeout=slowly(90))
    assert client.returncode in (0, 1), said + errors
    assert sum(row["reason"] == "completed" for row in rows("r", tmp_path)) >= 20 - 2  # the first may be lost earlier


@pytest.mark.parametrize("limit", [(), ("--fail-on-error", "50%")])
def test_a_run_that_waits_can_be_stopped_by_ctrl_c_or_by_fail_on_error_and_its_trials_stay_pending(
    limit: tuple[str, ...], tmp_path: Path, worker: Server, endpoint: ScriptedEndpoint
) -> None:
    endpoint.always = GONE
    write_plan(tmp_path, worker, endpoint.url, LIMITS, max_tries=3)
    with ended():
        client = begin("run", "plan.yaml", "--name", "r", *limit, cwd=tmp_path)
        if not limit:
            until_so(client, lambda: "endpoint scripted is down" in troubles(tmp_path))
            os.kill(client.pid, signal.SIGINT)
        _, said = client.communicate(timeout=slowly(90))
    assert client.returncode == (1 if limit else 130), said
    if limit:
        assert "stopped: --fail-on-error 50%: 0 of 20 trials are unscored; 20 wait for an endpoint that is down" in said
    assert [row["reason"] for row in rows("r", tmp_path)] == [None] * 20
    endpoint.always = False
    exits(0, "resume", "r", cwd=tmp_path)


def test_an_endpoint_that_answers_but_never_these_requests_holds_no_run_up(
    tmp_path: Path, worker: Server, endpoint: ScriptedEndpoint
) -> None:
    endpoint.rule = lambda request: None if request.get("max_tokens") == 1 else FAILED
    write_plan(tmp_path, worker, endpoint.url, LIMITS, max_tries=3)
    exits(2, "run", "plan.yaml", "--name", "r", "--limit", "2", cwd=tmp_path)
    assert [row["reason"] for row in rows("r", tmp_path)] == ["agent_error"] * 2
