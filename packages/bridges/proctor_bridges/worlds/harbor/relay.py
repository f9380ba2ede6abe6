"""A coding agent in a task's container, on the worker: its process, and the relay that is all it reaches.

The relay is a container of its own in the network of the task's, which has a loopback interface and nothing else. What
is asked there goes by that container's standard streams to the worker, and as a turn of the session to the client.
"""

import asyncio
import email.parser
import hmac
import math
import secrets
import struct
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from pydantic import ValidationError

from environments.operating_system.observation import text
from proctor.environment import Agent, EnvironmentFault
from proctor.llm.dialects import PATHS, dialect_of
from proctor.sandbox.base import Process, SandboxLimits, within
from proctor.sandbox.capture import Capture, pump
from proctor.sandbox.docker_engine import DockerEngine
from proctor_bridges.command_words import filled
from proctor_bridges.worlds.harbor import forwarder
from proctor_bridges.worlds.harbor.program import (
    LOG_BYTES,
    RELAY_IMAGE,
    REQUESTS,
    Asked,
    Feature,
    Program,
    ProgramEnd,
    RelayReply,
    refusal,
)

if TYPE_CHECKING:
    from proctor_bridges.worlds.harbor.sandboxes import Box

_LIMITS = SandboxLimits(memory_mb=256, cpus=0.5, processes=64)
_READY_S, _LOOK_S = 30.0, 0.2
_BEGIN = 'echo $$; cd "$0" && exec "$@"'
_KILL = 'kill -s KILL -- "-$0"'


class Relay:
    """A relay's process, and the requests that come by its standard output."""

    def __init__(self, process: Process) -> None:
        self._process, self._rest = process, b""

    async def next(self) -> tuple[bytes, bytes]:
        """Head and body of the next request. Raises EnvironmentFault once the relay has ended."""
        head, body = struct.unpack(">II", await self._read(8))
        return await self._read(head), await self._read(body)

    async def answer(self, response: bytes) -> None:
        """Answer the request that came last."""
        await self._process.write(struct.pack(">I", len(response)) + response)

    async def _read(self, count: int) -> bytes:
        pieces = bytearray(self._rest)
        while len(pieces) < count:
            if not (some := await self._process.read()):
                raise EnvironmentFault(f"the relay of a container has ended: {text(bytes(pieces))[-300:]}")
            pieces += some
        self._rest = bytes(pieces[count:])
        return bytes(pieces[:count])


@asynccontextmanager
async def relay_beside(container: str, max_age_s: int) -> AsyncIterator[Relay]:
    """The relay of a container, which listens. Raises EnvironmentFault."""
    limits = _LIMITS.model_copy(update={"max_age_s": max_age_s})
    engine = DockerEngine(RELAY_IMAGE, limits, pool=0, network=f"container:{container}")
    async with engine.lifespan(), engine.sandbox() as sandbox:
        code = Path(forwarder.__file__).read_text(encoding="utf-8")
        with closing(await sandbox.spawn(["/usr/bin/python3", "-c", code], interactive=True)) as process:
            relay = Relay(process)
            async with within(_READY_S, "the start of a relay"):
                await relay.next()
            yield relay


class ProgramRun:
    """A program in a container, to be run once. `limit_s` is its time."""

    def __init__(self, program: Program, box: "Box", agent: Agent, limit_s: float) -> None:
        self._program, self._box, self._agent, self._limit_s = program, box, agent, limit_s
        self._token = secrets.token_urlsafe(32)
        """By which its own requests are known: of this trial alone."""
        self._one_at_a_time = asyncio.Lock()
        self.requests, self.log = 0, ""
        self._waited_s = 0.0
        """How long its requests have waited for limits or for an endpoint that was down."""
        self._refused = ""

    async def run(self, prompt: str, relay: Relay) -> ProgramEnd:
        """From its start to its end. Raises AgentStopped where it was ended at a limit, and EnvironmentFault."""
        process = await self._box.sandbox.spawn(
            ["/bin/sh", "-c", _BEGIN, self._box.folder, *filled(self._program.command, self._values(prompt))],
            variables={**self._box.variables, **self._variables()},
        )
        with closing(process):
            capture, pid = Capture(None, LOG_BYTES), b""
            while b"\n" not in pid and (some := await process.read()):
                pid += some
            pid, _, begun = pid.partition(b"\n")
            capture.feed(begun)
            tasks = serving, running = (
                asyncio.create_task(self._serve(relay)),
                asyncio.create_task(_status(process, capture)),
            )
            try:
                await self._end_or_limit(tasks)
                if is_ended_here := not running.done():
                    await self._box.sandbox.run(["/bin/sh", "-c", _KILL, pid.decode()])
                async with self._one_at_a_time:  # what it asked last is answered first
                    if serving.done():
                        await serving
                    status = -1 if is_ended_here else await running
                    log = text(capture.output())
                    return ProgramEnd(status=status, late=is_ended_here, log=log, refused=self._refused)
            finally:
                self.log = text(capture.output())
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _end_or_limit(self, tasks: Iterable["asyncio.Task[Any]"]) -> None:
        """Return once one has ended, or the time is over and no request is under way, which may have had to wait."""
        ends, clock = asyncio.get_running_loop().time() + self._limit_s, asyncio.get_running_loop().time
        while not any(task.done() for task in tasks):
            left_s = ends + self._waited_s - clock()
            if left_s <= 0 and not self._one_at_a_time.locked():
                return
            await asyncio.wait(tasks, timeout=max(left_s, _LOOK_S), return_when=asyncio.FIRST_COMPLETED)

    async def _serve(self, relay: Relay) -> None:
        """Answer requests, for ever. Raises AgentStopped, and EnvironmentFault where the relay ends."""
        while True:
            request = await relay.next()
            async with self._one_at_a_time:
                reply = await self._reply(*request)
            await relay.answer(reply.response())

    async def _reply(self, head: bytes, body: bytes) -> RelayReply:
        line, _, rest = head.decode("latin-1").partition("\n")
        headers = email.parser.HeaderParser().parsestr(rest)
        given = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), self._token.encode()):
            return refusal("this token is not that of this trial", 401)
        method, target, *_ = [*line.split(), "", ""]
        path = target.partition("?")[0].removeprefix("/v1")
        if method != "POST" or path != PATHS[self._program.dialect]:
            self._refused = self._why_not(path)
            return refusal(self._refused, 404)
        self.requests += 1
        try:
            features = {name: headers[name] for name in get_args(Feature) if name in headers}
            asked = Asked(headers=features, body=body.decode(errors="replace"))
        except ValidationError as error:
            return refusal(f"headers that can't be passed on: {error.errors()[0]['msg']}")
        action = await self._agent.act(asked.observation(REQUESTS))
        reply = RelayReply.model_validate_json(action.content)
        self._waited_s += reply.waited_s
        return reply

    def _why_not(self, path: str) -> str:
        """Why a request to a path is not passed on."""
        dialect = self._program.dialect
        asked = next((f"the dialect {name}" for name, known in PATHS.items() if known == path), path)
        return (
            f"the agent's endpoint speaks the dialect {dialect}, at {PATHS[dialect]} alone; {asked} is not translated"
        )

    def _values(self, prompt: str) -> dict[str, str]:
        """What stands in braces in the command's words."""
        return {"prompt": prompt, "model": self._program.model, "url": self._url, "key": self._token}

    def _variables(self) -> dict[str, str]:
        dialect = dialect_of(self._program.dialect)
        return {dialect.BASE_URL_ENV: self._url, dialect.KEY_ENV: self._token}

    @property
    def _url(self) -> str:
        """The relay's base URL, as programs of the dialect take it: those of `messages` add `/v1` themselves."""
        host = f"http://127.0.0.1:{forwarder.PORT}"
        return host if self._program.dialect == "messages" else f"{host}/v1"


async def _status(process: Process, capture: Capture) -> int:
    """Feed the capture to the end of a process; its exit status."""
    await pump(process, capture, math.inf)
    return await process.wait()
