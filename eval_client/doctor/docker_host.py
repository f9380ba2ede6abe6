"""Checks of the Docker engine: whether it answers, has the image, and disk space."""

import contextlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from eval_client.doctor.finding import Finding, fail, ok, skip, warn

DISK_SHORT_BYTES = 5 << 30


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
    driver: str = "overlay2"
    bounds_disk: bool | None = None
    """Whether the storage driver can limit a container's disk space; None where it was not tried."""


def engine_facts(image: str, timeout_s: float) -> EngineFacts:
    """Query the engine that DOCKER_HOST names. Raises ImportError, and all errors of the SDK."""
    from proctor.sandbox.base import SandboxLimits
    from proctor.sandbox.docker_containers import OWNER_LABEL
    from proctor.sandbox.docker_disk import why_no_quota
    from proctor.sandbox.owner import Owner

    with _client(timeout_s) as client:
        info, present = client.info(), _holds(client, image)
        labels = {OWNER_LABEL: Owner.current().label()}
        trouble = why_no_quota(client, image, SandboxLimits().disk_mb, labels) if present else None
    root = str(info.get("DockerRootDir", ""))
    here = (os.environ.get("DOCKER_HOST") or "unix://").startswith("unix://")
    return EngineFacts(
        version=str(info.get("ServerVersion", "?")),
        image=image,
        has_image=present,
        root=root,
        free_bytes=shutil.disk_usage(root).free if here and Path(root).is_dir() else None,
        driver=str(info.get("Driver", "?")),
        bounds_disk=trouble is None if present else None,
    )


def has_image(image: str, timeout_s: float) -> bool:
    """Whether the engine has an image. Raises ImportError, and all errors of the SDK."""
    with _client(timeout_s) as client:
        return _holds(client, image)


def _client(timeout_s: float) -> contextlib.closing[Any]:
    import docker

    return contextlib.closing(docker.from_env(timeout=max(1, int(timeout_s))))


def _holds(client: Any, image: str) -> bool:
    import docker.errors

    try:
        client.images.get(image)
    except docker.errors.ImageNotFound:
        return False
    return True


def engine_findings(facts: EngineFacts, *, needed: bool, in_memory: bool = False) -> list[Finding]:
    """The findings on an engine; a missing image is a failure where the engine is `needed`."""
    findings = [ok("docker", f"Docker engine {facts.version}")]
    if facts.has_image:
        findings.append(ok("docker-image", f"image {facts.image}"))
    else:
        build = f"docker build -t {facts.image} docker/os, or set another in the task's parameters: {{image: ...}}"
        findings.append((fail if needed else warn)("docker-image-missing", f"Docker has no image {facts.image}", build))
    findings.append(_disk(facts))
    if facts.bounds_disk is not None and not in_memory:
        findings.append(_quota(facts))
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
