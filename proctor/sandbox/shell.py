"""One persistent login shell in a sandbox."""

import secrets
from contextlib import closing

from proctor.environment import EnvironmentFault
from proctor.sandbox.base import OUTPUT_CAP_BYTES, Process, Sandbox, within
from proctor.sandbox.capture import Capture
from proctor.sandbox.pump import StreamEnd, pump
from proctor.types import Value

_START_S = 30.0
_INTERRUPTS = 4
_INTERRUPT_S = 0.5
_KILLS = 10
# The trap lets an interrupt end loops of the shell itself too, but never the shell. What the shell prints about our own
# code around a command (set -x, set -v) is discarded; the command's own output goes to descriptor 254.
_PROLOGUE = b"exec 254>&1 >/dev/null 2>&1; trap '{ break 1024; } 2>/dev/null' INT\n"


class CommandResult(Value):
    """The outcome of a command in the shell."""

    output: bytes
    """stdout and stderr in order of arrival, up to the cap."""
    truncated: bool = False
    status: int | None = None
    """Exit status; None where the shell ended before it could report one."""
    timed_out: bool = False
    restarted: bool = False
    """True where the shell ended (exit, exec, kill) or had to be killed, and a new one was started in `/`."""


class Shell:
    """`bash --login` without a terminal, started in `/`; directory, variables and jobs persist between commands."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._process: Process | None = None
        self._pid = 0
        self._behind = b""

    async def execute(self, command: str, *, limit_s: float = 30.0, cap: int = OUTPUT_CAP_BYTES) -> CommandResult:
        """Run a command to its end or to the time limit. Raises EnvironmentFault when the sandbox has ended.

        Its input is /dev/null. The output of background jobs since the last command comes first.
        """
        process = self._process or await self._start()
        capture = await self._send(process, command, cap)
        ended = await pump(process, capture, limit_s)
        timed_out = ended is StreamEnd.TIME_LIMIT
        if timed_out:
            ended = await self._interrupt(process, capture)
        self._behind = capture.rest
        if ended is not StreamEnd.MARK:
            await self._restart(process, kill=ended is StreamEnd.TIME_LIMIT)
        return CommandResult(
            output=capture.output(),
            truncated=capture.truncated,
            status=capture.status,
            timed_out=timed_out,
            restarted=ended is not StreamEnd.MARK,
        )

    async def _start(self) -> Process:
        async with within(_START_S, "starting a shell"):
            process = await self._sandbox.spawn(["/bin/bash", "--login"], interactive=True)
            await process.write(_PROLOGUE)
            self._process = process
            capture = await self._send(process, 'builtin printf "%s" "$$"', 1 << 16)
            await pump(process, capture, _START_S)
        words = capture.output().split()
        if capture.status is None or not words:
            raise EnvironmentFault(f"sandbox: no shell starts: {capture.output()[:200]!r}")
        self._pid = int(words[-1])
        return process

    async def _send(self, process: Process, command: str, cap: int) -> Capture:
        token = secrets.token_hex(16)
        capture = Capture(token.encode(), cap)
        capture.feed(self._behind)
        self._behind = b""
        await process.write(_line(command, token))
        return capture

    async def _interrupt(self, process: Process, capture: Capture) -> StreamEnd:
        ended = StreamEnd.TIME_LIMIT
        for _ in range(_INTERRUPTS):
            await self._signal("INT")
            ended = await pump(process, capture, _INTERRUPT_S)
            if ended is not StreamEnd.TIME_LIMIT:
                break
        return ended

    async def _restart(self, process: Process, *, kill: bool) -> None:
        if kill:
            await self._signal("KILL")
        process.close()
        self._process = None
        try:
            await self._start()
        except EnvironmentFault:
            # Processes of the command may use up the process limit: the agent caused that, so it is no fault.
            await self._end_all()
            await self._start()

    async def _end_all(self) -> None:
        """Kill all processes in the sandbox; at the process limit it may take several tries to start `kill`."""
        for _ in range(_KILLS):
            async with within(_START_S, "ending all that runs"):
                with closing(await self._sandbox.spawn(["/bin/bash", "-c", "kill -KILL -1"])) as process:
                    status = await process.wait()
            if status == 0:
                return

    async def _signal(self, name: str) -> None:
        """Signal the shell's process group; background jobs ignore INT, as POSIX has it."""
        await self._sandbox.run(["/bin/bash", "-c", f"kill -{name} -- -{self._pid}"], limit_s=10)


def _line(command: str, token: str) -> bytes:
    """The text that makes bash run a command and then print `<token>:<status>;`.

    The command is quoted, so nothing in it can end the quotation; the token is written in halves, so tracing (set -x)
    can't print it; output goes to descriptor 254, so an `exec >file` hides neither the mark nor later output.
    """
    quoted = command.replace("\0", "").replace("'", "'\\''")
    half = len(token) // 2
    return (
        f"builtin eval '{quoted}\n' </dev/null >&254 2>&254; __status=$?; "
        f"{{ builtin printf '\\n%s%s:%d;\\n' {token[:half]} {token[half:]} \"$__status\" >&254; }} 2>/dev/null; "
        f"(exit $__status)\n"
    ).encode("utf-8", "replace")
