"""How the commands tell mistakes that the user can mend."""

import contextlib
from collections.abc import Iterator

import click

from proctor.config.yaml import FileError
from proctor.observability.redaction import redacted


class UsageProblem(click.ClickException):
    """A mistake the user can mend: one message, exit code 2."""

    exit_code = 2

    def __init__(self, message: str) -> None:
        super().__init__(redacted(message))


@contextlib.contextmanager
def files_told() -> Iterator[None]:
    """Turn mistakes in files that the user wrote into one message."""
    try:
        yield
    except FileError as error:
        raise UsageProblem(str(error)) from error
