"""`proctor play --mcp`: a coding agent plays, and the person at the terminal looks on."""

import contextlib
from collections.abc import AsyncIterator

from rich.console import Console

from eval_client.cli.terminal import print_messages, print_note, print_observation
from proctor.types import Action, Observation
from proctor_bridges.mcp.episode import CalledEpisode
from proctor_bridges.mcp.server import mcp_server

PROMPT = (
    "Play the episode of the MCP server proctor to its end. The server's instructions are the task. Its tools are all "
    "that acts in it; call them one at a time, until a result says that the episode is over."
)
READ_CHARS = 2048
"""What Claude Code reads of a server's instructions."""


class ShownEpisode(CalledEpisode):
    """An episode that is printed while it is played."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console
        self._turn = 0

    async def act(self, observation: Observation) -> Action:
        self._turn += 1
        print_observation(observation, self._turn, self._console)
        if self._turn == 1 and sum(len(message.content) for message in observation.messages) > READ_CHARS:
            reads = f"Claude Code reads only {READ_CHARS:,} characters of them:"
            print_note(f"these are the server's instructions; {reads}", self._console)
            print_note("put the messages above into your prompt", self._console)
        action = await super().act(observation)
        print_messages([action.message()], self._console)
        return action


@contextlib.asynccontextmanager
async def shown_episode(task: str, console: Console) -> AsyncIterator[ShownEpisode]:
    """Serve an episode of a task, and print how a coding agent reaches it."""
    async with mcp_server() as episodes:
        episode = ShownEpisode(console)
        url = episodes.add(task, episode)
        for line in (
            f"MCP server: {url}",
            f"Claude Code: claude mcp add --transport http proctor {url}",
            f"Codex: codex mcp add proctor --url {url}",
            f"then ask it: {PROMPT}",
        ):
            console.print(line, soft_wrap=True)
        try:
            yield episode
        finally:
            episode.end()
