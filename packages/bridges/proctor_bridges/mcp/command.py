"""A command: what its words get in place of `{prompt}` and the like, and its process with all children.

The process is started in a folder and a group of its own, and ended whole.
"""

import asyncio
import contextlib
import errno
import json
import os
import secrets
import select
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from proctor.config.problems import FieldError
from proctor.observability.descriptors import give_back
from proctor.observability.redaction import redacted
from proctor_bridges.command_words import check_places

PLACES = ("prompt", "mcp_config", "url")
"""What may stand in braces in a word."""
MAX_PROMPT_BYTES = 100_000
"""Limit of a prompt as a word: Linux takes words of 128 KiB."""
END_S = 2.0
"""From the request to end to the kill."""
LAST_WORDS_S = 1.0
"""From the end of the command to that of its output."""
MAX_LOG_BYTES = 1 << 20
TAIL_BYTES = 8000
"""The end of the output that is looked through for secrets: half of one is not found."""
TAIL_CHARS = 500
"""What a failure quotes of it."""
MARK = "PROCTOR_COMMAND"
"""The variable by which a child is known that has left the group."""
_WATCHDOG = """\
read -r _
kill -s KILL -- "-$0"
for _ in 1 2 3 4 5 6 7 8 9; do
    found=$(grep -lsF "$1" /proc/[0-9]*/environ)
    [ "$found" ] || break
    for file in $found; do file=${file%/environ}; kill -s KILL "${file#/proc/}"; done
done
"""
"""Kills the group, and then what has the mark, until there is none: a child may begin another meanwhile.

It begins once its standard input ends, which it does when this process is gone, however it ended.
"""
_POLL_MS = 200


def check_command(words: Sequence[str]) -> None:
    """Raises FieldError where a command can't be run, or could not reach its episode."""
    if "/" in words[0] and not Path(words[0]).is_absolute():
        text = f"{words[0]!r} is a relative path, but the command runs in a folder of its own; write the absolute path"
        raise FieldError(("command",), text)
    if not {"mcp_config", "url"} & check_places(words, PLACES):
        raise FieldError(
            ("command",), "no word holds {mcp_config} or {url}, so the command could not reach its episode; add one"
        )


def mcp_config(url: str) -> str:
    """The text of a configuration file that names one MCP server, as Claude Code and others read it."""
    return json.dumps({"mcpServers": {"proctor": {"type": "http", "url": url}}}, indent=1)


def prompt(opening: str) -> str:
    """What the agent is asked to do; `opening` are the messages that the episode begins with."""
    return (
        "Play one episode to its end by the tools of the MCP server proctor. They are all that acts in the episode; no "
        "file on this machine belongs to it. Call one tool at a time, and go on until a result says that the episode "
        f"is over.\n\nThe episode begins:\n\n{opening}"
    )


class CommandProcess:
    """A command under way. Its standard output and error go to a log, of which the first MiB is kept.

    Raises OSError where it can't be started.
    """

    def __init__(self, words: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path) -> None:
        self.exit_code: int | None = None
        """The exit code, or the signal as a negative number, of a command that has ended before `end` made it."""
        self._ended = asyncio.Event()
        self._signalled = False
        self._loop = asyncio.get_running_loop()
        self._tail = b""
        self._read_no_more = threading.Event()
        mark = secrets.token_hex(16)
        self._process = subprocess.Popen(
            words,
            cwd=folder,
            env={**environment, MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        give_back(self._process.pid)
        assert self._process.stdout is not None
        self._reader = threading.Thread(target=self._read, args=(self._process.stdout, log), daemon=True)
        self._waiter = threading.Thread(target=self._wait, daemon=True)
        with contextlib.ExitStack() as undo:
            undo.enter_context(self._process)
            undo.callback(self._await_waiter)
            undo.callback(self._signal, signal.SIGKILL)
            self._watchdog = undo.enter_context(_watchdog(self._process.pid, mark))
            try:
                self._waiter.start()
                self._reader.start()
            except RuntimeError as error:
                raise OSError(errno.EAGAIN, str(error)) from error
            undo.pop_all()

    async def ended(self) -> None:
        """Return once the command has ended by itself, or by a signal."""
        await self._ended.wait()

    async def last_words(self) -> str:
        """The end of the output of a command that has ended, secrets redacted."""
        await asyncio.to_thread(self._reader.join, LAST_WORDS_S)  # a child may hold the output open
        return redacted(self._tail.decode(errors="replace"))[-TAIL_CHARS:].strip()

    async def end(self, grace_s: float) -> None:
        """Wait `grace_s` for the command to end by itself; then end it with all its children."""
        try:
            await self._ended_within(grace_s)
            if not self._ended.is_set():
                self._signal(signal.SIGTERM)
                await self._ended_within(END_S)
        finally:
            self._signal(signal.SIGKILL)  # the command may have ended and left children
            await asyncio.to_thread(self._reap)

    async def _ended_within(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ended.wait()

    def _signal(self, number: signal.Signals) -> None:
        self._signalled = True
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _await_waiter(self) -> None:
        if self._waiter.ident is not None:
            self._waiter.join()

    def _reap(self) -> None:
        assert self._watchdog.stdin is not None
        self._watchdog.stdin.close()  # it kills the children that have left the group
        self._watchdog.wait()
        self._waiter.join()
        self._process.wait()
        self._reader.join(END_S)  # a child that has left the group and the mark may hold the output open
        self._read_no_more.set()
        self._reader.join()

    def _wait(self) -> None:
        """Learn of the end without taking it from `_reap`: until then no other process can get the group's number."""
        state = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        assert state is not None
        if not self._signalled:
            self.exit_code = state.si_status if state.si_code == os.CLD_EXITED else -state.si_status
        with contextlib.suppress(RuntimeError):  # the loop has ended, and this process with it
            self._loop.call_soon_threadsafe(self._ended.set)

    def _read(self, output: IO[bytes], log: Path) -> None:
        left = MAX_LOG_BYTES
        poll = select.poll()
        poll.register(output, select.POLLIN)
        with output, log.open("wb", buffering=0) as file:
            while not self._read_no_more.is_set():
                if not poll.poll(_POLL_MS):
                    continue
                if not (some := os.read(output.fileno(), 1 << 16)):
                    return
                self._tail = (self._tail + some)[-TAIL_BYTES:]
                with contextlib.suppress(OSError):  # a full disk: the command must not wait for its log
                    file.write(some[:left])
                left -= min(left, len(some))


def _watchdog(group: int, mark: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        ["/bin/sh", "-c", _WATCHDOG, str(group), f"{MARK}={mark}"],
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
