"""Options of several commands, and their report of usage errors."""

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click
import sqlalchemy as sa

from eval_client.cli.usage import UsageProblem, report_file_errors
from eval_client.core.error_limit import ErrorLimit
from eval_client.core.selection import SelectionError
from eval_client.store.connection import StoreError
from proctor.config.secrets import secret_text

Command = TypeVar("Command", bound=Callable[..., Any])
STORE = "PROCTOR_STORE"
_PASSWORD = re.compile(r"://[^/@]*:[^/]*@|[?&]password=")


def _store_url(_context: click.Context, _option: click.Parameter, given: str | None) -> str | None:
    try:
        check_no_password("--store", given, STORE)
        return given or secret_text(STORE) or None
    except ValueError as error:
        raise UsageProblem(str(error)) from error


def check_no_password(option: str, url: str | None, variable: str) -> None:
    """Raises UsageProblem if a URL on the command line has a password; it belongs into the variable."""
    if url and _PASSWORD.search(url):
        raise UsageProblem(
            f"{option}: every user of this machine can read a password on the command line; put the URL into "
            f"{variable}, or into a file that {variable}_FILE names"
        )


store_option = click.option(
    "--store",
    callback=_store_url,
    metavar="URL",
    help="Database server for runs (postgresql+psycopg://, mysql+pymysql://). A URL with a password goes into "
    "PROCTOR_STORE, or into the file that PROCTOR_STORE_FILE names. Default: SQLite in the run's folder.",
)
output_option = click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="Folder of the runs.",
)
run_argument = click.argument("run", metavar="[RUN]", default="latest")
limit_option = click.option(
    "--limit", type=click.IntRange(min=1), help="Play only N samples of each task, spread over its categories."
)


_PARAMETERS = "eval_client.cli.parameters"
"""Where `-T` leaves its overrides for `--set`, in the command's `meta`."""


def _keep_parameters(context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> None:
    context.meta[_PARAMETERS] = tuple(map(_parameter_override, given))


def _parameter_override(given: str) -> str:
    task, dot, rest = given.partition(".")
    parameter, equals, value = rest.partition("=")
    if not (task and dot and parameter and equals) or "=" in task:
        raise UsageProblem(f"-T {given}: write it as TASK.PARAMETER=VALUE, such as -T db.engine=sqlite")
    return f"tasks.{task}.parameters.{parameter}={value}"


def _with_parameters(context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    return (*context.meta.get(_PARAMETERS, ()), *given)


def set_option(command: Command) -> Command:
    """`--set` and its short form for parameters of tasks, `-T`: both end in `overrides`, those of `-T` first."""
    short = click.option(
        "-T",
        multiple=True,
        metavar="TASK.PARAMETER=VALUE",
        is_eager=True,
        expose_value=False,
        callback=_keep_parameters,
        help="Short for --set tasks.TASK.parameters.PARAMETER=VALUE, for example -T db.engine=sqlite.",
    )
    long = click.option(
        "--set",
        "overrides",
        multiple=True,
        metavar="FIELD=VALUE",
        callback=_with_parameters,
        help="Override a field of the plan, for example limits.run.money=5 or agents.gpt.concurrency=4.",
    )
    return long(short(command))


shards_option = click.option(
    "--shards",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Client processes on this machine that play the run together; more than 1 needs PostgreSQL.",
)


def _error_limit(_context: click.Context, _option: click.Parameter, given: str | None) -> ErrorLimit | None:
    try:
        return None if given is None else ErrorLimit.read(given)
    except ValueError as error:
        raise UsageProblem(f"--fail-on-error {error}") from error


fail_on_error_option = click.option(
    "--fail-on-error",
    metavar="N|SHARE",
    callback=_error_limit,
    help="End the run early once N trials, or a share of them such as 10%, are unscored; `resume` goes on.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON value instead of text.")
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print only the report and errors.")


@contextlib.contextmanager
def report_usage_errors() -> Iterator[None]:
    """Turn errors in the user's files and of the store into UsageProblem: one message, exit code 2."""
    try:
        with report_file_errors():
            yield
    except (SelectionError, StoreError) as error:
        raise UsageProblem(str(error)) from error
    except sa.exc.SQLAlchemyError as error:
        raise UsageProblem(
            f"the store can't be used: {getattr(error, 'orig', None) or type(error).__name__}"
        ) from error
