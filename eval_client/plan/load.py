"""Reads a plan from its file, with overrides, and checks the data that this machine plays."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from eval_client.core.selection import SelectionError, catalogue_of, choose
from eval_client.plan.plan import Plan
from proctor.config.problems import FieldProblem
from proctor.config.task import TaskDefinition
from proctor.config.wording import NAME
from proctor.config.yaml import Document, FieldErrors, FileError, parse, read_text
from proctor.connection.fields import UNVERIFIED
from proctor.environment import missing_policies
from proctor.http.tls import Tls


def load_plan(path: Path, overrides: Sequence[str] = (), narrow: Callable[[Plan], Plan] = lambda plan: plan) -> Plan:
    """The plan in a YAML file; paths are relative to the file. `narrow` may leave parts of it out.

    Also checks the data that this machine plays: see `check_data`. Raises FileError.
    """
    document = Document(read_text(path), str(path), overrides)
    document.admit(path.resolve().parent)

    def checked(plan: Plan) -> Plan:
        plan = narrow(placed(plan, path.resolve().parent))
        if plan.tls != Tls():
            plan.tls.context()
        for endpoint in plan.endpoints:
            if endpoint.unsure:
                raise FieldErrors([FieldProblem(("endpoints", endpoint.name, "tls", "verify"), UNVERIFIED)])
        check_data(plan)
        return plan

    return document.read(Plan, checked)


def check_data(plan: Plan) -> None:
    """Raises FieldErrors where a task's data, built-in agents, functions or samplings can't be played."""
    problems = [problem for task in plan.played_here() for problem in _data_problems(plan, task)]
    problems += _function_problems(plan)
    problems += [
        FieldProblem(("agents", agent.name, "sampling", name), f"must be a number (got the text {value!r})")
        for agent in plan.agents
        for name, value in agent.sampling.items()
        if isinstance(value, str) and name in ("temperature", "top_p", "max_tokens", "max_completion_tokens")
    ]  # endpoints refuse them; stored plans may have them
    if problems:
        raise FieldErrors(problems)


def _data_problems(plan: Plan, task: TaskDefinition) -> Sequence[FieldProblem]:
    """What is wrong with a task's data, or with the built-in agents that are to play it."""
    playing = plan.playing(task.name)
    try:
        environment = task.opened()
        if task.samples is not None:
            choose(task.name, catalogue_of(environment), task.samples)
    except FieldErrors as error:
        return error.problems
    except SelectionError as error:
        return [FieldProblem(("tasks", task.name, "samples", *error.where), error.text)]
    missing = missing_policies(environment, playing.values())
    return [
        FieldProblem(
            ("agents", agent, "builtin"),
            f"the environment {task.environment} of task {task.name!r} has no {kind} policy; list the pairs to play "
            f"without this one under `assignments`, or give the environment a method `{kind}`",
        )
        for agent, kind in playing.items()
        if kind in missing
    ]


def _function_problems(plan: Plan) -> list[FieldProblem]:
    """What is wrong with the files of agents that are functions."""
    problems, agents = [], [agent for agent in plan.agents if agent.function is not None]
    if agents:
        from proctor.agent_function import own_function  # plans without functions do without
    for agent in agents:
        try:
            own_function(str(agent.function))
        except ImportError as error:
            problems.append(FieldProblem(("agents", agent.name, "function"), str(error)))
    return problems


def read_plan(path: Path, overrides: Sequence[str] = ()) -> Plan:
    """The plan in a YAML file, without its data being checked; paths are relative to the file. Raises FileError."""
    document = Document(read_text(path), str(path), overrides)
    document.admit(path.resolve().parent)
    return document.read(Plan, lambda plan: placed(plan, path.resolve().parent))


def placed(plan: Plan, folder: Path) -> Plan:
    """The same plan with all paths resolved against a folder, normally that of the plan's file. Raises FieldErrors."""
    tasks = tuple(task.relative_to(folder) if isinstance(task, TaskDefinition) else task for task in plan.tasks)
    endpoints = tuple(endpoint.relative_to(folder) for endpoint in plan.endpoints)
    agents = tuple(agent.relative_to(folder) for agent in plan.agents)
    tls = plan.tls.relative_to(folder)
    return plan.model_copy(update={"tasks": tasks, "endpoints": endpoints, "agents": agents, "tls": tls})


def with_overrides(plan: Plan, overrides: Sequence[str]) -> Plan:
    """A plan that the user vouches for, with `a.b.c=value` overrides. Raises FileError."""
    text = json.dumps(plan.model_dump(mode="json", exclude_none=True))
    return admitted(parse(text, "the recorded plan", Plan, overrides, Path.cwd()))


def admitted(plan: Plan) -> Plan:
    """The same plan, the files of its agents meant from the working folder; its other paths stay as they are."""
    return plan.model_copy(update={"agents": tuple(agent.relative_to(Path.cwd()) for agent in plan.agents)})


def with_tags(plan: Plan, tags: Sequence[str]) -> Plan:
    """A plan with further tags. Raises FileError."""
    for tag in tags:
        if not re.fullmatch(NAME, tag):
            raise FileError(f"--tag {tag}: use up to 64 letters, digits, dots, dashes and underscores")
    return plan.model_copy(update={"tags": (*plan.tags, *tags)})
