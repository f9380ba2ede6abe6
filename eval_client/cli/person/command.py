"""`proctor play`."""

import asyncio
import contextlib
import signal
import sys
from pathlib import Path

import click
from rich.console import Console

from eval_client.cli.person.lines import TypedLines
from eval_client.cli.person.player import TerminalPlayer
from eval_client.cli.person.shown import print_end
from eval_client.cli.usage import UsageProblem, report_file_errors
from proctor import registry
from proctor.config.task import TaskDefinition
from proctor.environment import Environment, EnvironmentFault, play_to_finish, protocol_of
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
) -> None:
    """Play one SAMPLE of ENVIRONMENT yourself: no plan, no server, nothing stored. Default: the first sample.

    An answer is one or more lines, ended by an empty line; --end sets another end mark, for answers with empty lines.
    Where functions are offered, an answer names one and its arguments: NAME {"argument": "value"}. NAME alone asks for
    each argument; if there is only one, NAME VALUE is enough; `> TEXT` calls none.

    On a terminal, `:e` opens $EDITOR for an answer and `:h` shows the whole conversation. If standard input is no
    terminal, the answers come from it. Exit codes: 0 scored, 1 no score, 130 stopped by Ctrl-C.

    Examples: `proctor play alfworld`, `proctor play db -T protocol=tools`, `proctor play kg --list`
    """
    task = _task(name, data, parameters)
    with report_file_errors():
        world = task.opened()
    samples = world.samples()
    if lists:
        click.echo("\n".join(samples))
        return
    if not samples:
        raise UsageProblem(f"{name}: there are no samples in its data")
    chosen = samples[0] if sample is None else sample
    if chosen not in samples:
        first = ", ".join(samples[:5])
        raise UsageProblem(f"{name} has no sample {chosen!r}; the first are: {first}; --list prints all")
    console = Console(highlight=False, stderr=as_json)
    player = TerminalPlayer(
        TypedLines(sys.stdin.fileno()), console, end=end, editor=editor, terminal=sys.stdin.isatty()
    )
    console.print(f"{name}, sample {chosen}{_settings(task, world)}; Ctrl-C stops", markup=False, soft_wrap=True)
    try:
        finish = asyncio.run(_played(world, chosen, player, seed))
    except (asyncio.CancelledError, KeyboardInterrupt):
        console.print("\nstopped: the session has no score", markup=False)
        sys.exit(INTERRUPTED)
    print_end(finish, console)
    if as_json:
        click.echo(finish.model_dump_json())
    sys.exit(0 if finish.score is not None else 1)


async def _played(world: Environment, sample: str, player: TerminalPlayer, seed: int) -> Finish:
    """Play a session to its end. Raises CancelledError at Ctrl-C, after the environment has released what it holds."""
    loop, playing = asyncio.get_running_loop(), asyncio.current_task()
    assert playing is not None

    def interrupted() -> None:
        if not player.editing:
            playing.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupted)
    async with contextlib.AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(world.lifespan())
        except EnvironmentFault as error:
            raise UsageProblem(str(error)) from error
        return await play_to_finish(world, sample, player, seed)


def _task(name: str, data: Path | None, parameters: tuple[str, ...]) -> TaskDefinition:
    """The environment's definition; on its own samples with the fields that suit this machine. Raises UsageProblem."""
    try:
        detected = registry.load(name).detect_parameters() if data is None else {}
    except (registry.UnknownEnvironment, ImportError, EnvironmentFault) as error:
        raise UsageProblem(str(error)) from error
    with report_file_errors():
        task = TaskDefinition(name=name, environment=name, data=data, parameters=detected)
        return task.with_parameters(parameters)


def _settings(task: TaskDefinition, world: Environment) -> str:
    """What a person should know before the first turn, to be put behind the sample's id."""
    turns = "" if world.max_turns is None else f", at most {world.max_turns} turns"
    fields = {"protocol": protocol_of(world), **task.parameters}
    return turns + "".join(f", {field}: {value}" for field, value in fields.items())
