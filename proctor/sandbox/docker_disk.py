"""Limits the disk space of a container: by the storage driver's quota, by memory in place of disk, or not at all."""

import io
import tarfile
from typing import Literal

import docker
import docker.errors

Disk = Literal["auto", "quota", "tmpfs"]
"""`quota`: the storage driver limits it. `tmpfs`: the root is read-only, and WRITABLE is in memory. `auto`: as `quota`
where the driver can, else unlimited."""
WRITABLE = ("/etc", "/home", "/media", "/mnt", "/opt", "/root", "/run", "/srv", "/tmp", "/usr/local", "/var")
_MADE_BY_ENGINE = frozenset({"etc/hosts", "etc/hostname", "etc/resolv.conf"})
_SNAPSHOTTER = "io.containerd.snapshotter.v1"


def why_no_quota(client: docker.DockerClient, image: str, disk_mb: int, labels: dict[str, str]) -> str | None:
    """Why the storage driver can't limit a container's disk space; None where it can.

    Only the creation of a container shows it. An image store of containerd accepts the option and ignores it.
    """
    info = client.info()
    if ["driver-type", _SNAPSHOTTER] in (info.get("DriverStatus") or []):
        return f"storage driver {info.get('Driver')} of containerd has no quotas"
    try:
        container = client.api.create_container(
            image,
            ["true"],
            host_config=client.api.create_host_config(storage_opt={"size": f"{disk_mb}M"}),
            labels=labels,
        )
    except docker.errors.APIError as error:
        return f"storage driver {info.get('Driver')}: {error.explanation or error}"
    client.api.remove_container(container["Id"])
    return None


def tmpfs_mounts(disk_mb: int) -> dict[str, str]:
    """The `tmpfs` option of a container."""
    return dict.fromkeys(WRITABLE, f"rw,exec,suid,nodev,mode=755,size={disk_mb}m")


def image_files(client: docker.DockerClient, image: str, labels: dict[str, str]) -> bytes:
    """An image's files in WRITABLE, which the tmpfs mounts hide, as a tar archive."""
    container = client.api.create_container(image, ["true"], labels=labels)["Id"]
    packed = io.BytesIO()
    try:
        with tarfile.open(fileobj=packed, mode="w") as target:
            for place in WRITABLE:
                _copy(client, container, place, target)
    finally:
        client.api.remove_container(container)
    return packed.getvalue()


def _copy(client: docker.DockerClient, container: str, place: str, target: tarfile.TarFile) -> None:
    try:
        chunks, _ = client.api.get_archive(container, place)
    except docker.errors.NotFound:
        return
    # Names in the archive begin with the last part of the path.
    above = place.removeprefix("/").removesuffix(place.rpartition("/")[2])
    with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as source:
        for member in source:
            member.name = above + member.name
            if member.islnk():
                member.linkname = above + member.linkname
            if member.name not in _MADE_BY_ENGINE:
                target.addfile(member, source.extractfile(member) if member.isreg() else None)
