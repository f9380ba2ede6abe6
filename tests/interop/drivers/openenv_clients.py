"""Clients of the package openenv that do what they are told: one JSON command a line, one JSON answer a line.

A command is [number, method, data]: `open` (data: base URL, headers), `mcp` (the same), `reset`, `step`, `call`,
`tools`, `state`, `close`.
The answer is what the client returned, or {"raised": text}.
"""

import asyncio
import json
import sys
from typing import Any

from openenv.core.generic_client import GenericEnvClient
from openenv.core.mcp_client import MCPToolClient

clients: dict[int, Any] = {}


async def done(number: int, method: str, data: Any) -> Any:
    if method in ("open", "mcp"):
        clients[number] = (GenericEnvClient if method == "open" else MCPToolClient)(**data)
        await clients[number].connect()
        return None
    client = clients[number]
    if method == "reset":
        return shaped(await client.reset(**data))
    if method == "step":
        return shaped(await client.step(data))
    if method == "call":
        return await client.call_tool(data["name"], **data["arguments"])
    if method == "tools":
        return [tool.name for tool in await client.list_tools()]
    if method == "state":
        state = await client.state()
        return state if isinstance(state, dict) else state.model_dump()
    return await getattr(client, method)()


def shaped(result: Any) -> Any:
    observation = result.observation
    plain = observation if isinstance(observation, dict) else observation.model_dump()
    return {"observation": plain, "reward": result.reward, "done": result.done}


def synchronous(data: Any) -> Any:
    """An episode by the client's synchronous face; resets twice."""
    with GenericEnvClient(**data).sync() as client:
        first = client.reset(index=0)
        again = client.reset(index=0)
        same = first.observation["messages"] == again.observation["messages"]
        return [same, client.step({"content": "ACTION: look"}).done, client.state()["step_count"]]


async def answered(line: str) -> Any:
    number, method, data = json.loads(line)
    try:
        if method == "sync":
            return await asyncio.to_thread(synchronous, data)
        return await done(number, method, data)
    except Exception as error:
        return {"raised": f"{type(error).__name__}: {error}"}


async def main() -> None:
    while line := await asyncio.to_thread(sys.stdin.readline):
        print(json.dumps(await answered(line), default=str), flush=True)


asyncio.run(main())
