"""`proctor harbor check`: whether the tasks of a folder are sound."""

import asyncio
import time
from pathlib import Path

import click

from eval_client.cli.common import report_usage_errors
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.types import Finish, FinishReason
from proctor_bridges.worlds.harbor.environment import Harbor
from proctor_bridges.worlds.harbor.tasks import Granted


@click.group()
def harbor() -> None:
    """Tasks in Harbor's format."""


@harbor.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--network", type=click.Choice(["none", "bridge"]), default="none", help="For tasks that want one. Default: none."
)
@click.option("--jobs", type=click.IntRange(1, 64), default=2, show_default=True, help="Tasks checked in parallel.")
def check(folder: Path, network: Granted, jobs: int) -> None:
    """Build the image of each task in FOLDER, and play its solution, which has to get 1, and nothing, which gets 0.

    Exit code 1 where a task does otherwise. Tasks that can't be played here are listed with their reason.
    """
    with report_usage_errors():
        world = Harbor(data=folder, network=network)
        names = world.samples()
    wrong = asyncio.run(_checked(world, jobs))
    for task, why in world.tasks.left_out.items():
        click.echo(f"left out  {task}: {why}")
    if world.tasks.unknown:
        click.echo(f"unknown fields of task.toml: {', '.join(world.tasks.unknown)}")
    click.echo(f"{len(names) - wrong} of {len(names)} tasks are sound; {len(world.tasks.left_out)} left out")
    raise click.exceptions.Exit(int(wrong > 0))


async def _checked(world: Harbor, jobs: int) -> int:
    """How many tasks are not sound. Prints a line for each task when it was played."""
    slots = asyncio.Semaphore(jobs)

    async def is_sound(task: str) -> bool:
        told, sound = list[str](), True
        async with slots:
            for kind, what, wanted in (("naive", "nothing, with the image,", 0), ("reference", "solution", 1)):
                begun = time.monotonic()
                try:
                    finish = await play_to_finish(world, task, PolicyAgent(getattr(world, kind)(task)))
                except ValueError as error:  # it has no solution
                    finish = Finish.fault(FinishReason.TASK_ERROR, str(error))
                shown = finish.detail.get("cause") if finish.score is None else f"{finish.score:g}"
                told.append(f"{what} {shown} in {time.monotonic() - begun:.1f} s")
                sound = sound and finish.score == wanted
        click.echo(f"{'ok' if sound else 'not sound':9} {task}: {'; '.join(told)}")
        return sound

    async with world.lifespan():
        return (await asyncio.gather(*map(is_sound, world.samples()))).count(False)
