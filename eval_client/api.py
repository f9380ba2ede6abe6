"""Evaluations from Python: `from proctor import evaluate, open_run, play, assert_scores`."""

import asyncio
import json
import re
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any, TypeVar

from pydantic import JsonValue

from eval_client.execute import RunRequest, Watcher
from eval_client.filters import narrowed
from eval_client.interrupts import Interrupts
from eval_client.monitor.screen import screen
from eval_client.plan import AgentEntry, Plan, check_data, load_plan, placed, with_overrides
from eval_client.preflight import PreflightError, check_plan
from eval_client.run_results import Run, RunInterrupted
from eval_client.servers.server_process import ServerProcessError
from eval_client.store.connection import StoreError
from eval_client.store.records import Manifest
from eval_client.store.run_folders import checked_name, find_run, new_name, open_store
from eval_client.store.shards import Fenced
from proctor import registry
from proctor.agent_function import AgentFunction, FunctionAgent, FunctionCaller
from proctor.config.task import TaskDefinition
from proctor.config.yaml import FileError, parse
from proctor.environment import POLICY_KINDS, Agent, Environment, PolicyAgent, play_to_finish, policy_of
from proctor.types import Finish
from task_server.wire.errors import TaskServerError

AgentLike = AgentFunction | AgentEntry | Mapping[str, Any] | str
"""A function, an entry of a plan, or the name of a built-in agent."""
INTERRUPT_S = 0.5
"""How often the main thread checks for Ctrl-C: a signal delivered to another thread does not wake it."""
Agents = AgentLike | Sequence[AgentLike] | Mapping[str, AgentFunction] | None
Answer = TypeVar("Answer")


class PlanError(ValueError):
    """The plan or the arguments can't be run; the message names the field and the fix."""


def evaluate(
    plan: str | Path | Mapping[str, Any] | Plan | None = None,
    *,
    agents: Agents = None,
    tasks: Sequence[str | Mapping[str, Any] | TaskDefinition] | None = None,
    limit: int | None = None,
    overrides: Mapping[str, JsonValue] | None = None,
    name: str | None = None,
    folder: str | Path = "runs",
    store: str | None = None,
) -> Run:
    """Play a plan to its end; the results.

    `plan` is a plan file, its fields as a dict, or a Plan; or give `agents` and `tasks`. A function (messages, tools)
    that returns a text or an Action can be an agent. `limit` is the number of samples of each task. `overrides` sets
    fields of the plan, such as {"limits.run.tokens": 100_000}. The run's folder is `name` in `folder`; the default name
    is made from the plan's name and the time. `store` is the URL of a database server for the run.

    Works in a notebook too. Ctrl-C lets the trials under way finish; a second one stops at once. Raises PlanError if
    the plan can't be run, and RunInterrupted if the run stopped before its end; `run.resume()` of that goes on.
    """
    request = _new_request(
        plan, agents, tasks, overrides or {}, name=name, folder=Path(folder), store=store, limit=limit
    )
    return _in_thread(request)


async def aevaluate(
    plan: str | Path | Mapping[str, Any] | Plan | None = None,
    *,
    agents: Agents = None,
    tasks: Sequence[str | Mapping[str, Any] | TaskDefinition] | None = None,
    limit: int | None = None,
    overrides: Mapping[str, JsonValue] | None = None,
    name: str | None = None,
    folder: str | Path = "runs",
    store: str | None = None,
) -> Run:
    """`evaluate` for a program with an event loop. Cancelling it stops the run at once; the run can be resumed."""
    request = _new_request(
        plan, agents, tasks, overrides or {}, name=name, folder=Path(folder), store=store, limit=limit
    )
    return await _executed(Interrupts(request, _published(request), lambda text: None))


def open_run(run: str = "latest", *, folder: str | Path = "runs", store: str | None = None) -> Run:
    """The results of an earlier run by its folder, its name, or `latest`. Raises PlanError if there is none."""
    try:
        return Run(*find_run(run, store, Path(folder)), _resumed)
    except StoreError as error:
        raise PlanError(str(error)) from error


def play(
    environment: str | Environment,
    agent: AgentFunction | Agent | str,
    *,
    sample: str | None = None,
    seed: int = 0,
    **parameters: JsonValue,
) -> Finish:
    """Play one session in this process, without servers or a store, for tests and notebooks; its finish.

    `environment` is the name of an installed one, with `parameters` for its fields, or an instance. `agent` is a
    function, an Agent, or one of `reference`, `naive` and `random`. `sample` is the first one by default. Faults are
    finishes without a score. Raises PlanError if there is no such environment, sample or agent.
    """
    world = environment if isinstance(environment, Environment) else _built(environment, parameters)
    names = world.samples()
    chosen = names[0] if sample is None else sample
    if chosen not in names:
        raise PlanError(f"sample: there is no {chosen!r}; the first are: {', '.join(names[:5])}")
    return _on_own_loop(_play(world, agent, chosen, seed))


def assert_scores(run: Run, task: str, *, at_least: float, agent: str | None = None) -> None:
    """For tests: assert that every agent (or the one named) scores `at_least` on a task, with a score for every trial.

    Raises AssertionError, which shows the worst trials, and PlanError if the run has no such pair.
    """
    rows = [row for row in run.scores() if row["task"] == task and agent in {None, row["agent"]}]
    if not rows:
        raise PlanError(f"task, agent: run {run.name} has no scores of {agent or 'any agent'} on {task!r}")
    for row in rows:
        value, missing = row["value"], row["planned"] - row["scored"]
        if missing or value is None or value < at_least:
            worst = run.worst(row["agent"], task)
            what = "no score" if value is None else f"{row['metric']} {value:.3f}"
            raise AssertionError(
                f"{row['agent']} on {task}: {what}, wanted {at_least:g} or more; {missing} of {row['planned']} trials "
                "without a score; the worst:\n" + "\n".join(worst)
            )


async def _play(world: Environment, agent: AgentFunction | Agent | str, sample: str, seed: int) -> Finish:
    async with world.lifespan():
        if isinstance(agent, Agent):
            return await play_to_finish(world, sample, agent, seed)
        if isinstance(agent, str):
            return await play_to_finish(world, sample, _policy(world, agent, sample, seed), seed)
        caller = FunctionCaller(agent)
        try:
            return await play_to_finish(world, sample, FunctionAgent(caller), seed)
        finally:
            caller.close()


def _policy(world: Environment, name: str, sample: str, seed: int) -> PolicyAgent:
    kind = next((kind for kind in POLICY_KINDS if kind == name), None)
    if kind is None:
        raise PlanError(f"agent: there is no {name!r}; give a function, or one of {', '.join(POLICY_KINDS)}")
    policy = policy_of(world, kind, sample, seed)
    if policy is None:
        raise PlanError(f"agent: the environment has no {kind} policy; give a function, or another one")
    return PolicyAgent(policy)


def _built(name: str, parameters: Mapping[str, JsonValue]) -> Environment:
    try:
        return TaskDefinition(name="played", environment=name, parameters=dict(parameters)).build()
    except (FileError, registry.UnknownEnvironment) as error:
        raise PlanError(str(error)) from error


def _new_request(
    plan: str | Path | Mapping[str, Any] | Plan | None,
    agents: Agents,
    tasks: Sequence[str | Mapping[str, Any] | TaskDefinition] | None,
    overrides: Mapping[str, JsonValue],
    *,
    name: str | None,
    folder: Path,
    store: str | None,
    limit: int | None,
) -> RunRequest:
    texts = [f"{field}={json.dumps(value)}" for field, value in overrides.items()]
    entries, functions = _agents(agents)
    try:
        if isinstance(plan, str | Path) and agents is None and tasks is None:
            made, path = load_plan(Path(plan), texts), str(Path(plan).resolve())
        else:
            made, path = _made(plan, entries, tasks, texts), "(Python)"
        at = folder / checked_name(name or new_name(made.name))
        opened = open_store(store, at)
    except (FileError, StoreError) as error:
        raise PlanError(str(error)) from error
    given = tuple(texts)
    return RunRequest(made, path, opened, at, resume=False, overrides=given, limit=limit, functions=functions)


def _made(
    plan: str | Path | Mapping[str, Any] | Plan | None,
    agents: Sequence[Mapping[str, Any]],
    tasks: Sequence[str | Mapping[str, Any] | TaskDefinition] | None,
    overrides: Sequence[str],
) -> Plan:
    """A plan of these fields; `agents` and `tasks`, if given, replace the plan's own. Raises FileError."""
    if isinstance(plan, str | Path):
        plan = load_plan(Path(plan))
    fields = plan.model_dump(mode="json", exclude_none=True) if isinstance(plan, Plan) else dict(plan or {})
    if agents:
        fields["agents"] = list(agents)
    if tasks is not None:
        fields["tasks"] = [_task(task) for task in ([tasks] if isinstance(tasks, str) else tasks)]
    made = placed(parse(json.dumps(fields, default=str), "the plan", Plan, overrides), Path.cwd())
    check_data(made)
    return made


def _task(task: str | Mapping[str, Any] | TaskDefinition) -> Mapping[str, Any]:
    if isinstance(task, str):
        return {"name": task, "environment": task}
    return task.model_dump(mode="json", exclude_none=True) if isinstance(task, TaskDefinition) else task


def _agents(
    agents: Agents,
) -> tuple[list[Mapping[str, Any]], dict[str, AgentFunction]]:
    """(entries for a plan's `agents`, the Python functions among them by name)"""
    if agents is None:
        return [], {}
    if isinstance(agents, Mapping) and all(callable(value) for value in agents.values()):
        functions: dict[str, AgentFunction] = dict(agents)
        return [_function_entry(name) for name in functions], functions
    entries: list[Mapping[str, Any]] = []
    functions = {}
    for agent in agents if isinstance(agents, Sequence) and not isinstance(agents, str) else [agents]:
        if isinstance(agent, AgentEntry):
            entries.append(agent.model_dump(mode="json", exclude_none=True))
        elif isinstance(agent, Mapping):
            entries.append(agent)
        elif isinstance(agent, str):
            entries.append({"name": agent, "builtin": agent})
        else:
            name = re.sub(r"[^A-Za-z0-9._-]", "", getattr(agent, "__name__", "")).lstrip("._-")[:64] or "function"
            if name in functions:
                raise PlanError(f"agents: two functions are called {name!r}; give a dict of names and functions")
            entries.append(_function_entry(name))
            functions[name] = agent
    return entries, functions


def _function_entry(name: str) -> Mapping[str, Any]:
    return {"name": name, "builtin": "function"}


def _resumed(run: Run, agents: Agents, overrides: Mapping[str, JsonValue]) -> Run:
    """Resume a run with the same plan, plus `overrides`."""
    manifest = run.store.manifest()
    texts = (*manifest.overrides, *(f"{field}={json.dumps(value)}" for field, value in overrides.items()))
    functions = _agents(agents)[1]
    try:
        path = Path(manifest.plan_path)
        plan = _planned(manifest, path, texts)
        check_plan(manifest, plan)
    except (FileError, PreflightError) as error:
        raise PlanError(str(error)) from error
    request = RunRequest(
        plan, str(path), run.store, run.folder, resume=True, overrides=texts, limit=manifest.limit, functions=functions
    )
    return _in_thread(request)


def _planned(manifest: Manifest, path: Path, overrides: Sequence[str]) -> Plan:
    """The plan of a resume: from its file where that is still there. Raises FileError."""
    if path.is_file():
        return load_plan(path, overrides, lambda plan: narrowed(plan, manifest.filters))
    return with_overrides(Plan.model_validate(manifest.plan), overrides)


async def _executed(interrupts: Interrupts) -> Run:
    request = interrupts.request
    run = Run(request.store, request.folder, _resumed)
    try:
        ended = await interrupts.execute()
    except (PreflightError, StoreError, FileError) as error:
        raise PlanError(str(error)) from error
    except (ServerProcessError, TaskServerError, Fenced) as error:
        raise RunInterrupted(str(error), run) from error
    if ended.stopped is not None:
        raise RunInterrupted(ended.stopped, run)
    if ended.refused:
        raise RunInterrupted("; ".join(ended.refusals()), run)
    return run


def _published(request: RunRequest) -> Watcher:
    """Shows nothing here, but lets `proctor view` and `proctor status` show the run."""
    return lambda played: screen(played, None, request.folder)


def _in_thread(request: RunRequest) -> Run:
    """Execute in a thread, so that the caller may have an event loop; Ctrl-C in the caller's thread stops the run."""
    interrupts = Interrupts(request, _published(request), print)
    loop: list[asyncio.AbstractEventLoop] = []

    async def main() -> Run:
        loop.append(asyncio.get_running_loop())
        try:
            return await _executed(interrupts)
        except asyncio.CancelledError:
            raise RunInterrupted("interrupted", Run(request.store, request.folder, _resumed)) from None

    return _on_own_loop(main(), lambda: loop[0].call_soon_threadsafe(interrupts.pressed))


def _on_own_loop(main: Coroutine[Any, Any, Answer], on_interrupt: Callable[[], object] | None = None) -> Answer:
    """Run a coroutine on an event loop in a thread of its own; its result. Raises what it raises."""
    answer: Future[Answer] = Future()

    def work() -> None:
        try:
            answer.set_result(asyncio.run(main))
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=work, name="proctor", daemon=True).start()
    while not answer.done():
        try:
            wait([answer], INTERRUPT_S)
        except KeyboardInterrupt:
            if on_interrupt is None or answer.done():
                raise
            on_interrupt()
    return answer.result()
