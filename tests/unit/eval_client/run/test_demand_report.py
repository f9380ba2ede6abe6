"""What a run could hold, and what a controller remembers of it."""

import pytest
from pydantic import ValidationError

from eval_client.plan.plan import Plan
from eval_client.run.reporters import as_text, wanted
from task_server.metrics import kind_of, waiting_class
from task_server.shares import MAX_CLIENTS, SILENT_S, Shares
from task_server.wire.messages import NOBODY, TasksQuery

ONE, TWO = "1" * 32, "2" * 32


def plan() -> Plan:
    return Plan.model_validate(
        {
            "endpoints": [{"name": "e", "base_url": "http://127.0.0.1:1/v1", "concurrency": 10}],
            "agents": [
                {"name": "a", "endpoint": "e", "model": "m", "concurrency": 4},
                {"name": "b", "endpoint": "e", "model": "m", "concurrency": 50},
            ],
            "tasks": [{"name": "t", "environment": "ltp"}, {"name": "u", "environment": "ltp"}],
        }
    )


def asks(client: str, wants: str, wait_s: float = 0.0) -> TasksQuery:
    return TasksQuery(client=client, wants=wants, wait_s=wait_s)


def test_the_trials_left_are_bounded_by_agents_and_endpoints() -> None:
    left = {("a", "t"): 100, ("b", "t"): 3, ("a", "u"): 100, ("b", "u"): 100}
    assert wanted(plan(), {"e": 10}, left) == {"t": 7, "u": 10}
    assert wanted(plan(), {"e": 2}, left) == {"t": 2, "u": 2}
    assert wanted(plan(), {"e": 10}, {("a", "t"): 0, ("b", "t"): -3, ("a", "u"): 2}) == {"u": 2}


def test_the_largest_demands_are_told_as_far_as_a_query_may_be_long() -> None:
    assert as_text({"t": 1, "u": 12}) == "u:12,t:1"
    many = {f"{'n' * 60}{number}": number + 1 for number in range(500)}
    text = as_text(many)
    assert TasksQuery(wants=text).wanted().items() <= many.items()
    assert len(text) > 8000
    assert text.startswith(f"{'n' * 60}499:500")


def test_demand_adds_up_over_clients_and_a_client_replaces_what_it_said() -> None:
    demand = Shares()
    demand.record(asks(ONE, "t:3,u:1"), NOBODY, 0.0)
    demand.record(asks(TWO, "t:2"), NOBODY, 0.0)
    assert demand.total(1.0) == {"t": 5, "u": 1}
    demand.record(asks(ONE, "t:1"), NOBODY, 2.0)
    assert demand.total(2.0) == {"t": 3}
    demand.record(asks(ONE, ""), NOBODY, 3.0)
    assert demand.total(3.0) == {"t": 2}


def test_a_silent_client_is_forgotten_but_not_while_it_waits_for_an_answer() -> None:
    demand = Shares()
    demand.record(asks(ONE, "t:3", wait_s=30.0), NOBODY, 0.0)
    assert demand.total(30.0 + SILENT_S - 0.1) == {"t": 3}
    assert demand.total(30.0 + SILENT_S) == {}


def test_no_more_than_so_many_clients_are_remembered() -> None:
    demand = Shares()
    for number in range(MAX_CLIENTS + 10):
        demand.record(asks(f"{number:032x}", "t:1"), NOBODY, 0.0)
    assert demand.total(0.0) == {"t": MAX_CLIENTS}


@pytest.mark.parametrize("wants", ["t", "t:", "t:-1", "t:1,", "t:1000000", " t:1", "t:1;u:2"])
def test_a_demand_that_is_none_is_refused(wants: str) -> None:
    with pytest.raises(ValidationError):
        TasksQuery(wants=wants)


@pytest.mark.parametrize(
    ("waiting", "kind"),
    [
        ("starting", "starting"),
        ("no live worker holds it", "no_worker"),
        ("its workers differ in data or version, give all the same (a: 1, b: 2)", "workers_differ"),
        ("EnvironmentFault: /some/path is missing", "EnvironmentFault"),
        ("the task server can't be reached: GET http://x", "unreachable"),
        ("the task server refuses the token: GET http://x", "refused"),
        ("whatever: else", "other"),
    ],
)
def test_reasons_become_one_of_few_words(waiting: str, kind: str) -> None:
    assert waiting_class(waiting) == kind
    assert kind_of("ValueError: x") == "ValueError"
