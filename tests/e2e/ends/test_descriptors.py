"""Processes that may open too few files and connections: what fails for that is no failure of anything else."""

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.proctor import Server, exits, proctor, rows, scored, server
from tests.pace import slowly

TASK = "{name: db-own, environment: db, capacity: 300, parameters: {engine: sqlite}}"
AGENTS = f"""\
token_env: PROCTOR_TOKEN
tasks: [{TASK}]
agents: [{{name: naive, kind: naive, latency_s: 0.5}}]
"""
PLAN = """\
name: many
epochs: 15
controller: {controller}
endpoints: [{{name: slow, base_url: "{agents}", max_tries: 1}}]
agents: [{{name: naive, builtin: naive, endpoint: slow, concurrency: 300}}]
tasks: [{task}]
limits: {{attempts: 1, patience_s: {patience_s:g}}}
"""
TRIALS = 300
KEY = {"OPENAI_API_KEY": "token-of-the-tests"}


def limited(most: int, held: int = 0) -> list[str]:
    """A command that starts another with a limit of descriptors, so many of which are open already."""
    opened = f'for n in $(seq 20 {19 + held}); do eval "exec $n</dev/null"; done; ' if held else ""
    return ["bash", "-c", f'{opened}ulimit -n {most}; exec "$@"', "limited"]


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "agents.yaml").write_text(AGENTS)
    with server("agents", "--config", "agents.yaml", cwd=tmp_path) as running:
        yield running


def planned(folder: Path, agents: Server, worker: Server | None, patience_s: float) -> None:
    fields = {"agents": agents.url, "patience_s": patience_s}
    if worker is None:
        (folder / "plan.yaml").write_text(PLAN.format(controller="local", task=TASK, **fields))
    else:
        (folder / "plan.yaml").write_text(PLAN.format(controller=worker.url, task="{name: db-own}", **fields))


@pytest.mark.parametrize("held", [0, 60])
@pytest.mark.parametrize("limits", ["client", "worker", "both"])
def test_too_few_descriptors_cost_no_try_no_attempt_and_no_score(
    tmp_path: Path, agents: Server, limits: str, held: int
) -> None:
    """With 300 trials in a plan of one attempt and one try; with those that are held, fewer are left than expected."""
    (tmp_path / "tasks.yaml").write_text(f"tasks: [{TASK}]\n")
    with server("worker", "--tasks", "tasks.yaml", cwd=tmp_path) as worker:
        if limits == "worker":
            few = 128 - held
            resource.prlimit(worker.process.pid, resource.RLIMIT_NOFILE, (few, few))
        planned(tmp_path, agents, None if limits == "both" else worker, slowly(60))
        within = limited(160, held) if limits != "worker" else []
        done = proctor("run", "plan.yaml", "--name", "r", "-q", cwd=tmp_path, within=within, **KEY)
    assert done.returncode == 0, done.stderr
    assert scored(tmp_path, "r") == TRIALS
    assert all(row["cause"] is None for row in rows("r", tmp_path))
    if limits != "worker":
        assert "trials are played at once" in done.stderr


def test_a_client_that_can_open_nothing_ends_and_says_what_is_open(tmp_path: Path, agents: Server) -> None:
    (tmp_path / "tasks.yaml").write_text(f"tasks: [{TASK}]\n")
    with server("worker", "--tasks", "tasks.yaml", cwd=tmp_path) as worker:
        planned(tmp_path, agents, worker, 2)
        done = proctor("run", "plan.yaml", "--name", "r", "-q", cwd=tmp_path, within=limited(256, 236), **KEY)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert "no file or connection could be opened for 2 s" in done.stderr
    assert "files" in done.stderr


def test_children_of_a_run_have_the_limit_that_it_was_given(tmp_path: Path, agents: Server) -> None:
    planned(tmp_path, agents, None, 60)
    hook = tmp_path / "hook.sh"
    hook.write_text("sleep 0.2; ulimit -Sn > limit.txt\n")
    with (tmp_path / "plan.yaml").open("a") as plan:
        plan.write(f"on_end: [sh, {hook}]\n")
    within = ["bash", "-c", 'ulimit -Sn 300; exec "$@"', "limited"]
    done = exits(0, "run", "plan.yaml", "--name", "r", "-q", "--limit", "2", cwd=tmp_path, within=within, **KEY)
    assert "trials are played at once" not in done.stderr
    assert (tmp_path / "limit.txt").read_text().strip() == "300"
