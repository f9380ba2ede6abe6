"""The kind of agents that run in a task's container: `kind: installed` in a plan.

What plays is imported where it plays: plans of such agents are read by many commands.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from proctor.config.problems import FieldError
from proctor.config.task import TaskDefinition
from proctor_bridges.command_words import check_places

if TYPE_CHECKING:
    from eval_client.plan.plan import Plan
    from eval_client.trial.agent_kind import InstalledAgent, InstalledKind
    from eval_client.trial.episode import SessionServer, TrialHistory

PLACES = ("prompt", "model", "url", "key")
"""What may stand in braces in a word of `command`."""


class Installed:
    """Programs that run in a task's container, and from there reach nothing but their agent's endpoint."""

    def check(self, command: Sequence[str]) -> None:
        """Raises FieldError where a word has an unknown name in braces."""
        check_places(command, PLACES)

    def check_task(self, task: TaskDefinition) -> None:
        """Raises FieldError where a task's containers don't have just that network."""
        if task.environment != "harbor" or task.parameters.get("network") != "relay":
            text = "agents of `kind: installed` play tasks of `environment: harbor` with the parameter `network: relay`"
            where = ("tasks", task.name, *(("parameters", "network") if task.environment == "harbor" else ()))
            raise FieldError(where, f"{text}; set that, or list who plays what in `assignments`")

    def begun(self, plan: "Plan", agent: str, history: "TrialHistory", server: "SessionServer") -> "InstalledAgent":
        """The agent in one attempt."""
        from proctor_bridges.worlds.harbor.installed import InstalledRun

        return InstalledRun(plan, agent, history, server)


INSTALLED: "InstalledKind" = Installed()
