"""One persistent login shell in a sandbox."""

import secrets
from collections.abc import Awaitable, Sequence
from contextlib import closing, suppress

from proctor.environment import EnvironmentFault, ServiceAway
from proctor.sandbox.base import OUTPUT_CAP_BYTES, Process, Sandbox, within
from proctor.sandbox.capture import Capture, StreamEnd, pump
from proctor.types import Value

_START_S = 30.0
_RESTART_S = 10.0
_SIGNAL_S = 10.0
_INTERRUPTS = 4
INTERRUPT_S = 0.5
_KILLS = 10
_STARTS = 3
"""As it was, without profiles, and when all else was killed."""
_LOGIN = ("/bin/bash", "--login")
_PLAIN = ("/bin/bash", "--noprofile", "--norc")
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
    gone: bool = False
    """True where the shell ended, now or earlier, and no new one starts for what ran in the sandbox."""


class Shell:
    """`bash --login` without a terminal, started in `/`; directory, variables and jobs persist between commands.

    Once a new one did not start, later ones read no profile, in which a command may have left an `exit`.
    """

    def __init__(self, sandbox: Sandbox, argv: Sequence[str] = _LOGIN) -> None:
        self._sandbox = sandbox
        self._process: Process | None = None
        self._pid = 0
        self._behind = b""
        self._argv = argv
        self._gone = False

    async def execute(self, command: str, *, limit_s: float = 30.0, cap: int = OUTPUT_CAP_BYTES) -> CommandResult:
        """Run a command to its end or to the time limit. Raises EnvironmentFault when the sandbox has ended.

        Its input is /dev/null. The output of background jobs since the last command comes first.
        """
        if self._gone:
            return CommandResult(output=b"", gone=True)
        process = self._process or await self._start(_START_S)
        capture, line = self._capture(command, cap)
        ended, failed = await _tried(self._feed(process, capture, line, limit_s))
        timed_out = ended is StreamEnd.TIME_LIMIT and failed is None
        if timed_out:
            await self._sandbox.check_engine()
            ended, failed = await _tried(self._interrupt(process, capture))
        self._behind = capture.rest
        if ended is not StreamEnd.MARK:
            await self._restart(process, kill=ended is StreamEnd.TIME_LIMIT)
        if failed is not None and not self._gone:
            raise failed
        return CommandResult(
            output=capture.output(),
            truncated=capture.truncated,
            status=capture.status,
            timed_out=timed_out,
            restarted=ended is not StreamEnd.MARK and not self._gone,
            gone=self._gone,
        )

    async def _feed(self, process: Process, capture: Capture, line: bytes, limit_s: float) -> StreamEnd:
        await process.write(line)
        return await pump(process, capture, limit_s)

    async def _start(self, limit_s: float) -> Process:
        async with within(limit_s, "starting a shell"):
            process = self._process = await self._sandbox.spawn(self._argv, interactive=True)
            capture, line = self._capture('builtin printf "%s" "$$"', 1 << 16)
            await process.write(_PROLOGUE + line)
            await pump(process, capture, limit_s)
        words = capture.output().split()
        if capture.status is None or not words or not words[-1].isdigit():
            raise ServiceAway(f"sandbox: no shell starts: {capture.output()[:200]!r}")
        self._pid = int(words[-1])
        return process

    def _capture(self, command: str, cap: int) -> tuple[Capture, bytes]:
        """A capture for the output of a command, and the text that makes the shell run it."""
        token = secrets.token_hex(16)
        capture = Capture(token.encode(), cap)
        capture.feed(self._behind)
        self._behind = b""
        return capture, _line(command, token)

    async def _interrupt(self, process: Process, capture: Capture) -> StreamEnd:
        ended = StreamEnd.TIME_LIMIT
        for _ in range(_INTERRUPTS):
            await self._signal("INT")
            ended = await pump(process, capture, INTERRUPT_S)
            if ended is not StreamEnd.TIME_LIMIT:
                break
        return ended

    async def _restart(self, process: Process, *, kill: bool) -> None:
        """Start a new shell, or find that none starts for what the command did. Raises EnvironmentFault."""
        if kill:
            with suppress(EnvironmentFault):
                await self._signal("KILL")
        process.close()
        for attempt in range(_STARTS):
            if attempt == _STARTS - 1:
                await self._end_all()
            try:
                await self._start(_RESTART_S)
                return
            except EnvironmentFault as fault:
                self._argv, last = _PLAIN, fault
        self._gone = await self._sandbox.is_spoiled(lambda box: Shell(box, _PLAIN)._start(_RESTART_S))
        if not self._gone:
            raise ServiceAway(str(last))

    async def _end_all(self) -> None:
        """Kill all processes in the sandbox, which may have used up the process limit; then several tries are needed
        to start `kill`."""
        with suppress(EnvironmentFault):
            async with within(_RESTART_S, "ending all that runs"):
                for _ in range(_KILLS):
                    with closing(await self._sandbox.spawn(["/bin/bash", "-c", "kill -KILL -1"])) as process:
                        if await process.wait() == 0:
                            return

    async def _signal(self, name: str) -> None:
        """Signal the shell's process group; background jobs ignore INT, as POSIX has it."""
        await self._sandbox.run(["/bin/bash", "-c", f"kill -{name} -- -{self._pid}"], limit_s=_SIGNAL_S)


async def _tried(work: Awaitable[StreamEnd]) -> tuple[StreamEnd, EnvironmentFault | None]:
    """What ended a command, or TIME_LIMIT and a fault: whether the sandbox still is, a new shell will show."""
    try:
        return await work, None
    except EnvironmentFault as fault:
        return StreamEnd.TIME_LIMIT, fault


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
