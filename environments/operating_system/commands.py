"""`proctor os`: checks samples before a run."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Literal

import click

from environments.operating_system.environment import OperatingSystem
from environments.operating_system.preflight import SampleFinding
from proctor.environment import EnvironmentFault
from proctor.sandbox.base import Engine

_PATH = click.Path(exists=True, path_type=Path)


@click.group("os")
def operating_system() -> None:
    """Check which samples of the environment os can be played here."""


@operating_system.command()
@click.option("--data", type=_PATH, help="File or folder of samples; default: those shipped with Proctor.")
@click.option("--scripts", type=_PATH, help="Script folder of the split.")
@click.option("--split", help="First part of the sample ids.")
@click.option("--image", default="proctor-os:latest", show_default=True)
@click.option("--engine", type=click.Choice(["docker", "namespace"]), default="docker", show_default=True)
@click.option("--network", type=click.Choice(["none", "bridge"]), default="none", show_default=True)
@click.option("--jobs", type=click.IntRange(1, 64), default=2, show_default=True, help="Samples checked in parallel.")
def preflight(
    *,
    data: Path | None,
    scripts: Path | None,
    split: str | None,
    image: str,
    engine: Literal["docker", "namespace"],
    network: Literal["none", "bridge"],
    jobs: int,
) -> None:
    """Play the set-up and example of every sample twice, and list the samples that can't be played or judged here.

    `network`: the sample needs a network. `init`: set-up fails. `racy`: the sample passes once and fails once.
    `example`: the example, run as a check or typed into the agent's shell, does not pass the checks. `fault`: the
    engine failed.
    """
    try:
        environment = OperatingSystem(
            data=data, scripts=scripts, split=split, image=image, engine=engine, network=network, pool=0
        )
        findings = asyncio.run(_preflight(environment, jobs))
        samples = len(environment.samples())
    except (EnvironmentFault, ImportError, ValueError) as error:
        raise click.UsageError(str(error)) from error
    for found in findings:
        click.echo(f"{found.problem:8} {found.sample}: {found.why}")
    counts = Counter(found.problem for found in findings)
    listed = "".join(f", {count} {problem}" for problem, count in sorted(counts.items()))
    click.echo(f"{samples} samples{listed or ', all can be played'}")
    if findings:
        raise click.exceptions.Exit(1)


async def _preflight(environment: OperatingSystem, jobs: int) -> list[SampleFinding]:
    slots = asyncio.Semaphore(jobs)

    async def one(sample: str, bridge: Engine | None) -> SampleFinding | None:
        async with slots:
            try:
                return await environment.preflight(sample, bridge)
            except EnvironmentFault as fault:
                return SampleFinding(sample, "fault", str(fault))

    async with environment.lifespan(), environment.bridge() as bridge:
        found = await asyncio.gather(*(one(sample, bridge) for sample in environment.samples()))
    return [finding for finding in found if finding is not None]
