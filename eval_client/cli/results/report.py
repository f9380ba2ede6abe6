"""`proctor report`: the results of runs."""

from pathlib import Path

import click

from eval_client.cli.common import find_results, output_option, report_usage_errors, store_option, write_page
from eval_client.cli.usage import FILE, UsageProblem
from eval_client.report.report import report as make_report
from eval_client.report.run_tables import pairs_table, report_tables
from eval_client.store.connection import StoreError
from eval_client.store.store import Store
from proctor.registry import FORMS, entry_points
from proctor.tables.command import TableFormat, format_option, print_tables

FORM_NAMES = ["agentbench", *sorted({entry.name for entry in entry_points(FORMS)})]


def _ids(_context: click.Context, _option: click.Parameter, given: str) -> tuple[int, ...]:
    texts = [text.strip() for text in given.split(",") if text.strip()]
    if wrong := [text for text in texts if not (text.isascii() and text.isdigit())]:
        raise click.BadParameter(f"{wrong[0]!r} is no trial's id; write ids with commas, such as 3,17")
    return tuple(dict.fromkeys(map(int, texts)))


@click.command()
@click.argument("runs", metavar="[RUN]...", nargs=-1)
@output_option
@store_option
@format_option
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--form", "paper", type=click.Choice(FORM_NAMES), help="Print the tables of a paper, all RUNs together.")
@click.option("--task", "tasks", multiple=True, metavar="NAME", help="With --form: take these tasks alone.")
@click.option("--html", type=FILE, metavar="FILE", help="Write one run's report to a file.")
@click.option("--title", metavar="TEXT", help="Title of the HTML report.")
@click.option("--samples", is_flag=True, help="Add each sample's id, scores and answers to the HTML report.")
@click.option("--trials", callback=_ids, default="", metavar="ID,...", help="Add whole trials to the HTML report.")
def report(
    runs: tuple[str, ...],
    output: Path,
    store: str | None,
    form: TableFormat,
    as_json: bool,
    paper: str | None,
    tasks: tuple[str, ...],
    html: Path | None,
    title: str | None,
    samples: bool,
    trials: tuple[int, ...],
) -> None:
    """Show scores with standard errors, coverage, validity, faults and costs of each RUN.

    RUN is a folder, a name, or `latest`, the default. Several runs are shown in one report; what they share must be
    alike. The parts of a plan are one run: name them all, or by the name that they share. JSON is one object for one
    run, and a list of them for several; CSV has a row for each pair. The HTML report is one file without script or
    network; by default it holds no sample's id, no prompt and no answer.

    --form agentbench prints AgentBench's tables 3 (scores) and 4 (validity). The overall score needs all eight tasks,
    in one run or in several; a dagger marks what can't be compared with the paper. --form simulbench prints tables 4
    (ratings, of `script` runs) and 1 (verdicts, of `compare` runs), --form stss tables 3 (language) and 4 (action).
    """
    if html is None and (title or samples or trials):
        raise UsageProblem("--title, --samples and --trials are for the HTML report; add --html FILE")
    if html is not None and (as_json or form != "text"):
        raise UsageProblem("--html, --format and --json exclude each other; leave all but one out")
    if html is not None and paper is not None:
        raise UsageProblem("--html and --form exclude each other; the HTML report has the papers' tables")
    with report_usage_errors():
        found = find_results(runs or ("latest",), store, output, texts=bool(trials))
        if paper is not None:
            from eval_client.report.papers import paper_tables  # 25 ms of CPU

            print_tables(paper_tables(paper, found, tasks), "json" if as_json else form)
            return
        if html is not None:
            from eval_client.view.saved import report_page  # the templates' library is loaded only here

            if len(found) > 1:
                raise UsageProblem(f"--html: a file holds one run, and {len(found)} are named; write a file for each")
            write_page(report_page(found[0], title=title, samples=samples, trials=trials), html)
            click.echo(f"report: {html}")
            return
        if len(found) > 1:
            _check_alike(found)
        reports = [make_report(each) for each in found]
    if as_json or form == "json":
        each = [made.model_dump_json() for made in reports]
        click.echo(each[0] if len(each) == 1 else f"[{','.join(each)}]")
    elif form == "csv":
        print_tables([pairs_table(reports)], form)
    else:
        print_tables(report_tables(reports, full=True), form)


def _check_alike(stores: list[Store]) -> None:
    """Raises StoreError where runs share a task whose trials were not shaped alike."""
    from eval_client.report.configuration_tables import task_shapes, unlike_tasks  # only for several runs

    facts = [fact for each in stores for fact in task_shapes(each.run, each.manifest())]
    if unlike := unlike_tasks(facts, "task"):
        raise StoreError("these runs can't stand in one report:\n" + "\n".join(f"  {line}" for line in unlike))
