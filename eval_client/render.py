"""Shows a report: tables on a terminal."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from eval_client.report import VALIDITY, PairReport, RunReport


def show(report: RunReport, console: Console) -> None:
    """Print the leaderboards, then validity and costs, then what went wrong."""
    for task in dict.fromkeys(pair.task for pair in report.pairs):
        pairs = [pair for pair in report.pairs if pair.task == task]
        console.print(_leaderboard(task, pairs))
        _print_notes(pairs, console)
    console.print(_validity(report))
    console.print(_costs(report))
    _print_faults(report, console)


def _leaderboard(task: str, pairs: list[PairReport]) -> Table:
    title = f"{task} ({pairs[0].environment})"
    table = Table(title=escape(title), title_justify="left", title_style="bold")
    table.add_column("agent")
    for name in (pairs[0].primary, "± s.e.", "scored", "coverage"):
        table.add_column(name, justify="right")
    extra = [name for name in pairs[0].metrics if name != pairs[0].primary]
    table.add_column("further metrics", overflow="fold")
    for pair in pairs:
        table.add_row(
            escape(pair.agent),
            _figure(pair.value),
            _figure(pair.standard_error),
            f"{pair.scored}/{pair.planned}",
            f"{pair.coverage:.0%}",
            escape("  ".join(f"{name} {pair.metrics[name]:.3f}" for name in extra if name in pair.metrics)),
        )
    return table


def _print_notes(pairs: list[PairReport], console: Console) -> None:
    comparable = [f"Not comparable with published scores: {pair.comparable}" for pair in pairs if pair.comparable]
    for note in dict.fromkeys(comparable + [note for pair in pairs for note in pair.notes]):
        console.print(f"  note: {escape(note)}", style="dim")


def _validity(report: RunReport) -> Table:
    table = Table(title="validity: shares of the scored trials", title_justify="left", title_style="bold")
    for name in ("agent", "task"):
        table.add_column(name)
    for reason in VALIDITY:
        table.add_column(reason.replace("_", " "), justify="right")
    table.add_column("faults", justify="right")
    for pair in report.pairs:
        shares = (f"{pair.validity[reason]:.0%}" if pair.validity else "-" for reason in VALIDITY)
        table.add_row(escape(pair.agent), escape(pair.task), *shares, str(sum(pair.faults.values())))
    return table


def _costs(report: RunReport) -> Table:
    table = Table(title="costs of the finished trials", title_justify="left", title_style="bold")
    for name in ("agent", "task"):
        table.add_column(name)
    for name in ("turns", "tokens in", "tokens out", "money", "seconds per trial"):
        table.add_column(name, justify="right")
    for pair in report.pairs:
        ended = pair.scored + sum(pair.faults.values())
        table.add_row(
            escape(pair.agent),
            escape(pair.task),
            f"{pair.turns:,}",
            f"{pair.prompt_tokens:,}",
            f"{pair.completion_tokens:,}",
            "-" if pair.money is None else f"{pair.money:.2f}",
            f"{pair.seconds / ended:.2f}" if ended else "-",
        )
    return table


def _print_faults(report: RunReport, console: Console) -> None:
    for pair in report.pairs:
        for cause, count in sorted(pair.faults.items(), key=lambda item: -item[1]):
            console.print(f"unscored: {count} of {escape(pair.agent)} on {escape(pair.task)}: {escape(cause)}")


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
