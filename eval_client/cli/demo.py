"""`proctor demo`."""

from pathlib import Path

import click

from environments import registry
from environments.base import EnvironmentFault
from environments.definition import TaskDefinition
from eval_client.cli.common import output_option, quiet_option, told
from eval_client.cli.play import play
from eval_client.cli.usage import UsageProblem
from eval_client.execute import Order
from eval_client.plan import AgentEntry, Plan
from eval_client.store.run_folders import new_name, open_store

AGENTS = ("reference", "naive", "random")


@click.command()
@output_option
@click.option("--limit", type=click.IntRange(min=1), help="Play only the first N samples of each environment.")
@quiet_option
def demo(output: Path, limit: int | None, quiet: bool) -> None:
    """Play every installed environment on the samples it ships, with built-in agents: no key, no network.

    `reference` knows the solutions, `naive` is a weak heuristic, `random` is chance. Where a machine lacks a part
    (Docker, MariaDB), a lighter engine stands in, or the environment is left out; either is said.
    """
    tasks = [task for name in registry.names() if (task := _task(name)) is not None]
    if not tasks:
        raise UsageProblem("no environment can be played here; the lines above say why")
    with told():
        plan = Plan(name="demo", agents=tuple(AgentEntry(name=a, builtin=a) for a in AGENTS), tasks=tuple(tasks))
        folder = output / new_name(plan.name)
        order = Order(plan, "(demo)", open_store(None, folder), folder, resume=False, limit=limit)
    play(order, quiet=quiet)


def _task(name: str) -> TaskDefinition | None:
    try:
        environment = registry.load(name)
        task = TaskDefinition(name=name, environment=name, parameters=environment.suited_parameters())
        why = task.build().comparable()
    except (ImportError, EnvironmentFault) as error:
        click.echo(f"demo: {name} is left out: {error}", err=True)
        return None
    click.echo(f"demo: {name} plays {len(task.samples())} samples of its own" + (f"; {why}" if why else ""), err=True)
    return task
