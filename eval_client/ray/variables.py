"""The environment variables that servers and clients of a run need on other machines, from the names in its plan."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from pydantic import JsonValue

from eval_client.plan.plan import Plan
from proctor.config.secrets import secret_text, setting
from proctor.config.task import TaskDefinition
from proctor.http.connection import VARIABLES
from proctor.llm.dialects import DIALECTS, DialectName


def of_tasks(tasks: Sequence[TaskDefinition]) -> frozenset[str]:
    """The variables for workers: those that parameters name, and those of the dialects of models in them."""
    named = {name for task in tasks for name in _named(task.parameters)}
    models = [each for task in tasks for each in _objects(task.parameters) if "model" in each]
    return frozenset(named.union(*map(_of_dialect, models)))


def of_clients(plan: Plan) -> frozenset[str]:
    """The variables for clients: those that the plan's endpoints and agents name, and those of their dialects."""
    entries = plan.model_dump(mode="json", include={"endpoints", "agents"})
    return frozenset({*_named(entries)}.union(*map(_of_dialect, [{}, *entries["endpoints"]])))


def _of_dialect(model: Mapping[str, JsonValue]) -> set[str]:
    """The variables of a model or endpoint that names no key or base URL."""
    name: DialectName = "messages" if model.get("dialect") == "messages" else "chat"
    return {DIALECTS[name].KEY_ENV, DIALECTS[name].BASE_URL_ENV}


def values(names: Collection[str]) -> dict[str, str]:
    """name -> value of those that are set, in the environment, in `.env` or by NAME_FILE. Raises ValueError."""
    found = {name: setting(name) if name.endswith("_BASE_URL") else secret_text(name) for name in sorted(names)}
    return {name: value for name, value in found.items() if value}


def _named(value: JsonValue | Mapping[str, JsonValue]) -> Iterator[str]:
    """The values of all fields whose name ends in `_env`, and what `${NAME}` names in headers, query and proxy."""
    for each in _objects(value):
        for name, text in each.items():
            if isinstance(text, str):
                yield from [text] if name.endswith("_env") else VARIABLES.findall(text)


def _objects(value: JsonValue | Mapping[str, JsonValue]) -> Iterator[Mapping[str, JsonValue]]:
    if isinstance(value, Mapping):
        yield value
        for inner in value.values():
            yield from _objects(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _objects(inner)
