"""`proctor report --html` and `proctor compare --html`: write a report or a comparison to a file."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eval_client.cli.usage import UsageProblem
from eval_client.store.store import Store

if TYPE_CHECKING:
    from eval_client.report.compare.measure import Settings
    from eval_client.report.compare.values import Comparison, Comparisons


def trial_ids(_context: click.Context, _option: click.Parameter, given: str) -> tuple[int, ...]:
    """The value of an option that takes trial ids with commas between them. Raises BadParameter."""
    texts = [text.strip() for text in given.split(",") if text.strip()]
    if wrong := [text for text in texts if not (text.isascii() and text.isdigit())]:
        raise click.BadParameter(f"{wrong[0]!r} is no trial's id; write ids with commas, such as 3,17")
    return tuple(dict.fromkeys(map(int, texts)))


def write_html(stores: Sequence[Store], file: Path, *, title: str | None, samples: bool, trials: Sequence[int]) -> None:
    """Write the report of the one run, and print the file's name. Raises StoreError, DatabaseError."""
    from eval_client.view.saved import report_page  # the templates' library is loaded only here

    if len(stores) > 1:
        raise UsageProblem(f"--html: a file holds one run, and {len(stores)} are named; write a file for each")
    _write(report_page(stores[0], title=title, samples=samples, trials=trials), file)
    click.echo(f"report: {file}")


def write_comparison(found: "Comparison | Comparisons", settings: "Settings", file: Path) -> None:
    """Write a comparison."""
    from eval_client.view.saved import comparison_page  # the templates' library is loaded only here

    _write(comparison_page(found, settings), file)


def _write(text: str, file: Path) -> None:
    try:
        file.write_bytes(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise UsageProblem(f"--html {file}: {error.strerror}; name a file in a folder that can be written") from error
