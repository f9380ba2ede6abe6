"""Reports usage errors of commands: one message, exit code 2."""

import contextlib
from collections.abc import Iterator

import click

from proctor.config.yaml import FileError
from proctor.observability.redaction import redacted


class UsageProblem(click.ClickException):
    """An error that the user can correct: one message, exit code 2."""

    exit_code = 2

    def __init__(self, message: str) -> None:
        super().__init__(redacted(message))


@contextlib.contextmanager
def report_file_errors() -> Iterator[None]:
    """Turn errors in files that the user wrote into UsageProblem."""
    try:
        yield
    except FileError as error:
        raise UsageProblem(str(error)) from error
