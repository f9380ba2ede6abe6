"""What a user can mend: one clear message, exit code 2, nothing begun."""

from pathlib import Path

import pytest

from tests.e2e.proctor import Server, exits, proctor
from tests.e2e.scripted import ScriptedEndpoint, reply
from tests.support import ROOT
from tests.toy_environment import write_distribution

LOCAL = """\
agents: [{name: reference, builtin: reference}]
tasks: [{name: own, environment: db, parameters: {engine: sqlite}}]
"""


def refused(folder: Path, plan: str, *says: str, **extra: str) -> None:
    (folder / "plan.yaml").write_text(plan)
    ended = exits(2, "run", "plan.yaml", "--name", "r", cwd=folder, **extra)
    assert "Traceback" not in ended.stderr
    for text in says:
        assert text in ended.stderr
    assert ended.stderr.count("Error:") == 1


GONE = "controller: http://127.0.0.1:9\nlimits: {patience_s: 1}\nagents: [{name: m}]\ntasks: [{name: own}]\n"
MISTAKES: list[tuple[str, tuple[str, ...]]] = [
    (LOCAL.replace("db,", "db, data: broken.jsonl,"), ("broken.jsonl", "own")),
    (GONE, ("controller http://127.0.0.1:9",)),
]
OF_A_WORKER: dict[str, tuple[str, tuple[str, ...], dict[str, str]]] = {
    "an unknown task": ("{name: m, endpoint: 'http://127.0.0.1:9/v1'}|os-dve", ("os-dve", "db-own"), {}),
    "a wrong token": ("{name: m}|db-own", ("token",), {"PROCTOR_TOKEN": "wrong"}),
    "an agent without data": ("{name: r, builtin: naive}|db-own", ("agents.r", "environment", "endpoint"), {}),
}
"""Agent and task, what is said of them, and variables."""


@pytest.mark.parametrize(("plan", "says"), MISTAKES, ids=[says[0] for _, says in MISTAKES])
def test_a_mistake_in_a_plan_or_its_data(tmp_path: Path, plan: str, says: tuple[str, ...]) -> None:
    (tmp_path / "broken.jsonl").write_text('{"description": "half a rec\n')
    refused(tmp_path, plan, *says)


def test_a_data_file_that_a_worker_does_not_find(tmp_path: Path) -> None:
    (tmp_path / "tasks.yaml").write_text(LOCAL.replace("db,", "db, data: gone.jsonl,"))
    ended = exits(2, "worker", "--tasks", "tasks.yaml", "--stop-with-stdin", cwd=tmp_path, answers="")
    assert ended.stderr == "Error: tasks.own.data: there is no file gone.jsonl; correct the path\n"


@pytest.mark.parametrize("mistake", OF_A_WORKER)
def test_a_mistake_about_a_worker(tmp_path: Path, worker: Server, mistake: str) -> None:
    parts, says, variables = OF_A_WORKER[mistake]
    agent, task = parts.split("|")
    plan = f"controller: {worker.url}\nagents: [{agent}]\ntasks: [{{name: {task}}}]\n"
    refused(tmp_path, plan, *says, **variables)


def test_a_wrong_key(tmp_path: Path, worker: Server, endpoint: ScriptedEndpoint) -> None:
    endpoint.always = reply(401, b'{"error": {"message": "Incorrect API key", "code": "invalid_api_key"}}')
    plan = f"controller: {worker.url}\nagents: [{{name: m, endpoint: '{endpoint.url}'}}]\ntasks: [{{name: db-own}}]\n"
    (tmp_path / "plan.yaml").write_text(plan)
    ended = exits(2, "run", "plan.yaml", "--name", "r", cwd=tmp_path, OPENAI_API_KEY="sk-wrong-123456")
    assert "agent m" in ended.stderr
    assert "401" in ended.stderr
    assert "OPENAI_API_KEY" in ended.stderr
    assert "sk-wrong" not in ended.stderr + ended.stdout
    assert len(endpoint.requests) <= 16
    endpoint.always = False
    exits(0, "resume", "r", cwd=tmp_path, OPENAI_API_KEY="sk-right-123456")


def test_a_built_in_agent_whose_policy_the_environment_does_not_have(tmp_path: Path) -> None:
    (tmp_path / "installed").mkdir()
    write_distribution(tmp_path / "installed")
    path = f"{tmp_path / 'installed'}:{ROOT}"
    plan = "agents: [{name: weak, builtin: naive}]\ntasks: [{name: toy, environment: toy-solved}]\n"
    refused(tmp_path, plan, "agents.weak.builtin", "toy-solved", "no naive policy", "`assignments`", PYTHONPATH=path)
    assert not (tmp_path / "runs").exists()


def test_a_changed_plan_and_changed_data_are_refused_with_what_changed(tmp_path: Path) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text((ROOT / "environments" / "database" / "samples" / "select.jsonl").read_text())
    plan = LOCAL.replace("environment: db,", "environment: db, data: data.jsonl,")
    (tmp_path / "plan.yaml").write_text(plan)
    exits(0, "run", "plan.yaml", "--name", "r", "--limit", "1", cwd=tmp_path)
    (tmp_path / "plan.yaml").write_text(plan + "epochs: 2\n")
    assert "epochs: 1 -> 2" in exits(2, "resume", "r", cwd=tmp_path).stderr
    (tmp_path / "plan.yaml").write_text(plan)
    data.write_text(data.read_text().replace("?", "!", 1))
    for command in (("resume", "r"), ("extend", "r", "--epochs", "2")):
        assert "task own: its data, prompts or settings changed" in exits(2, *command, cwd=tmp_path).stderr


@pytest.mark.parametrize("command", ["status", "report", "resume", "export"])
def test_an_unknown_run(command: str, tmp_path: Path) -> None:
    ended = exits(2, command, "nothing", cwd=tmp_path)
    assert "no run 'nothing'" in ended.stderr


@pytest.mark.parametrize(
    "variables",
    [
        {"OPENAI_API_KEY": "sk-h\u00e9llo-canary"},
        {"OPENAI_BASE_URL": "foo-canary"},
        {"PROCTOR_TOKEN": "t\u00f6ken-canary"},
    ],
)
def test_a_key_a_token_or_a_base_url_that_cannot_be_one(tmp_path: Path, variables: dict[str, str]) -> None:
    plan = "agents: [{name: m}]\ntasks: [{name: own, environment: db, parameters: {engine: sqlite}}]\n"
    refused(tmp_path, plan, *variables, **variables)
    assert not (tmp_path / "runs" / "r" / "logs").exists()


def test_a_store_that_cannot_be_reached(tmp_path: Path) -> None:
    store = "postgresql+psycopg://me:canary@127.0.0.1:9/x"
    refused(tmp_path, LOCAL, "the store can't be used", PROCTOR_STORE=store)
    for command in ("ls", "status"):
        ended = exits(2, command, cwd=tmp_path, PROCTOR_STORE=store)
        assert "Traceback" not in ended.stderr
        assert "canary" not in ended.stderr


def test_a_store_whose_url_stands_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "url").write_text(f"sqlite:///{tmp_path}/all.sqlite\n")
    (tmp_path / "plan.yaml").write_text(LOCAL)
    exits(0, "run", "plan.yaml", "--limit", "1", "-q", cwd=tmp_path, PROCTOR_STORE_FILE="url")
    assert (tmp_path / "all.sqlite").is_file()
    refused(tmp_path, LOCAL, "PROCTOR_STORE_FILE", PROCTOR_STORE_FILE="absent")


def test_ls_shows_runs_beside_a_broken_one(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(LOCAL)
    assert proctor("run", "plan.yaml", "--name", "good", "--limit", "1", cwd=tmp_path).returncode == 0
    (tmp_path / "runs" / "broken").mkdir()
    (tmp_path / "runs" / "broken" / "run.sqlite").write_bytes(b"")
    listed = exits(0, "ls", cwd=tmp_path)
    assert "good: finished" in listed.stdout
    assert "broken: unreadable" in listed.stdout


def test_a_server_shows_no_token_in_its_errors(tmp_path: Path) -> None:
    ended = exits(2, "controller", "--host", "0.0.0.0", cwd=tmp_path, PROCTOR_TOKEN="c\u00e4nary")
    assert "PROCTOR_TOKEN" in ended.stderr
    assert "nary" not in ended.stderr


def test_a_run_of_a_model_among_people_driven_by_rules_is_warned(tmp_path: Path) -> None:
    """Not of a built-in agent, nor with a model as driver."""
    model = "{name: m, endpoint: 'http://127.0.0.1:9/v1'}"
    driver = "driver: {model: d, base_url: 'http://127.0.0.1:9/v1'}"
    warned = {}
    for agent, parameters in ((model, ""), ("{name: r, builtin: reference}", ""), (model, driver)):
        plan = f"agents: [{agent}]\ntasks: [{{name: town, environment: stss, parameters: {{{parameters}}}}}]\n"
        (tmp_path / "plan.yaml").write_text(plan)
        shown = proctor("run", "plan.yaml", "--dry-run", cwd=tmp_path, OPENAI_API_KEY="key-of-the-tests")
        warned[agent, parameters] = "evaluate models with `driver:` a model" in shown.stderr
    assert list(warned.values()) == [True, False, False]


UNUSABLE = ("file/x", "file", "loop/x", "x" * 300)
"""Folders that no command can look into: below a file, a file, in a circle, with too long a name."""
COMMANDS = ("run plan.yaml", "run -m m -e db", "demo", "status r", "resume r")


@pytest.mark.parametrize(
    ("command", "output"),
    [*((command, "/proc/x") for command in COMMANDS), *(("ls", output) for output in UNUSABLE)],
    ids=lambda each: each[:10],
)
def test_a_folder_of_runs_that_can_not_be_used(tmp_path: Path, command: str, output: str) -> None:
    """All commands look into it by the same code; what can be looked into and not made, each finds by itself."""
    (tmp_path / "plan.yaml").write_text(LOCAL)
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    ended = exits(2, *command.split(), "-o", output, cwd=tmp_path, OPENAI_API_KEY="sk-not-asked-123456")
    assert "Traceback" not in ended.stderr
    (told,) = [line for line in ended.stderr.splitlines() if line.startswith("Error: ")]
    assert output[:10] in told
