"""Which worker hosts are asked for, over which nodes, and which variables go along: those the plan names alone."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from eval_client.plan.entries import Endpoint
from eval_client.plan.plan import Plan
from proctor.config.task import TaskDefinition, load_tasks, task_file_text
from proctor.own_files.source import world_source
from proctor_ray.placement import (
    WorkerHost,
    client_variables,
    described,
    resource_of,
    shipped,
    task_variables,
    unplaced,
    variable_values,
    worker_hosts,
)

DB, OS, CARDS = (TaskDefinition(name=f"{name}-1", environment=name) for name in ("db", "os", "card_game"))


def asked(hosts: tuple[WorkerHost, ...]) -> list[tuple[str, list[str], dict[str, float]]]:
    return [(host.name, [task.name for task in host.tasks], dict(host.asks)) for host in hosts]


def test_without_declared_resources_every_node_with_a_core_gets_one_worker_of_all_tasks() -> None:
    nodes = [{"CPU": 2.0}, {"CPU": 0.0, "memory": 1.0}, {"CPU": 1.0}, {}]
    held = ["db-1", "os-1"]
    assert asked(worker_hosts([DB, OS], nodes, None)) == [
        ("worker-1", held, {"CPU": 1.0}),
        ("worker-2", held, {"CPU": 1.0}),
    ]


def test_tasks_of_a_declared_environment_go_only_where_it_is_declared() -> None:
    nodes = [{"CPU": 2.0}, {"CPU": 2.0, "proctor_os": 1.0}, {"CPU": 0.0, "proctor_os": 1.0}]
    assert asked(worker_hosts([DB, OS, CARDS], nodes, None)) == [
        ("worker-1", ["db-1", "card_game-1"], {"CPU": 1.0}),
        ("worker-2", ["db-1", "card_game-1"], {"CPU": 1.0}),
        ("worker-3", ["os-1"], {"CPU": 1.0, "proctor_os": 1.0}),
    ]


def test_a_number_of_workers_counts_for_each_kind() -> None:
    nodes = [{"CPU": 8.0, "proctor_os": 2.0}]
    kinds = [tuple(host.asks) for host in worker_hosts([DB, OS], nodes, 2)]
    assert kinds == [("CPU",), ("CPU",), ("CPU", "proctor_os"), ("CPU", "proctor_os")]


def test_a_resource_that_no_node_has_any_of_is_not_declared() -> None:
    assert asked(worker_hosts([OS], [{"CPU": 1.0, "proctor_os": 0.0}], None))[0][2] == {"CPU": 1.0}


def test_a_cluster_without_room_is_asked_all_the_same() -> None:
    assert len(worker_hosts([DB], [], None)) == 1


@pytest.mark.parametrize(("environment", "resource"), [("os", "proctor_os"), ("toy-Letters", "proctor_toy_letters")])
def test_resources_are_named_after_environments(environment: str, resource: str) -> None:
    assert resource_of(environment) == resource


def test_tasks_are_unplaced_until_one_of_their_workers_is_up() -> None:
    hosts = worker_hosts([DB, OS], [{"CPU": 2.0, "proctor_os": 1.0}], 2)
    assert unplaced(hosts, set()) == ["db-1", "os-1"]
    assert unplaced(hosts, {"worker-2"}) == ["os-1"]
    assert unplaced(hosts, {"worker-2", "worker-3"}) == []


def test_what_is_asked_for_is_told_in_words() -> None:
    assert described({"CPU": 1.0, "proctor_os": 1.0}) == "1 CPU, 1 proctor_os"


PLAN = Plan.model_validate(
    {
        "endpoints": [{"name": "house", "base_url": "http://127.0.0.1:9/v1", "api_key_env": "HOUSE_KEY"}],
        "agents": [{"name": "a", "endpoint": "house"}, {"name": "b", "builtin": "naive"}],
        "tasks": [{"name": "cards", "environment": "card_game"}],
    }
)
JUDGED = TaskDefinition(
    name="s", environment="simulbench", parameters={"judge": {"model": "m", "api_key_env": "JUDGE_KEY"}}
)
SERVED = TaskDefinition(name="d", environment="db", parameters={"servers": [{"password_env": "DB_PASSWORD"}]})


def test_clients_get_the_keys_of_the_agents_endpoints() -> None:
    assert client_variables(PLAN) == {"HOUSE_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"}
    claude = Endpoint(name="claude", dialect="messages")
    found = client_variables(PLAN.model_copy(update={"endpoints": (claude,)}))
    assert found >= {"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY"}


def test_workers_get_what_parameters_name_at_any_depth() -> None:
    assert task_variables([SERVED]) == {"DB_PASSWORD"}
    fields = {"judge": {"model": "m", "dialect": "messages"}}
    thinks = TaskDefinition(name="t", environment="simulbench", parameters=fields)
    assert task_variables([thinks]) == {"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"}
    assert task_variables([JUDGED, SERVED]) == {"DB_PASSWORD", "JUDGE_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"}


def test_what_headers_query_and_proxy_name_goes_along() -> None:
    fields = {"headers": {"x-team": "of ${TEAM_KEY}"}, "query": {"code": "${CODE}"}, "proxy": "${PROXY}"}
    entry = Endpoint.model_validate({"name": "house", **fields})
    assert client_variables(PLAN.model_copy(update={"endpoints": (entry,)})) >= {"TEAM_KEY", "CODE", "PROXY"}
    judged = TaskDefinition(name="s", environment="simulbench", parameters={"judge": {"model": "m", **fields}})
    assert task_variables([judged]) >= {"TEAM_KEY", "CODE", "PROXY"}


def test_tasks_without_a_model_need_no_key() -> None:
    assert task_variables(PLAN.definitions()) == frozenset()


def test_values_are_those_set_here_also_by_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text("from-a-file\n")
    monkeypatch.setenv("HOUSE_KEY_FILE", str(tmp_path / "key"))
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.delenv("DB_PASSWORD", raising=False)
    found = variable_values(["DB_PASSWORD", "HOUSE_KEY", "OPENAI_BASE_URL"])
    assert found == {"HOUSE_KEY": "from-a-file", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}


def test_a_world_in_a_file_goes_along_with_what_it_is_identified_by(tmp_path: Path) -> None:
    home, there = tmp_path / "home", tmp_path / "node"
    (home / "quiz").mkdir(parents=True)
    there.mkdir()
    (home / "quiz" / "trivia.py").write_text(TRIVIA)
    (home / "quiz" / "trivia_rows.py").write_text("def read(path):\n    return path.read_text().splitlines()\n")
    (home / "quiz" / "questions.txt").write_text("a\nb\n")
    (home / "tasks.yaml").write_text("tasks: [{environment: ./quiz/trivia.py}, {name: db, environment: db}]\n")
    defined = load_tasks(home / "tasks.yaml")
    tasks, files = shipped(defined, "worker-1")
    assert tasks[1] == defined[1]
    assert sorted(files) == [
        f"worker-1-files/trivia/{name}" for name in ("questions.txt", "trivia.py", "trivia_rows.py")
    ]
    digest = world_source(defined[0].opened()).digest
    shutil.rmtree(home)
    for place, content in files.items():
        (there / place).parent.mkdir(parents=True, exist_ok=True)
        (there / place).write_bytes(content)
    (there / "worker-1.yaml").write_text(task_file_text(tasks))
    told = subprocess.run([sys.executable, "-c", LOOK, there / "worker-1.yaml"], stdout=subprocess.PIPE, check=True)
    assert told.stdout.decode().split() == ["a", "b", digest]


LOOK = """
import sys
from pathlib import Path
from proctor.config.task import load_tasks
from proctor.own_files.source import world_source
world = load_tasks(Path(sys.argv[1]))[0].opened()
print(*world.samples(), world_source(world).digest)
"""
TRIVIA = """
from pathlib import Path

from proctor import Environment
from trivia_rows import read


class Trivia(Environment):
    data: Path = Path("questions.txt")

    def samples(self):
        return read(self.data)

    async def play(self, sample, agent, seed=0): ...
"""
