"""`proctor compare`: whether one agent is better than another, and how sure that is."""

import functools
import json
import sys
from pathlib import Path

import click
from pydantic import TypeAdapter

from eval_client.cli.common import (
    find_results,
    json_option,
    output_option,
    report_usage_errors,
    store_option,
    write_page,
)
from eval_client.cli.usage import FILE, UsageProblem
from eval_client.report.compare.compare import compare_run, with_gates
from eval_client.report.compare.measure import Settings
from eval_client.report.compare.sides import ACROSS, CompareError, find_pairs, find_side, parse_reference
from eval_client.report.compare.values import Comparison, Comparisons, comparison_tables
from eval_client.store.store import Store
from proctor.tables.command import print_tables

BETWEEN = click.FloatRange(0, 1, min_open=True, max_open=True)
MARGIN = click.FloatRange(0, 1)


def _print_schema(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        schema = TypeAdapter(Comparison | Comparisons).json_schema(mode="serialization")
        click.echo(json.dumps(schema, indent=2))
        context.exit()


@click.command()
@click.argument("sides", metavar="A B | RUN", nargs=-1, required=True)
@output_option
@store_option
@click.option("--against", metavar="AGENT", help="Compare each other agent of RUN with this one alone.")
@click.option("--task", "tasks", metavar="NAME", multiple=True, help="Compare on this task; repeatable.")
@click.option("--alpha", type=BETWEEN, default=0.05, show_default=True, help="Level of tests and intervals.")
@click.option("--power", type=BETWEEN, default=0.8, show_default=True, help="Power of the detectable difference.")
@click.option("--pass-at", type=MARGIN, default=1.0, show_default=True, help="Least score of a trial that is passed.")
@click.option("--bootstrap", type=click.IntRange(min=1000), metavar="N", help="Also draw N bootstrap samples.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of drawn sign flips and the bootstrap.")
@click.option(
    "--across",
    type=click.Choice(ACROSS),
    multiple=True,
    help="Compare although the two sides differ in this; repeatable.",
)
@json_option
@click.option(
    "--schema", is_flag=True, is_eager=True, expose_value=False, callback=_print_schema, help="Print its JSON Schema."
)
@click.option(
    "--html",
    type=FILE,
    metavar="FILE",
    help="Write the comparison to a file too, with plots: one page without script or network.",
)
@click.option(
    "--fail-if-worse",
    "if_worse",
    type=MARGIN,
    metavar="MARGIN",
    help="Exit with 1 where B is surely worse than A by more than this, on any task.",
)
@click.option(
    "--fail-unless-as-good",
    "unless_as_good",
    type=MARGIN,
    metavar="MARGIN",
    help="Exit with 1 unless B is surely not worse than A by more than this, on every task.",
)
def compare(
    sides: tuple[str, ...],
    output: Path,
    store: str | None,
    against: str | None,
    tasks: tuple[str, ...],
    alpha: float,
    power: float,
    pass_at: float,
    bootstrap: int | None,
    seed: int,
    across: tuple[str, ...],
    as_json: bool,
    html: Path | None,
    if_worse: float | None,
    unless_as_good: float | None,
) -> None:
    """Compare agents A and B, or all pairs of agents of RUN.

    A and B are RUN, RUN:AGENT, RUN:AGENT@TASK, or :AGENT of the latest run. RUN is a folder, a name, or `latest`, or
    the parts of a plan: the name that they share, or their names with commas between them. In CI, A is the baseline.
    Exit codes: 0, 1 where B fails a gate, 2 where the two can't be compared.
    """
    settings = Settings(
        alpha=alpha, power=power, pass_at=pass_at, bootstrap=bootstrap or 0, seed=seed, across=across, tasks=tasks
    )
    gated = if_worse is not None or unless_as_good is not None
    if len(sides) > 2 or (len(sides) == 2 and against is not None) or (len(sides) == 1 and gated):
        raise UsageProblem(
            "name two agents, A and B, or one run whose agents are compared with each other; --against needs one run; "
            "a gate needs A, the baseline, and B"
        )
    found: Comparison | Comparisons

    @functools.cache
    def open_run(run: str) -> Store:
        parts = run.split(",")
        return find_results([run] if len(parts) < 2 or Path(run).exists() else parts, store, output)[0]

    with report_usage_errors():
        try:
            if len(sides) == 1:
                pairs = find_pairs(parse_reference(sides[0]), against, open_run)
                found = compare_run(pairs, settings, lettered=against is None)
            else:
                a, b = (find_side(parse_reference(side), open_run) for side in sides)
                found = with_gates(
                    compare_run([(a, b)], settings, lettered=False).comparisons[0], if_worse, unless_as_good
                )
        except CompareError as error:
            raise UsageProblem(str(error)) from error
    if html is not None:
        from eval_client.view.saved import comparison_page  # the templates' library is loaded only here

        write_page(comparison_page(found, settings), html)
    if as_json:
        click.echo(found.model_dump_json())
    else:
        _print(found)
    sys.exit(1 if isinstance(found, Comparison) and found.gates else 0)


def _print(found: Comparison | Comparisons) -> None:
    each = [found] if isinstance(found, Comparison) else found.comparisons
    if unlike := dict.fromkeys(text for one in each for text in one.alike):
        click.echo(f"NOT ALIKE: {'; '.join(unlike)}\n")
    print_tables(comparison_tables(found), "text")
    for line in (line for one in each for line in one.gates):
        click.echo(f"FAILED {line}")
