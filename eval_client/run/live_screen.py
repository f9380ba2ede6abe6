"""The live screen of a run on a terminal."""

import contextlib
from collections.abc import Callable, Iterator

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from eval_client.core.run_view import RunView, clock
from proctor.tables.table import money_text


@contextlib.contextmanager
def live(console: Console, now: Callable[[], RunView]) -> Iterator[Callable[[], None]]:
    """Show the present view while inside; yields a function that refreshes it."""

    with Live(
        _table(now()), console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
    ) as shown:
        yield lambda: shown.update(_table(now()), refresh=True)


def _table(run: RunView) -> Group:
    """A view as the screen's content."""
    bar = ProgressBar(total=max(1, run.planned), completed=run.done, width=40)
    head = Table.grid(padding=(0, 2))
    head.add_row(Text(run.run, "bold"), bar, f"{run.done}/{run.planned}", f"left {clock(run.left_s)}")
    rows = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("agent", "task"):
        rows.add_column(name)
    for name in ("done", "running", "unscored", "mean score"):
        rows.add_column(name, justify="right")
    rows.add_column("waits for", overflow="fold")
    for pair in run.pairs:
        rows.add_row(
            pair.agent,
            pair.task,
            f"{pair.done}/{pair.planned}",
            str(pair.running),
            str(pair.unscored),
            "-" if pair.mean is None else f"{pair.mean:.3f}",
            pair.waits_for or "",
        )
    used = "  ".join(f"{name} {taken}/{capacity}" for name, (taken, capacity) in run.use.items())
    tokens = f"tokens {run.prompt_tokens:,} in, {run.completion_tokens:,} out"
    money = f"  money {money_text(run.money)}" if run.money else ""
    foot = f"turns {run.turns}  retries {run.retries}  attempts lost {run.attempts_lost}  {tokens}{money}"
    troubles = (Text(trouble, "yellow") for trouble in run.troubles)
    return Group(head, rows, *map(Text, (used, foot, *run.shared)), *troubles)
