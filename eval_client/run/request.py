"""What is asked of a run: the plan, its store and folder, who else has started servers."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from eval_client.core.progress import ErrorLimit
from eval_client.core.selection import NO_FILTERS, Filters
from eval_client.endpoints.chat_configs import LOCAL_TOKEN_ENV
from eval_client.plan.plan import Plan
from eval_client.run.context import RunContext
from eval_client.run.preflight import PartAsked, PreflightError
from eval_client.run.servers import LocalServers
from eval_client.store.records import Manifest, Trial
from eval_client.store.store import Store
from task_server.wire.messages import SampleList

if TYPE_CHECKING:
    from proctor.agent_function import AgentFunction, FunctionCaller
    from proctor.environment import Environment

Watcher = Callable[[RunContext], contextlib.AbstractContextManager[None]]
"""A context manager that shows a run while it plays."""

Extend = Callable[["RunRequest", Manifest, Mapping[str, SampleList]], tuple[Manifest, Iterable[Trial]]]
"""Makes of a run's manifest, with the tasks as they are now, what it is with more trials. Raises PreflightError."""


@dataclass(frozen=True)
class Served:
    """The URLs of servers that were started for the run by whoever calls; None for a server that was not."""

    controller: str | None
    agents: str | None

    def servers(self) -> LocalServers:
        """The servers as LocalServers whose `failure` is never set: others supervise them."""
        failure: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        return LocalServers(os.environ.get(LOCAL_TOKEN_ENV, ""), self.controller, self.agents, failure)


@dataclass(frozen=True)
class RunRequest:
    """What to execute: a new run of a plan, or the rest of an earlier one."""

    plan: Plan
    plan_path: str
    store: Store
    folder: Path
    """The run's folder; its subfolder `logs` gets the logs of the run's own servers."""
    resume: bool
    either: bool = False
    """Whether an existing run is no error: it is resumed, once no other client plays it."""
    part: PartAsked | None = None
    """Which part of the plan a new run is to play; None for all of it."""
    served: Served | None = None
    """Servers that were started for the run already."""
    overrides: tuple[str, ...] = ()
    """The `--set` options that the plan was loaded with, this time and before."""
    again: frozenset[int] | None = None
    """The trials to play, of a resume; None: all without a score. Those that have one get another."""
    limit: int | None = None
    fail_on_error: ErrorLimit | None = None
    """The number of unscored trials at which the run ends early."""
    extend: "Extend | None" = None
    """What a resume adds to the run first."""
    filters: Filters = NO_FILTERS
    """What was chosen on the command line; the plan is narrowed by it already."""
    functions: Mapping[str, "AgentFunction"] = field(default_factory=dict)
    """The plan's agents that are Python functions, by name."""
    worlds: Mapping[str, "Environment"] = field(default_factory=dict)
    """The environments of tasks that were given in Python, by task."""
    in_process: bool = False
    """Whether the tasks are played in this process, not in workers of their own."""
    agents_here: bool = False
    """Whether built-in agents play in this process, which has their environments loaded, not in one of their own."""
    announce: Callable[[str], None] = lambda _step: None
    """Called with each slow step of the start, when it begins."""


def check_in_process(request: RunRequest) -> None:
    """Raises PreflightError if tasks are to be played in this process that the plan leaves to others."""
    if request.in_process and request.plan.controller != "local":
        at = request.plan.controller
        raise PreflightError(
            f"in process: the plan's tasks are played at {at}; leave `controller` out, or --in-process"
        )


def function_callers(request: RunRequest) -> dict[str, "FunctionCaller"]:
    """The plan's agents that are Python functions, by name. Raises PreflightError where one can't be called."""
    functions = [agent for agent in request.plan.agents if agent.is_function]
    if not functions:
        return {}
    from proctor.agent_function import FunctionCaller, own_caller  # runs without functions do without

    callers: dict[str, FunctionCaller] = {}
    for agent in functions:
        threads, given = request.plan.concurrency_of(agent), request.functions.get(agent.name)
        try:
            if given is not None:
                callers[agent.name] = FunctionCaller(given, threads, agent.parameters)
            elif agent.function is not None:
                callers[agent.name] = own_caller(agent.function, threads, agent.parameters)
            else:
                raise PreflightError(
                    f"agents.{agent.name}: it is a Python function; play the run from Python, and name the function "
                    f"there: proctor.open_run({str(request.folder)!r}).resume(agents={{{agent.name!r}: ...}})"
                )
        except (TypeError, ImportError) as error:
            raise PreflightError(f"agents.{agent.name}: {error}") from error
        takes = callers[agent.name].takes_model
        if agent.is_scaffold and takes is None:
            raise PreflightError(f"agents.{agent.name}.endpoint: its function takes no `model`; give it that parameter")
        if takes and not agent.is_scaffold:
            where = "name the `endpoint` and the `model` that it asks in the plan, beside `function`"
            raise PreflightError(f"agents.{agent.name}: its function takes `model`; {where}")
    return callers
