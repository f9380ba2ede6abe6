"""The options that choose among a plan's agents, tasks and samples."""

import functools
from collections.abc import Callable

import click

from eval_client.core.selection import Filters

PATTERN = "May be given several times; *, ? and [...] are wildcards."


def filter_options(command: Callable[..., None]) -> Callable[..., None]:
    """`--task`, `--agent`, `--sample` and `--exclude`, which the command gets as `filters`."""

    @functools.wraps(command)
    def with_filters(
        *arguments: object,
        tasks: tuple[str, ...],
        agents: tuple[str, ...],
        samples: tuple[str, ...],
        exclude: tuple[str, ...],
        **others: object,
    ) -> None:
        command(*arguments, filters=Filters(tasks=tasks, agents=agents, samples=samples, exclude=exclude), **others)

    for option in (
        click.option(
            "--exclude", multiple=True, metavar="ID", help=f"Leave these samples out: ID or TASK/ID. {PATTERN}"
        ),
        click.option(
            "--sample",
            "samples",
            multiple=True,
            metavar="ID",
            help=f"Play only these samples: ID or TASK/ID. {PATTERN}",
        ),
        click.option(
            "--agent", "agents", multiple=True, metavar="NAME", help=f"Play only these agents of the plan. {PATTERN}"
        ),
        click.option(
            "--task", "tasks", multiple=True, metavar="NAME", help=f"Play only these tasks of the plan. {PATTERN}"
        ),
    ):
        with_filters = option(with_filters)
    return with_filters
