"""Checks of task servers: whether they answer, accept our token, have the plan's tasks and our version."""

from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel

from eval_client.cli.doctor.finding import Finding, fail, ok, warn
from eval_client.cli.doctor.readiness import UNSTARTED, unreachable_controller
from eval_client.plan.plan import Plan
from proctor.config.tokens import AccessTokens
from proctor.http.client import HttpClient, Untrusted
from proctor.observability.redaction import redacted
from task_server.http.transport import Caller
from task_server.wire.errors import ApiError, BadReply, TaskServerError, Unauthorized
from task_server.wire.messages import UNKNOWN_VERSION, VERSION, Health, TaskCapacity, TaskList

Answer = TypeVar("Answer", bound=BaseModel)


class ServerProbe:
    """Requests to the plan's controller, or a lone worker, and the findings on its replies."""

    def __init__(self, http: HttpClient, plan: Plan, tokens: AccessTokens, patience_s: float) -> None:
        self._plan, self._has_token, self._patience_s = plan, bool(tokens), patience_s
        self._url = plan.controller.rstrip("/")
        self._caller = Caller(http, tokens, home=self._url)

    async def look(self) -> tuple[list[Finding], TaskList | None]:
        """The findings, and the tasks that the server has; None where it does not say."""
        listed: TaskList | None = None
        try:
            health = await self._get("healthz", Health)
            found = [ok("controller", f"{health.role} at {self._url} answers"), _version(self._url, health.version)]
            listed = await self._get("tasks", TaskList)
        except Unauthorized:
            return [self._refused_token(), found[1]], None
        except TaskServerError as error:
            return [self._no_server(error)], None
        return [*found, *(self._task(task.name, listed.tasks) for task in self._plan.tasks)], listed

    async def _get(self, path: str, answer: type[Answer]) -> Answer:
        return await self._caller.call("GET", f"{self._url}/{path}", answer, deadline_s=self._patience_s)

    def _no_server(self, error: TaskServerError) -> Finding:
        what = str(error) if self._url in str(error) else f"{self._url}: {error}"
        if isinstance(error.__cause__, Untrusted):
            fix = "name its authority (`tls.ca`), or correct http or https"
            return fail("controller-tls", what, "no request is sent to it", fix)
        if isinstance(error, (BadReply, ApiError)):
            return fail("controller-other", what, UNSTARTED, "correct `controller`: something else answers there")
        return unreachable_controller(what, self._url)

    def _refused_token(self) -> Finding:
        variable = self._plan.token_env
        state = "holds the token that was sent" if self._has_token else "is unset"
        what = f"{self._url} refuses the token (variable {variable} {state})"
        fix = f"set {variable} to the token it was started with"
        return fail("controller-token", what, "the controller refuses every request", fix)

    def _task(self, name: str, offered: Sequence[TaskCapacity]) -> Finding:
        of_task = [capacity for capacity in offered if capacity.name == name]
        if len(of_task) > 1:
            why = "a new run can't choose between them; one in progress uses those whose task is as at its start"
            fix = "start the workers that are named first with the data, parameters and version of the others"
            return fail("task-workers-differ", f"task {name}: {of_task[-1].waiting}", why, fix)
        capacity = of_task[0] if of_task else None
        if capacity is None or (capacity.waiting is not None and capacity.total == 0):
            known = ", ".join(sorted({each.name for each in offered})) or "none"
            reason = "" if capacity is None else f": {capacity.waiting}"
            what = f"task {name}: no worker holds it{reason}; tasks there: {known}"
            fix = f"proctor worker --tasks FILE --controller {self._url}, with this task in FILE, or correct its name"
            return fail("task-unknown", what, "its trials would stay unscored", fix)
        return _capacity(capacity)


def _capacity(task: TaskCapacity) -> Finding:
    if task.waiting is not None:
        what, fix = f"task {task.name} waits: {task.waiting}", "correct what the worker reports"
        return fail("task-waiting", what, UNSTARTED, fix)
    if task.total == 0:
        fix = "give the task a `capacity` in its worker's task file"
        return fail("task-no-capacity", f"task {task.name}: its workers have no slot for it", UNSTARTED, fix)
    if task.free == 0:
        what = f"task {task.name}: all {task.total} slots are taken"
        return warn("task-full", what, "its trials wait for sessions of other runs", "start another worker, or wait")
    return ok("task", f"task {task.name}: {task.free} of {task.total} slots are free")


def _version(url: str, theirs: str) -> Finding:
    if theirs == VERSION:
        return ok("version", f"controller at {url} has our version, {VERSION}")
    shown = "an old version that does not report its number" if theirs == UNKNOWN_VERSION else f"version {theirs}"
    what = f"controller at {url} has {redacted(shown)}, this is {VERSION}"
    why = "prompts and scores may differ, and one process may refuse the messages of another"
    return fail("version-differs", what, why, f"pip install proctor=={VERSION} on its machine, and restart it")
