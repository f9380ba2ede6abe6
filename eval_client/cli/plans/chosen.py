"""The options that choose among a plan's agents, tasks and samples."""

import functools
from collections.abc import Callable
from typing import Any

import click

from eval_client.core.selection import Filters

PATTERN = "May be given several times; *, ? and [...] are wildcards."
OPTIONS = {
    "tasks": ("--task", "NAME", "Play only these tasks of the plan."),
    "agents": ("--agent", "NAME", "Play only these agents of the plan."),
    "samples": ("--sample", "ID", "Play only these samples: ID or TASK/ID."),
    "exclude": ("--exclude", "ID", "Leave these samples out: ID or TASK/ID."),
}
"""field of `Filters` -> its option, with what that takes and its help"""


def filter_options(command: Callable[..., None]) -> Callable[..., None]:
    """`--task`, `--agent`, `--sample` and `--exclude`, which the command gets as `filters`."""

    @functools.wraps(command)
    def with_filters(*arguments: object, **options: Any) -> None:
        command(*arguments, filters=Filters(**{field: options.pop(field) for field in OPTIONS}), **options)

    wrapped: Callable[..., None] = with_filters
    for field, (flag, takes, text) in reversed(OPTIONS.items()):
        wrapped = click.option(flag, field, multiple=True, metavar=takes, help=f"{text} {PATTERN}")(wrapped)
    return wrapped
