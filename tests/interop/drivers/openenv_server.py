"""Two servers of the package openenv: a digit to guess as text, with tasks, and the same by an MCP tool.

`openenv_server.py text|tools` prints the port once it listens; it ends when standard input closes.
"""

import os
import socket
import sys
import threading
from typing import Any

import uvicorn
from fastmcp import FastMCP
from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.mcp_environment import MCPEnvironment
from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation
from openenv.core.env_server.types import Action, Observation, State


class Guess(Action):
    content: str


class Told(Observation):
    text: str = ""


class Digits(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._state, self._digit = State(), "0"

    def reset(self, seed: int | None = None, index: int | None = None, **more: Any) -> Told:
        self._digit = str(index if index is not None else seed)[-1]
        self._state = State(step_count=0)
        return Told(text="guess a digit")

    def step(self, action: Guess, **more: Any) -> Told:
        if action.content == "boom":
            raise RuntimeError("it broke")
        self._state.step_count += 1
        right = action.content == self._digit
        return Told(text="right" if right else "wrong", reward=float(right), done=right)

    @property
    def state(self) -> State:
        return self._state

    def list_splits(self) -> list[str]:
        return ["test"]

    def list_tasks(self, split: str) -> list[dict[str, int]]:
        return [{"index": index} for index in range(4)]

    def num_tasks(self, split: str) -> int:
        return 4


class Tools(MCPEnvironment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        server = FastMCP("digits")
        self._digit, self._right = "0", False

        @server.tool
        def guess(digit: str) -> str:
            """Guess the digit."""
            self._right = digit == self._digit
            return "right" if self._right else "wrong"

        super().__init__(server)
        self._state = State()

    def reset(self, seed: int | None = None, **more: Any) -> Observation:
        self._digit, self._right = str(seed)[-1], False
        return Observation(metadata={"told": "guess a digit"})

    def _step_impl(self, action: Action, **more: Any) -> Observation:
        return Observation()

    def step(self, action: Action, **more: Any) -> Observation:
        return self._scored(super().step(action, **more))

    async def step_async(self, action: Action, **more: Any) -> Observation:
        return self._scored(await super().step_async(action, **more))

    def _scored(self, observation: Observation) -> Observation:
        observation.reward, observation.done = float(self._right), self._right
        return observation

    @property
    def state(self) -> State:
        return self._state


def end_with_stdin() -> None:
    sys.stdin.read()
    os._exit(0)


kind = {"text": (Digits, Guess, Told), "tools": (Tools, CallToolAction, CallToolObservation)}[sys.argv[1]]
listener = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=end_with_stdin, daemon=True).start()
app = create_app(*kind, env_name="digits", max_concurrent_envs=2)
print(listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])
