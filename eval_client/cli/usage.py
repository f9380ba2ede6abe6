"""What commands share: the type of a file, the report of usage errors, and calls that may block for ever."""

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ParamSpec, TypeVar

import click

from proctor.config.yaml import FileError
from proctor.observability.redaction import redacted

P = ParamSpec("P")
T = TypeVar("T")
FILE = click.Path(dir_okay=False, path_type=Path)
"""The type of an option or argument that names a file."""


class UsageProblem(click.ClickException):
    """An error that the user can correct: one message, exit code 2."""

    exit_code = 2

    def __init__(self, message: str) -> None:
        super().__init__(redacted(message))


@contextlib.contextmanager
def report_file_errors() -> Iterator[None]:
    """Turn errors in files that the user wrote, and what the system refuses of a file, into UsageProblem."""
    try:
        yield
    except FileError as error:
        raise UsageProblem(str(error)) from error
    except OSError as error:
        if error.errno is None:
            raise
        raise UsageProblem(": ".join(map(str, filter(None, (error.filename, error.strerror))))) from error


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a blocking function in a daemon thread, so that one that hangs does not block the process's exit."""
    done = concurrent.futures.Future[T]()
    done.set_running_or_notify_cancel()  # a thread can't be called off

    def work() -> None:
        try:
            done.set_result(function(*args, **kwargs))
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return await asyncio.wrap_future(done)
