"""Keys of endpoints: from a variable, from a file that may change, or from a command that prints one."""

import asyncio
import contextlib
import functools
import os
import signal
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable
from pathlib import Path

from proctor.config.secrets import MAX_SECRET_BYTES, say_if_shown
from proctor.config.tokens import AccessTokens
from proctor.observability.redaction import redacted, remember

COMMAND_S = 30.0
"""Longest time of a command that prints a key."""
AGAIN_S = 30.0
"""Seconds until a source that told a refused key again is asked once more."""
SAID_CHARS = 200


class KeyUnavailable(Exception):
    """There is no key at the moment: its endpoint counts as down."""


class KeySource:
    """Where the key of an endpoint comes from; all calls of a process share one source, and one question to it.

    A file is read for every request. A command is run again after `ttl_s`. Both are asked once more where a key was
    refused, and again AGAIN_S later where it still is. A variable may name a file of keys, see `AccessTokens`. Raises
    ValueError where it holds what is no key.
    """

    def __init__(
        self,
        variable: str,
        file: Path | None = None,
        command: tuple[str, ...] = (),
        ttl_s: float = 3000.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._file, self._command, self._ttl_s, self._clock = file, command, ttl_s, clock
        self._tokens = AccessTokens.of(variable) if file is None and not command else None
        self.changes = self._tokens is None or self._tokens.may_change
        """Whether it may give another key later."""
        self.known = self._first = None if self._tokens is None else self._tokens.current
        """The newest key, without asking for one."""
        self._fresh_until = float("-inf")
        self._refused: str | None = None
        """The last refused key that the source told another time."""
        self._again_at = float("-inf")
        """When it is asked for another key than that one."""
        self._asking: asyncio.Task[str | None] | None = None

    def __str__(self) -> str:
        if self._command:
            return f"command {self._command[0]}"
        return f"file {self._file}" if self._tokens is None else f"variable {self._tokens.source}"

    @property
    def identity(self) -> str:
        """What tells its keys from those of other sources, also once they are renewed: for names of pools."""
        return f"{self._file}\0{self._command}" if self._tokens is None else self._first or ""

    async def key(self) -> str | None:
        """The key; None where the variable is unset. Raises KeyUnavailable."""
        if self._tokens is not None:
            self.known = self._tokens.current
        elif not (self._command and self._clock() < self._fresh_until):
            await self._ask()
        return self.known

    async def renewed(self, refused: str | None) -> bool:
        """Whether there is another key than a refused one; asks the source once for it. Raises KeyUnavailable."""
        if self._tokens is not None:
            self.known = self._tokens.other((refused or "",)) or self.known
        elif self.known == refused and (
            self._asking is not None or self._refused != refused or self._clock() >= self._again_at
        ):
            await self._ask()  # a command that fails now is asked at the next refusal
            self._refused, self._again_at = refused, self._clock() + AGAIN_S
        return self.known != refused

    async def _ask(self) -> None:
        """Ask the source, or wait for the answer where it is being asked. Raises KeyUnavailable."""
        loop = asyncio.get_running_loop()
        if self._asking is None or self._asking.get_loop() is not loop:
            self._asking = loop.create_task(self._asked())
        failed = await asyncio.shield(self._asking)
        if failed is not None:
            raise KeyUnavailable(f"{self} gives no key: {failed}")

    async def _asked(self) -> str | None:
        """Take the key that the source tells, in one step with the end of the question; else why there is none."""
        try:
            told = await (_printed(self._command) if self._file is None else asyncio.to_thread(_content, self._file))
            self.known, self._fresh_until = _key_in(told, str(self)), self._clock() + self._ttl_s
        except (OSError, ValueError) as error:
            return getattr(error, "strerror", None) or str(error)
        finally:
            if self._asking is asyncio.current_task():
                self._asking = None
        return None


def _key_in(told: bytes, source: str) -> str:
    """The key that was told; no message shows it from now on. Raises ValueError where it is none."""
    key = told.decode("utf-8", "replace").strip()
    remember(key)
    if not key:
        raise ValueError("it is empty")
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise ValueError("what it holds is no key: one word of plain characters is")
    say_if_shown(f"the key of {source}", key)
    return key


shared_source = functools.lru_cache(maxsize=256)(KeySource)
"""The source of these settings that this process has."""


def _content(file: Path) -> bytes:
    with file.open("rb") as opened:
        return _bounded(opened.read(MAX_SECRET_BYTES + 1))


def _bounded(told: bytes) -> bytes:
    if len(told) > MAX_SECRET_BYTES:
        raise ValueError(f"it holds more than {MAX_SECRET_BYTES} bytes")
    return told


async def _printed(command: tuple[str, ...]) -> bytes:
    """What a command prints; no shell reads its words. Raises OSError, ValueError."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        async with asyncio.timeout(COMMAND_S):
            told, said = await asyncio.gather(_whole(process.stdout), _whole(process.stderr))
            code = await process.wait()
    except TimeoutError:
        raise ValueError(f"killed, as it took longer than {COMMAND_S:g} s") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if code:
        why = " ".join(redacted(said.decode("utf-8", "replace")).split())[-SAID_CHARS:]
        raise ValueError(f"exit code {code}{why and ': '}{why}")
    return told


async def _whole(stream: asyncio.StreamReader) -> bytes:
    """All that is written to a stream. Raises ValueError beyond the limit, so that its writer is ended."""
    read = b""
    while chunk := await stream.read(MAX_SECRET_BYTES):
        read = _bounded(read + chunk)
    return read
