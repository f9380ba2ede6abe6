"""A world with a service behind it, here a small HTTP server, which `lifespan` starts once for all sessions."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from proctor import Action, Agent, Environment, Finish, FinishReason, Message, Observation, Policy, ServiceAway

GUESTS = {"ada": "tea", "bob": "juice", "cleo": "water"}
_address: list[tuple[str, int]] = []


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers a line with a guest's name by what the guest drinks."""
    name = (await reader.readline()).decode().strip()
    writer.write(json.dumps(GUESTS.get(name)).encode() + b"\n")
    await writer.drain()
    writer.close()


class GuestBook(Environment):
    """Say what a guest drinks; the service knows it."""

    def samples(self) -> Sequence[str]:
        return list(GUESTS)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        async with await asyncio.start_server(_serve, "127.0.0.1", 0) as server:
            _address[:] = [server.sockets[0].getsockname()[:2]]
            yield

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        drinks = ", ".join(sorted(GUESTS.values()))
        asked = Message(role="user", content=f"What does {sample} drink: {drinks}? Answer with one word.")
        action = await agent.act(Observation(messages=(asked,)))
        return Finish(reason=FinishReason.COMPLETED, score=float(action.content.strip() == await self._drink(sample)))

    async def _drink(self, guest: str) -> str:
        """Asks the service. One that is away is no doing of the agent: the trial waits, and gets no score of 0."""
        try:
            reader, writer = await asyncio.open_connection(*_address[0])
            writer.write(f"{guest}\n".encode())
            answer = await reader.readline()
            writer.close()
            return str(json.loads(answer))
        except (OSError, ValueError) as error:
            raise ServiceAway(f"the guest book: {error}") from error

    def reference(self, sample: str, seed: int = 0) -> Policy:
        return lambda conversation, transcript: Action(content=GUESTS[sample])
