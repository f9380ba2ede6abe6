"""`proctor play`."""

import asyncio
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console

from eval_client.cli.person.lines import TypedLines
from eval_client.cli.person.places import PlayableTask, TaskInProcess, TaskOnServer
from eval_client.cli.person.player import TerminalPlayer
from eval_client.cli.person.shown import print_end
from eval_client.cli.usage import UsageProblem, report_file_errors
from proctor import registry
from proctor.config.task import TaskDefinition
from proctor.environment import EnvironmentFault
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
@click.option("-e", "--editor", is_flag=True, help="Write every answer in $VISUAL or $EDITOR.")
@click.option("--end", default="", metavar="TEXT", help="The line that ends an answer. Default: an empty line.")
@click.option("--list", "lists", is_flag=True, help="Print the ids of the samples, and play none.")
@click.option("--json", "as_json", is_flag=True, help="Print the finish as JSON, and the session on standard error.")
@click.option("--mcp", is_flag=True, help="Let a coding agent play: serve the session as an MCP server of its own.")
@click.option(
    "--controller",
    metavar="URL",
    help="Play a task of a worker or controller, with PROCTOR_TOKEN: ENVIRONMENT is then the name of the task.",
)
def play(
    name: str,
    sample: str | None,
    parameters: tuple[str, ...],
    data: Path | None,
    seed: int,
    editor: bool,
    end: str,
    lists: bool,
    as_json: bool,
    mcp: bool,
    controller: str | None,
) -> None:
    """Play one SAMPLE of ENVIRONMENT yourself: no plan, no server, nothing stored. Default: the first sample.

    An answer is one or more lines, ended by an empty line; --end sets another end mark, for answers with empty lines.
    Where functions are offered, an answer names one and its arguments: NAME {"argument": "value"}. NAME alone asks for
    each argument; if there is only one, NAME VALUE is enough; `> TEXT` calls none.

    On a terminal, `:e` opens $EDITOR for an answer and `:h` shows the whole conversation. If standard input is no
    terminal, the answers come from it. Exit codes: 0 scored, 1 no score, 130 stopped by Ctrl-C.

    With --mcp, Claude Code, Codex or another client of the Model Context Protocol plays: the command prints the URL of
    the session and the line that adds it, shows every turn, and ends with the score.

    Examples: `proctor play alfworld`, `proctor play db -T protocol=tools`, `proctor play kg --list`,
    `proctor play db -T protocol=tools --mcp`
    """
    if mcp and (editor or end):
        raise UsageProblem("--editor and --end are for a person who plays; leave them out with --mcp")
    if controller is not None and (parameters or data is not None):
        raise UsageProblem("-T and --data are set where the task is served; leave them out with --controller")
    place = _here(name, data, parameters) if controller is None else TaskOnServer(controller, name)
    console = Console(highlight=False, stderr=as_json)
    typed = None if mcp or lists else _typed(console, end, editor=editor)
    try:
        finish = asyncio.run(_played(place, sample, seed, console, typed, lists=lists))
    except (asyncio.CancelledError, KeyboardInterrupt):
        console.print("\nstopped: the session has no score", markup=False)
        sys.exit(INTERRUPTED)
    if finish is None:
        return
    print_end(finish, console)
    if as_json:
        click.echo(finish.model_dump_json())
    sys.exit(0 if finish.score is not None else 1)


def _typed(console: Console, end: str, *, editor: bool) -> TerminalPlayer:
    """A person at standard input. Raises UsageProblem."""
    if sys.stdin is None:
        raise UsageProblem("standard input is closed; give a terminal, a pipe or a file with the answers, or --mcp")
    return TerminalPlayer(TypedLines(sys.stdin.fileno()), console, end=end, editor=editor, terminal=sys.stdin.isatty())


async def _played(
    place: PlayableTask, sample: str | None, seed: int, console: Console, typed: TerminalPlayer | None, *, lists: bool
) -> Finish | None:
    """Play a session to its end: by what is typed, else by the calls of a coding agent. None where it only `lists`.

    Raises CancelledError at Ctrl-C, after the session has released what it holds.
    """
    async with place.opened() as samples:
        if lists:
            click.echo("\n".join(samples))
            return None
        chosen = _chosen(place.name, samples, sample)
        console.print(f"{place.name}, sample {chosen}{place.settings()}; Ctrl-C stops", markup=False, soft_wrap=True)
        _cancel_on_signals(typed)
        if typed is not None:
            return await place.play(chosen, typed, seed)
        from eval_client.cli.person.called import shown_episode

        async with shown_episode(place.name, console) as episode:
            return await place.play(chosen, episode, seed)


def _chosen(name: str, samples: Sequence[str], sample: str | None) -> str:
    """The sample to play. Raises UsageProblem."""
    if not samples:
        raise UsageProblem(f"{name}: there are no samples in its data")
    if sample is not None and sample not in samples:
        first = ", ".join(samples[:5])
        raise UsageProblem(f"{name} has no sample {sample!r}; the first are: {first}; --list prints all")
    return samples[0] if sample is None else sample


def _cancel_on_signals(typed: TerminalPlayer | None) -> None:
    """Cancel the current task at Ctrl-C, unless an editor has the terminal."""
    loop, playing = asyncio.get_running_loop(), asyncio.current_task()
    assert playing is not None

    def interrupted() -> None:
        if typed is None or not typed.editing:
            playing.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupted)


def _here(name: str, data: Path | None, parameters: tuple[str, ...]) -> TaskInProcess:
    """The environment in this process; on its own samples with the fields that suit this machine.

    Raises UsageProblem.
    """
    try:
        detected = registry.load(name).detect_parameters() if data is None else {}
    except (registry.UnknownEnvironment, ImportError, EnvironmentFault) as error:
        raise UsageProblem(str(error)) from error
    with report_file_errors():
        task = TaskDefinition(name=name, environment=name, data=data, parameters=detected).with_parameters(parameters)
        return TaskInProcess(task, task.opened())
