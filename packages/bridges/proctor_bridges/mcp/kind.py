"""The kind of agents that play by an MCP server: `kind: command` in a plan, and `proctor play --mcp`.

What plays is imported where it plays: it takes 0.4 s, and plans of such agents are read by many commands.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from proctor_bridges.mcp.command import check_command

if TYPE_CHECKING:
    from rich.console import Console

    from eval_client.plan.plan import Plan
    from eval_client.trial.agent_kind import AgentKind, LoopAgents
    from proctor.environment import Agent


class CommandKind:
    """Coding agents, each with a program and its arguments, in whose words `{prompt}` and the like are filled in."""

    def check(self, command: Sequence[str]) -> None:
        """As `check_command`."""
        check_command(command)

    def started(self, plan: "Plan", folder: Path) -> AbstractAsyncContextManager["LoopAgents"]:
        """The commands of a plan, with the MCP server that they play by."""
        from proctor_bridges.mcp.command_agents import command_agents

        return command_agents(plan, folder)

    def shown(self, task: str, console: "Console") -> AbstractAsyncContextManager["Agent"]:
        """An episode at an MCP server, which is printed while it is played."""
        from proctor_bridges.mcp.shown_episode import shown_episode

        return shown_episode(task, console)


COMMAND: "AgentKind" = CommandKind()
