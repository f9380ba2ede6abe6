"""Evaluations from Python: `from proctor import evaluate, open_run, play, assert_scores`."""

import asyncio
import functools
import logging
import secrets
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from pydantic import JsonValue

from eval_client.own_runs import plan_at_hand
from eval_client.plan.plan import Plan
from eval_client.python.arguments import (
    Agents,
    PlanLike,
    Tasks,
    entries_and_functions,
    new_request,
    override_texts,
    plan_of,
    tasks_and_worlds,
)
from eval_client.python.results import PlanError, Run, RunInterrupted
from eval_client.run.interrupts import Interrupts
from eval_client.run.preflight import PreflightError, check_plan
from eval_client.run.request import RunRequest, Watcher
from eval_client.run.screen import screen
from eval_client.run.servers import ServerProcessError
from eval_client.store.connection import DatabaseError, Fenced, StoreError, reason
from eval_client.store.runs import find_run
from proctor import breakpoints, registry
from proctor.agent_function import AgentFunction, FunctionAgent, FunctionCaller, answers
from proctor.config.task import TaskDefinition
from proctor.config.yaml import FileError
from proctor.environment import POLICY_KINDS, Agent, Environment, EnvironmentFault, policy_of
from proctor.own_files.loading import task_name
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.types import Finish, FinishReason
from task_server.wire.errors import TaskServerError

log = logging.getLogger(__name__)

INTERRUPT_S = 0.5
"""How often the main thread checks for Ctrl-C: a signal delivered to another thread does not wake it."""
CANCEL_S = 10.0
"""How long a session that Ctrl-C ends may take to release what it holds."""
Answer = TypeVar("Answer")


def evaluate(
    plan: str | Path | Mapping[str, Any] | Plan | None = None,
    *,
    agents: Agents = None,
    tasks: Tasks = None,
    limit: int | None = None,
    overrides: Mapping[str, JsonValue] | None = None,
    name: str | None = None,
    folder: str | Path = "runs",
    store: str | None = None,
) -> Run:
    """Play a plan to its end; the results.

    `plan` is a plan file, its fields as a dict, or a Plan; or give `agents` and `tasks`. A function (messages, tools)
    that returns a text or an Action can be an agent; an Environment can be a task, and is played in this process, as
    are the tasks beside it. `limit` is the number of samples of each task. `overrides` sets
    fields of the plan, such as {"limits.run.tokens": 100_000}. The run's folder is `name` in `folder`; the default name
    is made from the plan's name and the time. `store` is the URL of a database server for the run.

    Works in a notebook too. Ctrl-C lets the trials under way finish; a second one stops at once. Raises PlanError if
    the plan can't be run, and RunInterrupted if the run stopped before its end; `run.resume()` of that goes on.
    """
    request = new_request(
        plan, agents, tasks, overrides or {}, name=name, folder=Path(folder), store=store, limit=limit
    )
    return _in_thread(request)


async def aevaluate(
    plan: str | Path | Mapping[str, Any] | Plan | None = None,
    *,
    agents: Agents = None,
    tasks: Tasks = None,
    limit: int | None = None,
    overrides: Mapping[str, JsonValue] | None = None,
    name: str | None = None,
    folder: str | Path = "runs",
    store: str | None = None,
) -> Run:
    """`evaluate` for a program with an event loop. Cancelling it stops the run at once; the run can be resumed."""
    request = new_request(
        plan, agents, tasks, overrides or {}, name=name, folder=Path(folder), store=store, limit=limit
    )
    return await _executed(Interrupts(request, _published(request), lambda text: None))


def open_run(run: str = "latest", *, folder: str | Path = "runs", store: str | None = None) -> Run:
    """The results of an earlier run by its folder, its name, or `latest`. Raises PlanError if there is none."""
    try:
        found = Run(*find_run(run, store, Path(folder)), _resumed)
        found.store.manifest()
    except StoreError as error:
        raise PlanError(str(error)) from error
    except DatabaseError as error:
        raise PlanError(f"store: {reason(error)}") from error
    return found


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
    if not names:
        raise PlanError("environment: it has no samples; give it other data")
    chosen = names[0] if sample is None else sample
    if chosen not in names:
        raise PlanError(f"sample: there is no {chosen!r}; the first are: {', '.join(names[:5])}")
    try:
        with breakpoints.stops():
            return _on_own_loop(_play(world, agent, chosen, seed))
    except EnvironmentFault as error:  # of its lifespan
        return Finish.fault(FinishReason.TASK_ERROR, f"{type(error).__name__}: {error}")


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
        if not answers(agent):
            raise PlanError(f"agent: {agent!r} is not a function; nor an Agent, nor one of {', '.join(POLICY_KINDS)}")
        try:
            caller = FunctionCaller(agent)
        except TypeError as error:
            raise PlanError(f"agent: {error}") from error
        try:
            told = {"session": secrets.token_hex(16), "task": task_name(f":{type(world).__name__}"), "sample": sample}
            return await play_to_finish(world, sample, FunctionAgent(caller, {**told, "seed": str(seed)}), seed)
        finally:
            await caller.end(told["session"])


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


def _resumed(run: Run, agents: Agents, tasks: Tasks, plan: PlanLike | None, overrides: Mapping[str, JsonValue]) -> Run:
    """Resume a run with the same plan, plus `overrides`."""
    manifest = run.store.manifest()
    entries, functions = entries_and_functions(agents)
    defined, worlds = tasks_and_worlds(tasks)
    given: Callable[[Sequence[str]], Plan] | Path | None = Path(plan) if isinstance(plan, str | Path) else None
    if plan is not None and (given is None or agents is not None):
        given = functools.partial(plan_of, plan, entries or None, None)
    try:
        at_hand = plan_at_hand(run.name, run.folder, manifest, given, override_texts(overrides))
        if defined is not None:
            at_hand = at_hand._replace(plan=plan_of(at_hand.plan, None, defined, ()))
        check_plan(manifest, at_hand.plan, functions)
    except (FileError, PreflightError) as error:
        raise PlanError(str(error)) from error
    for note in at_hand.notes:
        log.warning("%s", note)
    request = RunRequest(
        at_hand.plan,
        at_hand.path,
        run.store,
        run.folder,
        resume=True,
        overrides=at_hand.overrides,
        limit=manifest.limit,
        functions=functions,
        worlds=worlds,
        in_process=bool(worlds),
    )
    return _in_thread(request)


async def _executed(interrupts: Interrupts) -> Run:
    request = interrupts.request
    run = Run(request.store, request.folder, _resumed)
    try:
        ended = await interrupts.execute()
    except (PreflightError, StoreError, FileError) as error:
        raise PlanError(str(error)) from error
    except (ServerProcessError, TaskServerError, Fenced) as error:
        raise RunInterrupted(str(error), run) from error
    except DatabaseError as error:
        raise RunInterrupted(f"the store can't be used: {reason(error)}", run) from error
    if ended.stopped is not None:
        raise RunInterrupted(ended.stopped, run)
    if ended.refused:
        raise RunInterrupted("; ".join(ended.refusals()), run)
    return run


def _published(request: RunRequest) -> Watcher:
    """Shows nothing here, but lets `proctor view` and `proctor status` show the run."""
    return lambda played: screen(played, None)


def _in_thread(request: RunRequest) -> Run:
    """Execute in a thread, so that the caller may have an event loop; Ctrl-C in the caller's thread stops the run."""
    interrupts = Interrupts(request, _published(request), print)

    async def main() -> Run:
        try:
            return await _executed(interrupts)
        except asyncio.CancelledError:
            raise RunInterrupted("interrupted", Run(request.store, request.folder, _resumed)) from None

    return _on_own_loop(main(), interrupts.pressed)


def _on_own_loop(main: Coroutine[Any, Any, Answer], on_interrupt: Callable[[], object] | None = None) -> Answer:
    """Run a coroutine on an event loop in a thread of its own; its result. Raises what it raises.

    `on_interrupt` is called on that loop at Ctrl-C. Without it, Ctrl-C cancels the coroutine, waits at most CANCEL_S
    until it has released what it holds, and passes.
    """
    answer: Future[Answer] = Future()
    begun: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()

    async def cancellable() -> Answer:
        task = asyncio.current_task()
        assert task is not None
        begun.set_result((asyncio.get_running_loop(), task))
        return await main

    def work() -> None:
        try:
            answer.set_result(asyncio.run(cancellable()))
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=work, name="proctor", daemon=True).start()
    while not answer.done():
        try:
            wait([answer], INTERRUPT_S)
        except KeyboardInterrupt:
            loop, task = begun.result()
            passes = on_interrupt is None or answer.done()
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(on_interrupt or task.cancel)
            if passes:
                wait([answer], CANCEL_S)
                raise
    return answer.result()
