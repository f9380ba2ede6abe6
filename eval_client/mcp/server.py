"""Episodes at `/mcp/<task>/<episode>` on a loopback port of this process; the episode is a random secret."""

import contextlib
import secrets
from collections.abc import AsyncIterator
from urllib.parse import quote

from eval_client.mcp.episode import CalledEpisode
from proctor.http.server import listen, url_of, uvicorn_config

HOST = "127.0.0.1"
KEEP_ALIVE_S = 65
KEPT_OVER = 1000
"""So many of the episodes that are over still say so; those before are unknown."""
LAST_REPLIES_S = 2


class McpEpisodes:
    """The episodes of this process, by path."""

    def __init__(self) -> None:
        self.base_url = ""
        """The server's URL, once it listens."""
        self._episodes: dict[str, CalledEpisode] = {}

    def add(self, task: str, episode: CalledEpisode) -> str:
        """Serve an episode from now on; its URL, which is the secret that gives access to it."""
        path = f"/mcp/{quote(task, safe='')}/{secrets.token_hex(16)}"
        over = [of for of, each in self._episodes.items() if each.over]
        for of in over[:-KEPT_OVER]:
            del self._episodes[of]
        self._episodes[path] = episode
        return self.base_url + path

    def get(self, path: str) -> CalledEpisode | None:
        """The episode of a path."""
        return self._episodes.get(path)

    def knows(self, _method: str, path: str, _authorization: bytes) -> bool:
        """Whether a path is that of an episode."""
        return path in self._episodes


@contextlib.asynccontextmanager
async def mcp_server() -> AsyncIterator[McpEpisodes]:
    """Serve episodes while inside. Those that are under way must be ended before.

    Few clients serve any, so what serves HTTP is imported here.
    """
    from eval_client.mcp.app import episodes_app
    from proctor.http.serving import embedded

    episodes = McpEpisodes()
    listener = listen(HOST, 0)
    episodes.base_url = url_of(HOST, listener)
    config = uvicorn_config(
        episodes_app(episodes), keep_alive_s=KEEP_ALIVE_S, last_replies_s=LAST_REPLIES_S, knows=episodes.knows
    )
    async with embedded(config, listener):
        yield episodes
