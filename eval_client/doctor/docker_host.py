"""Checks of the Docker engine: whether it answers, has the image, disk space, and addresses for networks."""

import ipaddress
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from eval_client.doctor.finding import Finding, fail, ok, skip, warn
from proctor.sandbox import SandboxLimits

Network = ipaddress.IPv4Network
Pool = tuple[Network, int]
"""An address range, and the prefix length of the networks that are allocated from it."""
BUILT_IN_POOLS: tuple[Pool, ...] = (
    *((Network(f"172.{n}.0.0/16"), 16) for n in range(17, 32)),
    (Network("192.168.0.0/16"), 20),
)
"""The address pools of an engine without configured ones."""
DISK_SHORT_BYTES = 5 << 30
FEW_NETWORKS = 3
ROUTES = Path("/proc/net/route")


class Sandboxes(NamedTuple):
    """Containers that a task needs."""

    image: str
    in_memory: bool = False
    """The containers write to tmpfs, so no quota of the storage driver is needed."""


@dataclass(frozen=True)
class EngineFacts:
    """Facts about an engine that answers."""

    version: str
    image: str
    """The image that was looked for."""
    has_image: bool
    root: str
    free_bytes: int | None
    """Free bytes at its data root; None where that is on another machine."""
    pools: tuple[Pool, ...]
    taken: tuple[Network, ...]
    """The networks that the engine has or this machine routes to."""
    driver: str = "overlay2"
    bounds_disk: bool | None = None
    """Whether the storage driver can limit a container's disk space; None where it was not tried."""


def engine_facts(image: str, timeout_s: float) -> EngineFacts:
    """Query the engine that DOCKER_HOST names. Raises ImportError, and all errors of the SDK."""
    import docker
    import docker.errors

    from proctor.sandbox.docker_containers import OWNER_LABEL
    from proctor.sandbox.docker_disk import why_no_quota
    from proctor.sandbox.owner import Owner

    client = docker.from_env(timeout=max(1, int(timeout_s)))
    try:
        info = client.info()
        try:
            client.images.get(image)
            has_image = True
        except docker.errors.ImageNotFound:
            has_image = False
        networks = client.api.networks()
        labels = {OWNER_LABEL: Owner.current().label()}
        trouble = why_no_quota(client, image, SandboxLimits().disk_mb, labels) if has_image else None
    finally:
        client.close()
    root = str(info.get("DockerRootDir", ""))
    return EngineFacts(
        version=str(info.get("ServerVersion", "?")),
        image=image,
        has_image=has_image,
        root=root,
        free_bytes=shutil.disk_usage(root).free if _is_here() and Path(root).is_dir() else None,
        pools=_pools(info.get("DefaultAddressPools") or ()),
        taken=(*_subnets(networks), *_routes()),
        driver=str(info.get("Driver", "?")),
        bounds_disk=trouble is None if has_image else None,
    )


def has_image(image: str, timeout_s: float) -> bool:
    """Whether the engine has an image. Raises ImportError, and all errors of the SDK."""
    import docker
    import docker.errors

    client = docker.from_env(timeout=max(1, int(timeout_s)))
    try:
        client.images.get(image)
    except docker.errors.ImageNotFound:
        return False
    finally:
        client.close()
    return True


def engine_findings(facts: EngineFacts, *, sandboxes_only: bool, in_memory: bool = False) -> list[Finding]:
    """The findings on an engine; addresses are left out if it is only for sandboxes, which have no network."""
    findings = [ok("docker", f"Docker engine {facts.version}")]
    if facts.has_image:
        findings.append(ok("docker-image", f"image {facts.image}"))
    else:
        build = f"docker build -t {facts.image} docker/os, or set another in the task's parameters: {{image: ...}}"
        findings.append(
            (fail if sandboxes_only else warn)("docker-image-missing", f"Docker has no image {facts.image}", build)
        )
    findings.append(_disk(facts))
    if facts.bounds_disk is not None and not in_memory:
        findings.append(_quota(facts))
    if not sandboxes_only:
        findings.append(_addresses(facts))
    return findings


def _disk(facts: EngineFacts) -> Finding:
    if facts.free_bytes is None:
        return skip("docker-disk", "the engine's disk is not on this machine")
    what = f"{facts.free_bytes / 2**30:.1f} GiB free at Docker's {facts.root}"
    return ok("docker-disk", what) if facts.free_bytes >= DISK_SHORT_BYTES else warn("docker-disk-short", what)


def _quota(facts: EngineFacts) -> Finding:
    if facts.bounds_disk:
        return ok("docker-quota", f"storage driver {facts.driver} can limit a container's disk space")
    return warn("docker-disk-unbounded", f"storage driver {facts.driver} can't limit a container's disk space")


def _addresses(facts: EngineFacts) -> Finding:
    free = free_networks(facts.pools, facts.taken)
    what = f"Docker has addresses for {free} more networks"
    if free > FEW_NETWORKS:
        return ok("docker-pools", what)
    return (warn if free else fail)("docker-pools-short", what)


def free_networks(pools: Iterable[Pool], taken: Sequence[Network]) -> int:
    """How many more networks can be allocated from the pools."""
    return sum(_free(network, size, taken) for network, size in pools)


def _free(pool: Network, size: int, taken: Sequence[Network]) -> int:
    width = 1 << (32 - size)
    first, last = int(pool.network_address), int(pool.broadcast_address)
    gone: set[int] = set()
    for network in taken:
        if network.prefixlen and network.overlaps(pool):
            begin = max(int(network.network_address), first)
            end = min(int(network.broadcast_address), last)
            gone.update(range((begin - first) // width, (end - first) // width + 1))
    return (last - first + 1) // width - len(gone)


def _pools(given: Iterable[dict[str, object]]) -> tuple[Pool, ...]:
    pools = ((ipaddress.ip_network(str(pool["Base"])), int(str(pool["Size"]))) for pool in given)
    return tuple((base, size) for base, size in pools if isinstance(base, Network)) or BUILT_IN_POOLS


def _subnets(networks: Iterable[dict[str, object]]) -> list[Network]:
    found = []
    for network in networks:
        ipam = network.get("IPAM")
        for entry in (ipam.get("Config") if isinstance(ipam, dict) else None) or ():
            subnet = ipaddress.ip_network(entry.get("Subnet") or "::/0", strict=False)
            if isinstance(subnet, Network):
                found.append(subnet)
    return found


def _routes() -> list[Network]:
    """The networks that this machine routes to, without the default route; an engine here allocates none of them."""
    if not (_is_here() and ROUTES.exists()):
        return []
    rows = [line.split() for line in ROUTES.read_text().splitlines()[1:]]
    pairs = ((int.from_bytes(bytes.fromhex(row[1])[::-1]), int(row[7], 16).bit_count()) for row in rows)
    return [Network((address, length)) for address, length in pairs if length]


def _is_here() -> bool:
    return (os.environ.get("DOCKER_HOST") or "unix://").startswith("unix://")
