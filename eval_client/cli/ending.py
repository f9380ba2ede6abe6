"""What happens when a run ends: the plan's `on_end` is run."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from eval_client.cli.main import CRASHED
from eval_client.cli.manage.ls import run_state
from eval_client.endpoints.chat_configs import LOCAL_TOKEN_ENV
from eval_client.run.request import RunRequest
from eval_client.store.connection import DatabaseError, StoreError
from proctor.observability.descriptors import give_back
from proctor.observability.redaction import redacted

if TYPE_CHECKING:
    from rich.console import Console

ON_END_S = 60.0
STANDARD_ERROR = 2


@dataclass
class RunEnd(contextlib.AbstractContextManager[None]):
    """Runs the plan's `on_end` when a run ends that began inside, however it ended."""

    _request: RunRequest
    _errors: Callable[[], "Console"]
    begun: bool = False
    stopped: str = ""

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        command = self._request.plan.on_end
        if not command or not self.begun:
            return
        if failed := run_on_end(command, self._facts(error)):
            self._errors().print(f"on_end: {failed}", style="yellow", soft_wrap=True)

    def _facts(self, error: BaseException | None) -> dict[str, str]:
        state = "unknown"
        with contextlib.suppress(DatabaseError, StoreError):
            state = run_state(self._request.store)
        return {
            "PROCTOR_RUN": str(self._request.folder.resolve()),
            "PROCTOR_STATE": state,
            "PROCTOR_EXIT_CODE": str(_exit_code(error)),
            "PROCTOR_STOPPED": redacted(self.stopped),
        }


def _exit_code(error: BaseException | None) -> int:
    """The exit code of a process that ends by this error."""
    match error:
        case SystemExit(code=int(code)):
            return code
        case click.ClickException(exit_code=code):
            return code
    return CRASHED


def run_on_end(command: Sequence[str], facts: Mapping[str, str], longest_s: float = ON_END_S) -> str | None:
    """Run the command with `facts` as environment variables; why it failed, None if it did not.

    It reads nothing, writes to standard error, and is killed with its children after `longest_s`.
    """
    try:
        process = subprocess.Popen(
            command,
            env={name: text for name, text in {**os.environ, **facts}.items() if name != LOCAL_TOKEN_ENV},
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
