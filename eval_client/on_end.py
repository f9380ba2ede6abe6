"""The command of a plan that is run when a run ends, for notifications."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import AfterValidator, Field

from proctor.llm.config import no_key
from proctor.observability.descriptors import give_back

OnEnd = Annotated[
    tuple[Annotated[str, Field(min_length=1), AfterValidator(no_key)], ...],
    Field(exclude_if=lambda words: not words),
]
"""A program and its arguments; no shell reads them."""
ON_END_S = 60.0
STANDARD_ERROR = 2


def run_on_end(command: Sequence[str], facts: Mapping[str, str], longest_s: float = ON_END_S) -> str | None:
    """Run the command with `facts` as environment variables; why it failed, None if it did not.

    It reads nothing, writes to standard error, and is killed with its children after `longest_s`.
    """
    try:
        process = subprocess.Popen(
            command,
            env={**os.environ, **facts},
            stdin=subprocess.DEVNULL,
            stdout=STANDARD_ERROR,
            start_new_session=True,
        )
        give_back(process.pid)
    except OSError as error:
        return f"{command[0]}: {error.strerror}"
    try:
        code = process.wait(longest_s)
    except subprocess.TimeoutExpired:
        return f"{command[0]}: killed, as it took longer than {longest_s:g} s"
    finally:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return None if code == 0 else f"{command[0]}: exit code {code}"
