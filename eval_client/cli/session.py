"""`proctor play`."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console

from eval_client.cli.terminal import TerminalPlayer, print_end
from eval_client.cli.usage import UsageProblem, report_file_errors
from eval_client.plan.entries import agent_kind
from proctor import registry
from proctor.config.task import TaskDefinition, named_task
from proctor.environment import EnvironmentFault, protocol_of
from proctor.observability import output
from proctor.registry import AGENT_KINDS, missing
from proctor.session.play import play_to_finish
from proctor.tables.table import counted
from proctor.types import Finish

INTERRUPTED = 130


@click.command()
@click.argument("name", metavar="ENVIRONMENT")
@click.argument("sample", required=False)
@click.option(
    "-T",
    "parameters",
    multiple=True,
    metavar="NAME=VALUE",
    help="A field of the environment, as YAML; `protocol=tools` offers functions.",
)
@click.option("--data", type=click.Path(path_type=Path), help="The environment's data. Default: its own samples.")
@click.option("--seed", default=0, show_default=True, help="Seed of the session.")
@click.option("--end", default="", metavar="TEXT", help="The line that ends an answer. Default: an empty line.")
@click.option("--list", "lists", is_flag=True, help="Print the ids of the samples, and play none.")
@click.option("--json", "as_json", is_flag=True, help="Print the finish as JSON, and the session on standard error.")
@click.option("--mcp", is_flag=True, help="Let a coding agent play: serve the session as an MCP server of its own.")
def play(
    name: str,
    sample: str | None,
    parameters: tuple[str, ...],
    data: Path | None,
    seed: int,
    end: str,
    lists: bool,
    as_json: bool,
    mcp: bool,
) -> None:
    """Play one SAMPLE of ENVIRONMENT yourself: no plan, no server, nothing stored. Default: the first sample.

    An answer is one or more lines, ended by an empty line; --end sets another end mark, for answers with empty lines.
    Where functions are offered, an answer names one and its arguments: NAME {"argument": "value"}, or NAME VALUE where
    there is only one; `> TEXT` calls none. Answers may come from a pipe or a file. Exit codes: 0 scored, 1 no score,
    130 stopped by Ctrl-C.

    With --mcp, Claude Code, Codex or another client of the Model Context Protocol plays: the command prints the URL of
    the session and the line that adds it, shows every turn, and ends with the score.

    Examples: `proctor play alfworld`, `proctor play db -T protocol=tools`, `proctor play kg --list`,
    `proctor play db -T protocol=tools --mcp`
    """
    if sys.stdin is None and not (mcp or lists):
        raise UsageProblem("standard input is closed; give a terminal, a pipe or a file with the answers, or --mcp")
    if mcp and (fix := missing(AGENT_KINDS, "command")) is not None:
        raise UsageProblem(f"--mcp is not installed; {fix}")
    task = _task(name, data, parameters)
    console = output.console(highlight=False, stderr=as_json)
    try:
        with contextlib.redirect_stdout(sys.stderr) if as_json and not lists else contextlib.nullcontext():
            finish = asyncio.run(_played(task, sample, seed, console, end, lists=lists, mcp=mcp))
    except (asyncio.CancelledError, KeyboardInterrupt):
        console.print("\nstopped: the session has no score")
        sys.exit(INTERRUPTED)
    if finish is None:
        return
    print_end(finish, console)
    if as_json:
        click.echo(finish.model_dump_json())
    sys.exit(0 if finish.score is not None else 1)


def _task(name: str, data: Path | None, parameters: tuple[str, ...]) -> TaskDefinition:
    """The task to play; on the environment's own samples with the fields that suit this machine."""
    with report_file_errors():
        task = named_task(name, data)
    try:
        detected = registry.load(task.environment).detect_parameters() if data is None else {}
    except (registry.UnknownEnvironment, ImportError, EnvironmentFault) as error:
        raise UsageProblem(str(error)) from error
    with report_file_errors():
        return task.model_copy(update={"parameters": detected}).with_parameters(parameters)


async def _played(
    task: TaskDefinition, sample: str | None, seed: int, console: Console, end: str, *, lists: bool, mcp: bool
) -> Finish | None:
    """Play a session to its end: by what is typed, else by the calls of a coding agent. None where it only `lists`.

    Raises CancelledError at Ctrl-C, after the session has released what it holds.
    """
    with report_file_errors():
        world = task.opened()
    samples = world.samples()
    if lists:
        click.echo("\n".join(samples))
        return None
    chosen = _chosen(task.name, samples, sample)
    turns = "" if world.max_turns is None else f", at most {counted(world.max_turns, 'turn')}"
    fields = {"protocol": protocol_of(world), **task.parameters}
    settings = turns + "".join(f", {field}: {value}" for field, value in fields.items())
    console.print(f"{task.name}, sample {chosen}{settings}; Ctrl-C stops", soft_wrap=True)
    playing = asyncio.current_task()
    assert playing is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, playing.cancel)
    try:
        async with world.lifespan():
            if not mcp:
                return await play_to_finish(world, chosen, TerminalPlayer(sys.stdin.fileno(), console, end), seed)
            async with agent_kind("command").shown(task.name, console) as episode:
                return await play_to_finish(world, chosen, episode, seed)
    except EnvironmentFault as error:
        raise UsageProblem(str(error)) from error


def _chosen(name: str, samples: Sequence[str], sample: str | None) -> str:
    """The sample to play. Raises UsageProblem."""
    if not samples:
        raise UsageProblem(f"{name}: there are no samples in its data")
    if sample is not None and sample not in samples:
        first = ", ".join(samples[:5])
        raise UsageProblem(f"{name} has no sample {sample!r}; the first are: {first}; --list prints all")
    return samples[0] if sample is None else sample
