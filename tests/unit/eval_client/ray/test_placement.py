"""Which worker hosts are asked for, over which nodes."""

import pytest

from eval_client.ray.placement import WorkerHost, described, resource_of, unplaced, worker_hosts
from proctor.config.task import TaskDefinition

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
