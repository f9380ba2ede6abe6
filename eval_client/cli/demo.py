"""`proctor demo`."""

from pathlib import Path

import click

from eval_client.cli.common import output_option, quiet_option, report_usage_errors
from eval_client.cli.play import play
from eval_client.cli.usage import UsageProblem
from eval_client.plan.entries import AgentEntry, Assignment
from eval_client.plan.plan import Plan
from eval_client.run.request import RunRequest
from eval_client.store.runs import new_name, open_store
from proctor import registry
from proctor.config.task import TaskDefinition
from proctor.config.yaml import FileError
from proctor.environment import POLICY_KINDS, EnvironmentFault, PolicyKind, missing_policies


@click.command()
@output_option
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Play only N samples of each environment, spread over its categories.",
)
@quiet_option
def demo(output: Path, limit: int, quiet: bool) -> None:
    """Play a few samples of every installed environment with built-in agents: no key, no network.

    `reference` knows the solutions, `naive` is a weak heuristic, `random` acts by chance. Where a machine lacks a part
    (Docker, MariaDB), a lighter engine is used or the environment is left out, with a message. Agents that an
    environment has no policy for do not play it.
    """
    found = [task for name in registry.names() if (task := _task(name)) is not None]
    if not found:
        raise UsageProblem("no environment can be played on this machine; see the lines above")
    pairs = {kind: tuple(task.name for task, kinds in found if kind in kinds) for kind in POLICY_KINDS}
    played = [(kind, names) for kind, names in pairs.items() if names]
    with report_usage_errors():
        plan = Plan(
            name="demo",
            agents=tuple(AgentEntry(name=kind, builtin=kind) for kind, _ in played),
            tasks=tuple(task for task, _ in found),
            assignments=tuple(Assignment(agents=(kind,), tasks=names) for kind, names in played),
        )
        folder = output / new_name(plan.name)
        store = open_store(None, folder)
        request = RunRequest(plan, "(demo)", store, folder, resume=False, limit=limit, agents_here=True)
    play(request, quiet=quiet, as_matrix=True)


def _task(name: str) -> tuple[TaskDefinition, list[PolicyKind]] | None:
    """The task of an environment, and its policies. If it can't be played, prints the reason and returns None."""
    try:
        cls = registry.load(name)
        task = TaskDefinition(name=name, environment=name, parameters=cls.detect_parameters())
        environment = task.opened()
    except (ImportError, EnvironmentFault, FileError) as error:
        _print_left_out(name, str(error))
        return None
    missing = missing_policies(environment, POLICY_KINDS)
    kinds = [kind for kind in POLICY_KINDS if kind not in missing]
    if not kinds:
        _print_left_out(name, "it has no policy for a built-in agent to play by")
        return None
    lacks = f"it has no {' and no '.join(missing)} policy" if missing else None
    notes = [note for note in (environment.not_comparable_because(), lacks) if note is not None]
    click.echo("; ".join([f"demo: {name} plays {len(environment.samples())} samples of its own", *notes]), err=True)
    return task, kinds


def _print_left_out(name: str, why: str) -> None:
    click.echo(f"demo: {name} is left out: {why}", err=True)
