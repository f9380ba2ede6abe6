"""Options of several commands, and their report of usage errors."""

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from eval_client.cli.usage import FILE, UsageProblem, report_file_errors
from eval_client.core.progress import ErrorLimit
from eval_client.core.selection import SelectionError
from eval_client.store.connection import DatabaseError, StoreError, reason
from eval_client.store.runs import find_parts, find_run
from eval_client.store.store import Store
from proctor.config.secrets import secret_text

Command = TypeVar("Command", bound=Callable[..., Any])
STORE = "PROCTOR_STORE"
MOST_PARTS = 10_000
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


def _usable_folder(_context: click.Context, _option: click.Parameter, output: Path) -> Path:
    try:
        output.stat()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise UsageProblem(f"-o {output}: {error.strerror}; name another folder") from error
    return output


output_option = click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    callback=_usable_folder,
    default=Path("runs"),
    show_default=True,
    help="Folder of the runs.",
)
run_argument = click.argument("run", metavar="[RUN]", default="latest")
limit_option = click.option(
    "--limit", type=click.IntRange(min=1), help="Play only N samples of each task, spread over its categories."
)
set_option = click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Override a field of the plan, for example limits.run.money=5 or tasks.db.parameters.engine=sqlite.",
)


def plan_at_hand_options(command: Command) -> Command:
    """Which plan to go on with, where the run's own is not known to be this user's."""
    trust = click.option(
        "--trust-stored-plan",
        is_flag=True,
        help="Act on the plan in the run's store: whoever wrote it may run commands here, and gets the keys it names.",
    )
    plan = click.option(
        "--plan",
        "plan_path",
        type=FILE,
        help="The plan's file, if it has moved, or the run is from another machine; it must agree with the run in "
        "everything that shapes a trial.",
    )
    return plan(trust(command))


def _error_limit(_context: click.Context, _option: click.Parameter, given: str | None) -> ErrorLimit | None:
    try:
        return None if given is None else ErrorLimit.read(given)
    except ValueError as error:
        raise UsageProblem(f"--fail-on-error {error}") from error


def _part(_context: click.Context, _option: click.Parameter, given: str | None) -> tuple[int, int] | None:
    if given is None:
        return None
    found = re.fullmatch(r"([0-9]{1,5})(\+1)?/([0-9]{1,5})", given)
    number, of = (int(found[1]) + bool(found[2]), int(found[3])) if found else (0, 0)
    if not 1 <= number <= of <= MOST_PARTS:
        raise UsageProblem(f"--part {given}: write K/N, part K of N, from 1/N to N/N, N at most {MOST_PARTS}")
    return number, of


part_option = click.option(
    "--part",
    metavar="K/N",
    callback=_part,
    help="Play part K of N of the samples, as the run NAME.KofN; other machines play the others. K+1/N counts from 0. "
    "Needs --name.",
)
fail_on_error_option = click.option(
    "--fail-on-error",
    metavar="N|SHARE",
    callback=_error_limit,
    help="End the run early once N trials, or a share of them such as 10%, are unscored; `resume` goes on.",
)
in_process_option = click.option(
    "--in-process", is_flag=True, help="Play the tasks in this process, without workers: for worlds under development."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON value instead of text.")
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print only the report and errors.")


def write_page(page: str, file: Path) -> None:
    """Write what --html asks for."""
    try:
        file.write_bytes(page.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise UsageProblem(f"--html {file}: {error.strerror}; name a file in a folder that can be written") from error


@contextlib.contextmanager
def report_usage_errors() -> Iterator[None]:
    """Turn errors in the user's files and of the store into UsageProblem: one message, exit code 2."""
    try:
        with report_file_errors():
            yield
    except (SelectionError, StoreError) as error:
        raise UsageProblem(str(error)) from error
    except DatabaseError as error:
        raise UsageProblem(f"the store can't be used: {reason(error)}") from error


def find_results(names: Sequence[str], store: str | None, output: Path, *, texts: bool = False) -> list[Store]:
    """The runs of these names, each once: parts of a plan as one run, with what was said if `texts`.

    A name may be that of a plan's parts together. Raises StoreError, DatabaseError.
    """
    found = [each for name in names for each in find_parts(name, store, output) or _run_or_parts(name, store, output)]
    if any(each.manifest().part is not None for each in found):
        from eval_client.report.task_environment import one_run  # 60 ms of CPU, for the parts of a plan alone

        return [one_run(found, texts=texts)]
    named: dict[str, Store] = {}
    for each in found:
        if named.setdefault(each.run, each).engine.url != each.engine.url:
            raise StoreError(f"{each.run}: another run of that name is given too; rename the folder of one")
    return list(named.values())


def _run_or_parts(name: str, store: str | None, output: Path) -> list[Store]:
    """A run; where `latest` is a part, all parts that are there."""
    found, _ = find_run(name, store, output)
    if name != "latest" or (part := found.manifest().part) is None:
        return [found]
    return find_parts(part.plan, store, output)
