"""What every command shares: the type of a file, and the report of usage errors."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import click

from proctor.config.yaml import FileError
from proctor.observability.redaction import redacted

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
