"""Prints a report as tables on a terminal."""

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from eval_client.report.report import VALIDITY, PairReport, RunReport
from proctor.summary import NOT_UNDERSTOOD

SHORT = {
    "turn_limit": "turn limit",
    "invalid_format": "bad format",
    "invalid_action": "bad action",
    "context_limit": "context",
}


def report_console() -> Console:
    """The console for reports: the terminal, or 120 columns wide where standard output is none."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=120)


def show(report: RunReport, console: Console, *, full: bool) -> None:
    """Print, task by task, the leaderboard and, in full, the environment's metrics; then validity, costs, faults."""
    for task in dict.fromkeys(pair.task for pair in report.pairs):
        pairs = [pair for pair in report.pairs if pair.task == task]
        console.print(_leaderboard(task, pairs))
        _print_notes(pairs, console)
        if full:
            console.print(_metrics(pairs))
    console.print(_validity(report))
    console.print(_costs(report))
    if any(pair.helpers for pair in report.pairs):
        console.print(_helper_costs(report))
    _print_faults(report, console)


def _table(title: str, left: tuple[str, ...], right: tuple[str, ...]) -> Table:
    """An empty table with left- and right-aligned columns."""
    table = Table(title=escape(title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in left:
        table.add_column(escape(name), no_wrap=True)
    for name in right:
        table.add_column(escape(name), justify="right")
    return table


def _leaderboard(task: str, pairs: list[PairReport]) -> Table:
    right = (pairs[0].primary, "± s.e.", "scored", "coverage")
    protocol = "" if pairs[0].protocol == "text" else f", {pairs[0].protocol}"
    table = _table(f"{task} ({pairs[0].environment}{protocol})", ("agent",), right)
    for pair in pairs:
        scored = f"{pair.scored}/{pair.planned}"
        cells = (_decimal(pair.value), _decimal(pair.standard_error), scored, f"{pair.coverage:.0%}")
        table.add_row(escape(pair.agent), *cells)
    return table


def _metrics(pairs: list[PairReport]) -> Table:
    table = _table("", ("metric",), tuple(pair.agent for pair in pairs))
    for name in dict.fromkeys(name for pair in pairs for name in pair.metrics):
        values = [pair.metrics.get(name) if pair.scored else None for pair in pairs]
        table.add_row(escape(name), *_metric_cells(values))
    return table


def _print_notes(pairs: list[PairReport], console: Console) -> None:
    comparable = [f"Not comparable with published scores: {pair.comparable}" for pair in pairs if pair.comparable]
    for note in dict.fromkeys(comparable + [note for pair in pairs for note in pair.notes]):
        console.print(f"  note: {escape(note)}", style="dim", soft_wrap=True)


def _validity(report: RunReport) -> Table:
    title = "validity: shares of the scored trials; replies whose form was not understood; unscored trials"
    right = (*(SHORT.get(reason, reason) for reason in VALIDITY), "bad replies", "faults")
    table = _table(title, ("agent", "task"), right)
    for pair in report.pairs:
        shares = (f"{pair.validity[reason]:.0%}" if pair.validity else "-" for reason in VALIDITY)
        bad = pair.metrics.get(NOT_UNDERSTOOD)
        counts = ("-" if bad is None else f"{bad:.0f}", str(sum(pair.faults.values())))
        table.add_row(escape(pair.agent), _task(pair), *shares, *counts)
    return table


def _costs(report: RunReport) -> Table:
    right = ("turns", "tokens in", "cached", "tokens out", "reasoning", "money", "s per trial")
    table = _table("costs of the finished trials", ("agent", "task"), right)
    for pair in report.pairs:
        ended = pair.scored + sum(pair.faults.values())
        table.add_row(
            escape(pair.agent),
            _task(pair),
            f"{pair.turns:,}",
            f"{pair.prompt_tokens:,}",
            _count(pair.cached_tokens),
            f"{pair.completion_tokens:,}",
            _count(pair.reasoning_tokens),
            "-" if pair.money is None else f"{pair.money:.2f}",
            f"{pair.seconds / ended:.2f}" if ended else "-",
        )
    return table


def _helper_costs(report: RunReport) -> Table:
    title = "costs of the tasks' own models (judges, hosts, users), over all trials"
    table = _table(title, ("agent", "task", "model"), ("calls", "tokens in", "tokens out", "money"))
    for pair in report.pairs:
        for cost in pair.helpers:
            table.add_row(
                escape(pair.agent),
                _task(pair),
                escape(cost.model),
                f"{cost.calls:,}",
                f"{cost.prompt_tokens:,}",
                f"{cost.completion_tokens:,}",
                "-" if cost.money is None else f"{cost.money:.2f}",
            )
    return table


def _print_faults(report: RunReport, console: Console) -> None:
    for pair in report.pairs:
        for cause, count in sorted(pair.faults.items(), key=lambda item: -item[1]):
            console.print(
                f"unscored: {count} of {escape(pair.agent)} on {_task(pair)}: {escape(cause)}", soft_wrap=True
            )


def _task(pair: PairReport) -> str:
    """The pair's task, with its protocol where that is not text."""
    return escape(pair.task if pair.protocol == "text" else f"{pair.task} ({pair.protocol})")


def _metric_cells(values: list[float | None]) -> list[str]:
    """The cells of one row in one format: counts as whole numbers, other values with three decimals."""
    counts = all(value is None or value == int(value) for value in values) and max(v or 0.0 for v in values) > 1
    return ["-" if value is None else f"{value:.0f}" if counts else f"{value:.3f}" for value in values]


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
