"""Serves an environment's policies (reference, naive, random) as agents."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from agent_server.agents.base import AgentReply, AgentRequest, ServedAgent
from agent_server.errors import RequestRefused
from proctor.config.task import TaskDefinition
from proctor.environment import Environment, Policy, PolicyKind, policy_of

POLICIES_KEPT = 4096


class TaskPolicies:
    """The environments of tasks, each built once, and their samples."""

    def __init__(self, tasks: Sequence[TaskDefinition]) -> None:
        """Raises FileError, or ValueError on broken data."""
        self._environments: Mapping[str, Environment] = {task.name: task.build() for task in tasks}
        self._samples = {name: frozenset(world.samples()) for name, world in self._environments.items()}

    def environment(self, task: str, sample: str) -> Environment:
        """The environment of a task that has this sample. Raises RequestRefused."""
        if task not in self._environments:
            known = ", ".join(sorted(self._environments))
            raise RequestRefused(
                422, f"metadata.task: no task {task!r} here; known are: {known}", code="task_not_found"
            )
        if sample not in self._samples[task]:
            raise RequestRefused(
                422, f"metadata.sample: task {task!r} has no sample {sample!r}", code="sample_not_found"
            )
        return self._environments[task]


class ServedPolicy(ServedAgent):
    """Answers with a policy of the environment, which sees the request's messages alone.

    Needs the metadata `task` and `sample`; `conversation` and `seed` are "main" and 0 unless given.
    """

    def __init__(self, kind: PolicyKind, tasks: TaskPolicies) -> None:
        @lru_cache(maxsize=POLICIES_KEPT)
        def policy(task: str, sample: str, seed: int) -> Policy:
            found = policy_of(tasks.environment(task, sample), kind, sample, seed)
            if found is None:
                raise RequestRefused(
                    422,
                    f"metadata.task: the environment of task {task!r} has no {kind} policy; ask an agent of another "
                    f"kind, or give the environment a method `{kind}`",
                    code="policy_not_found",
                )
            return found

        self._policy = policy

    async def answer(self, request: AgentRequest) -> AgentReply:
        task, sample = request.required("task", "sample")
        policy = self._policy(task, sample, request.number("seed", 0))
        action = policy(request.metadata.get("conversation", "main"), request.messages)
        return AgentReply(action.well_formed())
