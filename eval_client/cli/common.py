"""What the commands share: options, where runs lie, and how mistakes are told."""

import contextlib
import datetime
import re
import secrets
from collections.abc import Iterator
from pathlib import Path

import click
import sqlalchemy as sa

from environments.chat.settings import secret_text
from environments.definition import NAME
from environments.yaml_file import FileError
from eval_client.cli.usage import UsageProblem, files_told
from eval_client.store.connection import StoreError, connect, runs, sqlite_url
from eval_client.store.store import Store

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
def told() -> Iterator[None]:
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


def new_name(plan: str) -> str:
    """A name for a new run: the plan's, the time, and four hex digits."""
    now = datetime.datetime.now(datetime.UTC)
    return f"{plan[:40]}-{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def checked_name(name: str) -> str:
    """The name of a run, as it was given. Raises FileError where it can't be one."""
    if not re.fullmatch(NAME, name):
        raise FileError(f"--name {name}: use up to 64 letters, digits, dots, dashes and underscores")
    return name


def open_store(store: str | None, folder: Path) -> Store:
    """The store of a run; its name is the folder's."""
    url = store
    if url is None:
        folder.mkdir(parents=True, exist_ok=True)
        url = sqlite_url(folder)
    return Store(connect(url), folder.name)


def find_run(run: str, store: str | None, output: Path) -> tuple[Store, Path]:
    """An existing run and its folder: by path, by name, or `latest`. Raises StoreError."""
    if store is not None:
        engine = connect(store)
        names = [name for name, _, _ in runs(engine)]
        name = names[-1] if run == "latest" and names else Path(run).name
        return Store(engine, name), output / name
    folder = latest(output) if run == "latest" else next((f for f in (Path(run), output / run) if _is_run(f)), None)
    if folder is None:
        raise StoreError(f"no run {run!r}: neither a run's folder nor a name in {output}; `proctor ls` lists the runs")
    return Store(connect(sqlite_url(folder)), folder.resolve().name), folder


def run_folders(output: Path) -> list[Path]:
    """The folders of all runs, the one begun first first; such as can't be read before them."""
    if not output.is_dir():
        return []
    return sorted((folder for folder in output.iterdir() if _is_run(folder)), key=_begun)


def _begun(folder: Path) -> tuple[str, str]:
    try:
        return Store(connect(sqlite_url(folder)), folder.name).created_at(), folder.name
    except (StoreError, sa.exc.SQLAlchemyError):
        return "", folder.name


def latest(output: Path) -> Path | None:
    """The run begun last, or None."""
    folders = run_folders(output)
    return folders[-1] if folders else None


def _is_run(folder: Path) -> bool:
    return (folder / "run.sqlite").is_file()
