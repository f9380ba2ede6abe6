"""Turns the arguments of `evaluate` into a request to execute a run."""

import inspect
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import JsonValue
from pydantic_core import PydanticSerializationError

from eval_client.plan.entries import AgentEntry
from eval_client.plan.load import check_data, load_plan, placed
from eval_client.plan.plan import POLICIES_AT_ONCE, Plan
from eval_client.python.results import PlanError
from eval_client.run.request import RunRequest
from eval_client.store.connection import DatabaseError, StoreError, reason
from eval_client.store.runs import checked_name, new_name, open_store
from proctor import registry
from proctor.agent_function import AgentFunction, answers
from proctor.config.task import TaskDefinition
from proctor.config.yaml import FileError, parse
from proctor.environment import Environment
from proctor.own_files.loading import admit_given, task_name, under_way

AgentLike = AgentFunction | AgentEntry | Mapping[str, Any] | str
"""A function, an entry of a plan, or the name of a built-in agent."""
PlanLike = str | Path | Mapping[str, Any] | Plan
"""A plan's file, its fields, or a plan."""
TaskLike = str | Mapping[str, Any] | TaskDefinition | Environment
"""The name of an installed environment, a task of a plan, or an environment, which is played in this process."""
Tasks = TaskLike | Sequence[TaskLike] | Mapping[str, TaskLike] | None
Agents = AgentLike | Sequence[AgentLike] | Mapping[str, AgentFunction] | None


def new_request(
    plan: PlanLike | None,
    agents: Agents,
    tasks: Tasks,
    overrides: Mapping[str, JsonValue],
    *,
    name: str | None,
    folder: Path,
    store: str | None,
    limit: int | None,
) -> RunRequest:
    """Raises PlanError."""
    if limit is not None and limit < 1:
        raise PlanError(f"limit: must be 1 or more (got {limit})")
    if under_way:
        raise PlanError("this file is being imported; evaluate under `if __name__ == '__main__':` alone")
    texts = override_texts(overrides)
    entries, functions = entries_and_functions(agents)
    defined, worlds = tasks_and_worlds(tasks)
    try:
        if isinstance(plan, str | Path) and agents is None and tasks is None:
            made, path = load_plan(Path(plan), texts), str(Path(plan).resolve())
        else:
            made, path = plan_of(plan, None if agents is None else entries, defined, texts), "(Python)"
        at = folder / checked_name(name or new_name(made.name))
        opened = open_store(store, at)
        opened.check()
    except (FileError, StoreError) as error:
        raise PlanError(str(error)) from error
    except OSError as error:
        raise PlanError(f"folder: {error}; name a folder that can be written to") from error
    except DatabaseError as error:
        raise PlanError(f"store: {reason(error)}") from error
    given = tuple(texts)
    return RunRequest(
        made,
        path,
        opened,
        at,
        resume=False,
        overrides=given,
        limit=limit,
        functions=functions,
        worlds=worlds,
        in_process=bool(worlds),
    )


def override_texts(overrides: Mapping[str, JsonValue]) -> list[str]:
    """The overrides as the texts of `--set` options."""
    return [f"{field}={json.dumps(value, default=str)}" for field, value in overrides.items()]


def plan_of(
    plan: PlanLike | None,
    agents: Sequence[Mapping[str, Any]] | None,
    tasks: Sequence[Mapping[str, Any]] | None,
    overrides: Sequence[str],
) -> Plan:
    """A plan of these fields; `agents` and `tasks`, if given, replace the plan's own. Raises FileError."""
    if isinstance(plan, str | Path):
        plan = load_plan(Path(plan))
    fields = plan.model_dump(mode="json", exclude_none=True) if isinstance(plan, Plan) else dict(plan or {})
    if agents is not None:
        fields["agents"] = list(agents)
    if tasks is not None:
        fields["tasks"] = list(tasks)
    made = placed(parse(json.dumps(fields, default=str), "the plan", Plan, overrides, Path.cwd()), Path.cwd())
    check_data(made)
    return made


def tasks_and_worlds(tasks: Tasks) -> tuple[list[Mapping[str, Any]] | None, dict[str, Environment]]:
    """(definitions for a plan's `tasks`, the environments among them by their tasks' names). Raises PlanError."""
    if tasks is None:
        return None, {}
    if isinstance(tasks, str | Environment | TaskDefinition):
        tasks = [tasks]
    given: Iterable[tuple[str | None, TaskLike]] = ((None, each) for each in tasks)
    if isinstance(tasks, Mapping):
        given = ((name, task) for name, task in tasks.items())
    defined, worlds = list[Mapping[str, Any]](), dict[str, Environment]()
    for name, task in given:
        definition = _defined(task) if name is None else {**_defined(task), "name": name}
        defined.append(definition)
        if isinstance(task, Environment):
            worlds[definition["name"]] = task
    return defined, worlds


def _defined(task: TaskLike) -> Mapping[str, Any]:
    if isinstance(task, str):
        return {"name": task, "environment": task}
    if isinstance(task, TaskDefinition):
        return task.model_dump(mode="json", exclude_none=True)
    if not isinstance(task, Environment):
        return task
    kind = type(task)
    try:
        parameters = task.model_dump(mode="json", exclude_unset=True)
    except PydanticSerializationError as error:
        raise PlanError(f"tasks: {kind.__name__}: {error}; give its fields values that JSON can hold") from error
    data = parameters.pop("data", None)
    environment = registry.installed_as(kind) or admit_given(kind)
    named = {"name": task_name(f":{kind.__name__}"), "environment": environment, "parameters": parameters}
    return named if data is None else {**named, "data": data}


def entries_and_functions(agents: Agents) -> tuple[list[Mapping[str, Any]], dict[str, AgentFunction]]:
    """(entries for a plan's `agents`, the Python functions among them by name). Raises PlanError."""
    if agents is None:
        return [], {}
    if isinstance(agents, Mapping) and any(map(answers, agents.values())):
        functions: dict[str, AgentFunction] = dict(agents)
        for name, function in functions.items():
            if not answers(function):
                raise PlanError(f"agents: {name!r} is not a function; give other agents in a list: [function, 'naive']")
        return [_function_entry(*each) for each in functions.items()], functions
    entries: list[Mapping[str, Any]] = []
    functions = {}
    for agent in agents if isinstance(agents, Sequence) and not isinstance(agents, str) else [agents]:
        if isinstance(agent, AgentEntry):
            entries.append(agent.model_dump(mode="json", exclude_none=True))
        elif isinstance(agent, Mapping):
            given: Any = agent.get("function")
            name = str(agent.get("name"))
            if answers(given):
                functions[name] = given
            entries.append({**_function_entry(name, given), **agent, "function": None} if answers(given) else agent)
        elif isinstance(agent, str):
            entries.append({"name": agent, "builtin": agent})
        elif not answers(agent):
            raise PlanError(f"agents: {agent!r} is neither a function, nor an entry of a plan, nor a built-in agent")
        else:
            name = re.sub(r"[^A-Za-z0-9._-]", "", getattr(agent, "__name__", "")).lstrip("._-")[:64] or "function"
            if name in functions:
                raise PlanError(f"agents: two functions are called {name!r}; give a dict of names and functions")
            entries.append(_function_entry(name, agent))
            functions[name] = agent
    return entries, functions


def _function_entry(name: str, function: AgentFunction) -> Mapping[str, Any]:
    """An async function is called as often at once as built-in agents are, a plain one from all its threads."""
    entry = {"name": name, "builtin": "function"}
    return {**entry, "concurrency": POLICIES_AT_ONCE} if inspect.iscoroutinefunction(function) else entry
