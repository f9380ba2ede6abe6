"""What `proctor run` says before the start: the problems that show at once, each with its fix."""

from pathlib import Path

import click

from eval_client.doctor.finding import Status
from eval_client.doctor.quick import quick_problems
from eval_client.plan.plan import Plan
from proctor import event_loop


def print_problems(plan: Plan, output: Path, store: str | None, *, quiet: bool) -> None:
    """Print a line on standard error for each problem; with `quiet`, for those alone that leave trials unscored."""
    for each in event_loop.run(quick_problems(plan, output, store)):
        if each.status is Status.FAIL or not quiet:
            kind = "problem" if each.status is Status.FAIL else "warning"
            click.echo(f"{kind}: {each.what}; {each.why}; fix: {each.fix}", err=True)
