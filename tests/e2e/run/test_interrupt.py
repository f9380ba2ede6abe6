"""Ctrl-C once drains, twice stops at once; both leave a run that resumes. One client at a time. Replays."""

import contextlib
import json
import os
import pty
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.e2e.forks.forker import STARTED
from tests.e2e.gates import ENDLESS, gate
from tests.e2e.proctor import COMMAND, Server, begin, completed, environment, exits, proctor, rows, scored, server
from tests.e2e.scripted import ScriptedEndpoint
from tests.pace import until
from tests.support import working_in

TASK = "{name: db-own, environment: db, parameters: {engine: sqlite}}"
AGENTS = f"""\
tasks: [{TASK}]
agents:
  - {{name: reference, kind: reference, latency_s: 0.5}}
"""
OWN_SERVERS = """\
name: own
agents: [{{name: naive, builtin: naive, concurrency: 4}}, {{name: late, endpoint: "{url}"}}]
tasks:
  - {{name: db-own, environment: db, parameters: {{engine: sqlite}}}}
  - {{name: one, environment: db, parameters: {{engine: sqlite}}, samples: {{limit: 1}}}}
assignments: [{{agents: [naive], tasks: [db-own]}}, {{agents: [late], tasks: [one]}}]
epochs: 8
local: {{workers: {workers}}}
"""
CALLS = "proctor_agent_requests_total"
IN_FLIGHT = 4
KEY = {"OPENAI_API_KEY": "token-of-the-tests"}


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "agents.yaml").write_text(AGENTS)
    with server("agents", "--config", "agents.yaml", cwd=tmp_path) as running:
        agent = f'{{name: reference, builtin: reference, endpoint: "{running.url}", concurrency: {IN_FLIGHT}}}'
        (tmp_path / "plan.yaml").write_text(f"name: stop\nagents: [{agent}]\ntasks: [{TASK}]\n")
        yield running


def wait_for_calls(agents: Server, calls: int) -> None:
    until(lambda: agents.metric(CALLS) >= calls)


def interrupt_twice(client: "subprocess.Popen[str]") -> None:
    """The second time once the first was heard: two signals that wait together are one."""
    assert client.stderr is not None
    client.send_signal(signal.SIGINT)
    assert any("draining" in line for line in client.stderr)
    client.send_signal(signal.SIGINT)


def test_ctrl_c_once_plays_what_is_under_way_to_its_end(tmp_path: Path, agents: Server) -> None:
    client = begin("run", "plan.yaml", "--name", "r", *ENDLESS, cwd=tmp_path, **KEY)
    wait_for_calls(agents, 6)
    client.send_signal(signal.SIGINT)
    errors = completed(client, 130, within_s=60)
    assert "resume with: proctor resume runs/r" in errors
    pair = json.loads(proctor("status", "r", "--json", cwd=tmp_path).stdout)["pairs"][0]
    assert 4 <= pair["scored"] < pair["planned"]
    assert pair["unscored"] == 0
    turns = sum(int(str(row["turns"])) for row in rows("r", tmp_path) if row["score"] is not None)
    assert agents.metric(CALLS) == turns


def test_a_run_that_is_drained_while_its_last_trial_is_played_is_finished(tmp_path: Path, agents: Server) -> None:
    with gate(tmp_path / "plan.yaml", agents.url) as way:
        way.shut(spared=1)
        client = begin("run", "plan.yaml", "--name", "r", "--limit", "1", cwd=tmp_path, **KEY)
        assert client.stderr is not None
        until(lambda: way.calls == 2)
        client.send_signal(signal.SIGINT)
        assert any("draining" in line for line in client.stderr)
        way.open()
        assert "stopped" not in completed(client, 0, within_s=60)
    assert json.loads(proctor("status", "r", "--json", cwd=tmp_path).stdout)["state"] == "finished"


def test_ctrl_c_twice_stops_at_once_and_resume_pays_only_for_what_was_in_flight(tmp_path: Path, agents: Server) -> None:
    with gate(tmp_path / "plan.yaml", agents.url) as way:
        way.shut(spared=6)
        client = begin("run", "plan.yaml", "--name", "r", cwd=tmp_path, **KEY)
        until(lambda: way.calls == 6 + IN_FLIGHT)
        interrupt_twice(client)
        errors = completed(client, 130, within_s=60)
        assert "proctor resume" in errors
        way.open()
        resumed = proctor("resume", "r", cwd=tmp_path, **KEY)
    assert resumed.returncode == 0, resumed.stderr
    turns = sum(int(str(row["turns"])) for row in rows("r", tmp_path))
    assert turns <= agents.metric(CALLS) <= turns + IN_FLIGHT


def test_a_second_client_is_refused_and_status_works_beside_a_run(tmp_path: Path, agents: Server) -> None:
    options = (*ENDLESS, "--set", "agents.reference.concurrency=1")
    client = begin("run", "plan.yaml", "--name", "r", *options, cwd=tmp_path, **KEY)
    wait_for_calls(agents, 2)
    second = exits(2, "resume", "r", cwd=tmp_path, **KEY)
    assert "another client" in second.stderr
    assert json.loads(proctor("status", "r", "--json", cwd=tmp_path).stdout)["state"] == "running"
    assert proctor("report", "r", cwd=tmp_path).returncode == 0
    interrupt_twice(client)
    completed(client, 130, within_s=60)
    assert json.loads(proctor("status", "r", "--json", cwd=tmp_path).stdout)["state"] == "interrupted"


def test_a_recorded_run_replays_to_the_same_table(tmp_path: Path, agents: Server) -> None:
    assert proctor("run", "plan.yaml", "--name", "r", "-q", cwd=tmp_path, **KEY).returncode == 0
    assert proctor("export", "r", "--what", "turns", "--to", "turns.jsonl", cwd=tmp_path).returncode == 0
    with server("agents", "--agent=reference=recorded:turns.jsonl", cwd=tmp_path) as recorded:
        options = ("--set", f"agents.reference.endpoint={recorded.url}")
        exits(0, "run", "plan.yaml", "--name", "again", *options, cwd=tmp_path, **KEY)
    assert rows("again", tmp_path) == rows("r", tmp_path)


def test_the_live_screen_shows_every_pair_on_a_terminal(tmp_path: Path, agents: Server) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        command = [*COMMAND, "run", "plan.yaml", "--name", "r", "--limit", "12"]  # of which eight wait at first
        os.execvpe(command[0], command, {**environment(**KEY), "TERM": "xterm", "COLUMNS": "100", "LINES": "40"})
    seen = b""
    try:
        while chunk := os.read(terminal, 4096):
            seen += chunk
    except OSError:
        pass  # the terminal's other end is closed
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, seen.decode()
    text = seen.decode()
    assert f"at the limit: agent reference {IN_FLIGHT}/{IN_FLIGHT}" in text
    assert "waits for agent: db-own" in text
    assert "12/12" in text
    assert "\x1b[31m" not in text  # NO_COLOR is set


@pytest.mark.parametrize("after_s", [0.2, 1.0])
def test_ctrl_c_while_the_servers_start_ends_the_run_with_130(tmp_path: Path, agents: Server, after_s: float) -> None:
    client = begin("run", "plan.yaml", "--name", "r", *ENDLESS, cwd=tmp_path, **KEY, **STARTED)
    wait_for_children(client.pid, after_s)
    client.send_signal(signal.SIGINT)
    errors = completed(client, 130, within_s=60)
    assert "Traceback" not in errors
    assert not children(client.pid)


def wait_for_children(pid: int, longer_s: float) -> None:
    """Until the client has begun to start its servers, and so long after that."""
    until(lambda: bool(children(pid)), 20)
    time.sleep(longer_s)  # no event: whatever the start has come to then


def children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) == pid:
                found.append(int(entry.name))
    return found


def until_scored(client: "subprocess.Popen[str]", folder: Path, trials: int) -> None:
    """Until the run `r` has so many scores, and is still under way."""
    until(lambda: client.poll() is not None or scored(folder, "r") >= trials)
    assert client.poll() is None, client.communicate()


def writing_to(folder: Path, log: str) -> list[psutil.Process]:
    """The processes that work in a folder and have such a log as their standard error."""
    found = working_in(folder)
    return [process for process in found if Path(f"/proc/{process.pid}/fd/2").readlink().match(log)]


@pytest.mark.parametrize(
    ("workers", "servers"), [(1, ("agents", "worker")), (2, ("agents", "controller", "worker"))], ids=str
)
def test_a_killed_server_of_the_run_is_started_again(
    tmp_path: Path, endpoint: ScriptedEndpoint, workers: int, servers: tuple[str, ...]
) -> None:
    """The trials of `late` get no answer before the last kill, so that the run is not over by then."""
    endpoint.always = True
    (tmp_path / "plan.yaml").write_text(OWN_SERVERS.format(url=endpoint.url, workers=workers))
    client = begin("run", "plan.yaml", "--name", "r", cwd=tmp_path, **KEY)
    for kills, server_of_the_run in enumerate(servers, 1):
        until_scored(client, tmp_path, 20 * kills)
        writing_to(tmp_path, f"{server_of_the_run}*.log")[0].kill()
    endpoint.hang_up()
    completed(client, within_s=200)


def test_options_given_once_are_kept_by_resume(tmp_path: Path, agents: Server) -> None:
    exits(
        0, "run", "plan.yaml", "--name", "r", "--set", "epochs=2", "--set", "limits.trial.turns=1", cwd=tmp_path, **KEY
    )
    exits(0, "resume", "r", cwd=tmp_path, **KEY)
