"""What the commands share: options, where runs lie, and how mistakes are told."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import click
import sqlalchemy as sa

from eval_client.cli.usage import UsageProblem, files_told
from eval_client.store.connection import StoreError
from proctor.config.secrets import secret_text

STORE = "PROCTOR_STORE"
_PASSWORD = re.compile(r"://[^/@]*:[^/]*@|[?&]password=")


def _store_url(_context: click.Context, _option: click.Parameter, given: str | None) -> str | None:
    try:
        if given and _PASSWORD.search(given):
            raise UsageProblem(
                f"--store: everybody on this machine can read a password there; put the URL into {STORE}, or into a "
                f"file that {STORE}_FILE names"
            )
        return given or secret_text(STORE) or None
    except ValueError as error:
        raise UsageProblem(str(error)) from error


store_option = click.option(
    "--store",
    callback=_store_url,
    metavar="URL",
    help="Database server for runs (postgresql+psycopg://, mysql+pymysql://), better given as PROCTOR_STORE or in the "
    "file that PROCTOR_STORE_FILE names, since it may hold a password. Default: SQLite in the run's folder.",
)
output_option = click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="Folder of the runs.",
)
plan_argument = click.argument("plan", type=click.Path(dir_okay=False, path_type=Path))
limit_option = click.option("--limit", type=click.IntRange(min=1), help="Play only the first N samples of each task.")
set_option = click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Override a field of the plan, for example limits.run.money=5 or agents.gpt.concurrency=4.",
)
shards_option = click.option(
    "--shards",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Clients on this machine that work on the run together, each a process; more than 1 needs PostgreSQL.",
)
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print only the report and errors.")


@contextlib.contextmanager
def report_usage_errors() -> Iterator[None]:
    """Turn mistakes the user can mend into one message, those about a store too."""
    try:
        with files_told():
            yield
    except StoreError as error:
        raise UsageProblem(str(error)) from error
    except sa.exc.SQLAlchemyError as error:
        raise UsageProblem(
            f"the store can't be used: {getattr(error, 'orig', None) or type(error).__name__}"
        ) from error
