"""What a run says before it starts, and what it does where this machine lacks the engine of a task."""

from pathlib import Path

from tests.e2e.proctor import exits, proctor
from tests.e2e.scripted import ScriptedEndpoint

NO_DOCKER = {"DOCKER_HOST": "unix:///nowhere/docker.sock"}
MODEL = "{name: model, endpoint: mine}"
NAIVE = "{name: naive, builtin: naive}"


def written(folder: Path, *agents: str, url: str = "http://127.0.0.1:9/v1", tasks: str) -> Path:
    """A plan with these agents and tasks, and the endpoint `mine`."""
    plan = folder / "plan.yaml"
    plan.write_text(
        f"endpoints: [{{name: mine, base_url: '{url}'}}]\nagents: [{', '.join(agents)}]\ntasks: [{tasks}]\n"
        "limits: {trial: {turns: 2}}\n"
    )
    return plan


OS = "{name: os, environment: os, fallback: true}"
DB = "{name: db, environment: db, parameters: {engine: sqlite}}"


def test_each_problem_is_one_line_with_its_fix_before_anything_else(tmp_path: Path) -> None:
    written(tmp_path, MODEL, tasks="{name: os, environment: os}")
    told = exits(0, "run", "plan.yaml", "--dry-run", cwd=tmp_path, **NO_DOCKER)
    lines = [line for line in told.stderr.splitlines() if line.startswith("problem: ")]
    assert len(lines) == 2
    assert all("; fix: " in line for line in lines)
    assert "task os" in lines[0]
    assert "unix:///nowhere/docker.sock" in lines[0]
    assert "nothing listens at http://127.0.0.1:9 yet" in lines[1]
    assert "Docker" not in told.stdout


def test_a_plan_without_problems_is_silent(tmp_path: Path, endpoint: ScriptedEndpoint) -> None:
    written(tmp_path, MODEL, url=endpoint.url, tasks=DB)
    told = proctor("run", "plan.yaml", "--dry-run", cwd=tmp_path)
    assert "problem:" not in told.stderr, told.stderr
    assert endpoint.requests == []


def test_a_task_with_fallback_is_played_by_another_engine(tmp_path: Path) -> None:
    written(tmp_path, NAIVE, tasks=OS)
    ended = exits(0, "run", "plan.yaml", "--limit", "1", "--name", "r", cwd=tmp_path, **NO_DOCKER)
    assert "fallback: task os: " in ended.stderr
    assert "engine namespace is used" in ended.stderr
    assert "; fix: " in ended.stderr
    assert "problem:" not in ended.stderr
    exits(0, "resume", "r", cwd=tmp_path, **NO_DOCKER)


def test_a_task_that_models_must_not_play_by_another_engine_is_left_out(
    tmp_path: Path, endpoint: ScriptedEndpoint
) -> None:
    written(tmp_path, MODEL, NAIVE, url=endpoint.url, tasks=f"{DB}, {OS}")
    ended = exits(0, "run", "plan.yaml", "--limit", "1", "--name", "r", cwd=tmp_path, **NO_DOCKER)
    assert "left out: task os: " in ended.stderr
    assert "too thin an isolation for model" in ended.stderr
    assert "task os is left out: Docker: no engine answers" in ended.stdout
    exits(0, "resume", "r", cwd=tmp_path)


def test_a_plan_of_which_nothing_is_left_is_refused_with_the_fix(tmp_path: Path) -> None:
    written(tmp_path, MODEL, tasks=OS)
    refused = exits(2, "run", "plan.yaml", cwd=tmp_path, **NO_DOCKER)
    assert "this machine can play no task of the plan" in refused.stderr
    assert "; fix: " in refused.stderr
    assert not (tmp_path / "runs").exists()
