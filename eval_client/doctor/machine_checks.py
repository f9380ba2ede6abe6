"""The checks of this machine, independent of a plan."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from eval_client.doctor import databases, machine
from eval_client.doctor.docker_host import Sandboxes, engine_facts, engine_findings
from eval_client.doctor.finding import Finding, fail, ok, warn
from eval_client.doctor.run_checks import Check, in_thread
from proctor import registry
from proctor.environment import EnvironmentFault
from proctor.event_loop import allow_descriptors
from proctor.sandbox import NamespaceEngine, SandboxLimits
from proctor.sandbox.docker_exec import reach

IMAGE = "proctor-os:latest"


@dataclass(frozen=True)
class Options:
    """The options of `proctor doctor`."""

    output: Path
    """Folder of the runs."""
    store: str | None
    patience_s: float
    """Seconds to wait for each answer."""
    calls: bool = True
    """Whether to send a completion to each model, which is paid for."""
    run: str | None = None
    """The run to check, which a plan is to resume."""


def machine_checks(options: Options) -> list[Check]:
    """The checks of `proctor doctor` without a plan."""
    return [
        *general_checks(options, registry.names(), trials=0, needed_bytes=0),
        Check("docker", docker((Sandboxes(IMAGE),), options.patience_s, needed=False)),
        Check("programs", in_thread(machine.programs)),
        Check("namespaces", namespaces()),
    ]


def general_checks(options: Options, environments: Sequence[str], *, trials: int, needed_bytes: int) -> list[Check]:
    """Checks of packages, disk, memory, limits and the store.

    `trials` is the number of trials that run at once, `needed_bytes` what the run may write to the folder.
    """

    async def packages() -> Sequence[Finding]:
        return [*machine.packages(), *await in_thread(machine.extras, environments)]

    async def folder() -> Sequence[Finding]:
        facts = await in_thread(machine.folder_facts, options.output)
        return machine.folder_findings(facts, needed_bytes, in_sqlite=options.store is None)

    async def limits() -> Sequence[Finding]:
        memory = machine.memory_finding(machine.available_memory())
        return [memory, machine.descriptor_finding(allow_descriptors(), trials)]

    async def store(url: str) -> Sequence[Finding]:
        return [databases.store_finding(await in_thread(databases.store_facts, url))]

    checks = [Check("packages", packages()), Check("folder", folder()), Check("limits", limits())]
    return [*checks, Check("store", store(options.store))] if options.store is not None else checks


async def docker(wanted: Sequence[Sandboxes], patience_s: float, *, needed: bool) -> list[Finding]:
    """Findings on the Docker engine and what these containers need; problems are failures where `needed`."""
    found: dict[tuple[str, str], Finding] = {}
    if find_spec("docker") is None:
        return [(fail if needed else warn)("extra-missing", "no package docker", "pip install 'proctor[os]'")]
    try:
        await reach()
        for image, in_memory in wanted:
            facts = await in_thread(engine_facts, image, patience_s)
            findings = engine_findings(facts, needed=needed, in_memory=in_memory)
            found |= {(each.id, each.what): each for each in findings}
    except Exception as error:  # the SDK raises errors of other libraries too
        return [(fail if needed else warn)("docker-down", str(error))]
    return list(found.values())


async def namespaces() -> Sequence[Finding]:
    """Whether the light engine of environment `os` works."""
    try:
        async with NamespaceEngine(SandboxLimits()).lifespan():
            return [ok("namespaces", "sandboxes from namespaces can be made")]
    except EnvironmentFault as error:
        return [warn("namespaces-refused", str(error))]
