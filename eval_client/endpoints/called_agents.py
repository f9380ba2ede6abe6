"""Agents of this process, Python functions and policies: they are called in place of a model at an endpoint."""

import logging
import time
from collections.abc import Mapping, Sequence

from agent_server.agents.base import AgentRequest, ServedAgent
from agent_server.agents.function import ServedFunction
from agent_server.agents.policies import ServedPolicy, TaskPolicies
from agent_server.errors import RequestRefused
from proctor.agent_function import FunctionCaller
from proctor.config.task import TaskDefinition
from proctor.environment import AgentStopped, AgentUnavailable, PolicyKind, RequestRejected
from proctor.llm.model import Completion
from proctor.types import Message, Tool, Usage

log = logging.getLogger(__name__)


class CalledAgent:
    """An agent of this process in the place of a `ChatModel`."""

    def __init__(self, name: str, agent: ServedAgent) -> None:
        self.name, self._agent = name, agent
        self.caller = agent.caller if isinstance(agent, ServedFunction) else None

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[Tool], metadata: Mapping[str, str]
    ) -> Completion:
        """The agent's answer. Raises AgentStopped, and AgentUnavailable where it fails, which is not tried again."""
        begun = time.monotonic()
        try:
            reply = await self._agent.answer(AgentRequest(tuple(messages), tuple(tools), metadata))
        except (AgentStopped, AgentUnavailable):
            raise
        except RequestRefused as refused:
            raise RequestRejected(f"{refused.message} (after 1 try)") from refused
        except Exception as error:
            log.exception("agent %s failed", self.name)
            raise AgentUnavailable(f"agent {self.name} failed; the log says why") from error
        usage = reply.usage or Usage()
        return Completion(reply.action, usage, self.name, reply.finish_reason(), time.monotonic() - begun, 1)


def called_agents(
    functions: Mapping[str, FunctionCaller], policies: Mapping[str, PolicyKind], tasks: Sequence[TaskDefinition]
) -> Mapping[str, CalledAgent]:
    """Functions, and policies of tasks, as agents by name.

    Raises FileError where a task that a policy is to play can't be built.
    """
    known = TaskPolicies(tasks if policies else ())
    agents: dict[str, ServedAgent] = {name: ServedFunction(caller) for name, caller in functions.items()}
    agents |= {name: ServedPolicy(kind, known) for name, kind in policies.items()}
    return {name: CalledAgent(name, agent) for name, agent in agents.items()}
