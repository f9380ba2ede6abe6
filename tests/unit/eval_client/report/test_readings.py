"""How answers are read, and where nothing is said of it."""

import pytest
from pydantic import JsonValue

from eval_client.report.task_environment import answer_reader
from eval_client.store.records import Manifest
from proctor import registry
from proctor.environment import Environment
from proctor.types import Action, ParsedAction

BASH = Action(content="<think>hm</think>Act: bash\n```bash\nls | wc -l\n```")


def manifest(*tasks: JsonValue) -> Manifest:
    return Manifest(version="1", plan_path="p", plan={"tasks": list(tasks)}, identity={})


def task(environment: str, **parameters: JsonValue) -> JsonValue:
    return {"name": "t", "environment": environment, "parameters": parameters}


def test_an_answer_is_read_as_the_plan_configures_the_task() -> None:
    lenient = answer_reader(manifest(task("os", profile="strict")), "t")
    published = answer_reader(manifest(task("os", profile="compat")), "t")
    marked = Action(content="**Act:** bash\n```bash\nls\n```")
    assert lenient(BASH) == published(BASH) == ParsedAction(kind="bash", text="ls | wc -l")
    assert (lenient(marked), published(marked)) == (
        ParsedAction(kind="bash", text="ls"),
        ParsedAction(problem="invalid_action"),
    )
    assert lenient(None) is None


@pytest.mark.parametrize(
    "of_plan",
    [manifest(), manifest({"name": "t"}), manifest(task("no_such_world")), manifest(task("os", colour="red"))],
    ids=["no plan", "a controller's task", "not installed", "other fields"],
)
def test_nothing_is_said_where_the_environment_is_not_here(of_plan: Manifest) -> None:
    assert answer_reader(of_plan, "t")(BASH) is None


def test_code_that_raises_costs_the_reading_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Environment, action: Action) -> ParsedAction:
        raise LookupError(action.content)

    monkeypatch.setattr(registry.load("os"), "parse_action", broken)
    assert answer_reader(manifest(task("os")), "t")(BASH) is None
