"""What happens when a run ends: the plan's `on_end` is run."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from eval_client.cli.main import CRASHED
from eval_client.cli.manage.ls import run_state
from eval_client.on_end import run_on_end
from eval_client.run_request import RunRequest
from eval_client.store.connection import DatabaseError, StoreError
from proctor.observability.redaction import redacted

if TYPE_CHECKING:
    from rich.console import Console


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
