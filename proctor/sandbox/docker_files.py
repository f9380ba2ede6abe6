"""Reads a container's files through its engine, without running a program in it. Every call blocks."""

import base64
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

import docker

from proctor.sandbox import docker_layers
from proctor.sandbox.base import Change

_READ_BYTES = 64 << 20
"""The content of a larger file is not compared."""
_FOLDER, _LINK = 1 << 31, 1 << 27
"""Bits of Go's file modes."""
_PERMISSIONS, _RUN = 0o777, 0o111


Layers = tuple[Path, Sequence[Path]]
"""A container's own layer and those of its image."""


def layers(client: docker.DockerClient, container: str) -> Layers | None:
    """The layers of a container, to be asked for before an agent plays in it; None where they can't be read."""
    return docker_layers.layers(client.api.inspect_container(container))


def changes(client: docker.DockerClient, container: str, layers: Layers | None) -> Mapping[str, Change]:
    """The paths that differ from the image, mounts left out."""
    if layers is not None:
        return docker_layers.changes(*layers)
    return {found["Path"]: Change(found["Kind"]) for found in client.api.diff(container) or ()}


def fingerprint(client: docker.DockerClient, container: str, path: str) -> str | None:
    """Kind, mode, size, target and content of a file, or `folder MODE`; None where there is nothing."""
    stat = _stat(client, container, path)
    if stat is None:
        return None
    if stat["mode"] & _FOLDER:
        return f"folder {stat['mode']:o}"
    content = _content(client, container, path) if stat["size"] <= _READ_BYTES else ""
    kind = "link" if stat["mode"] & _LINK else "file"
    return f"{kind} {stat['mode']:o} {stat['size']} {stat['linkTarget']} {content}"


def is_program(client: docker.DockerClient, container: str, path: str) -> bool:
    """Whether a path is a plain file that may be run."""
    stat = _stat(client, container, path)
    return stat is not None and stat["mode"] & ~_PERMISSIONS == 0 and bool(stat["mode"] & _RUN)


def _stat(client: docker.DockerClient, container: str, path: str) -> Any:
    """The engine's data about a path: mode (as in Go), size and linkTarget; None where nothing exists."""
    api = client.api
    url = f"{api.base_url}/v{api.api_version}/containers/{container}/archive"
    answer = api.head(url, params={"path": path})
    if answer.status_code == HTTPStatus.NOT_FOUND:
        return None
    answer.raise_for_status()
    return json.loads(base64.b64decode(answer.headers["X-Docker-Container-Path-Stat"]))


def _content(client: docker.DockerClient, container: str, path: str) -> str:
    packed = io.BytesIO()
    for chunk in client.api.get_archive(container, path)[0]:
        packed.write(chunk)
        if packed.tell() > _READ_BYTES + 2 * tarfile.RECORDSIZE:  # replaced after its size was read
            return f"over {_READ_BYTES} bytes"
    packed.seek(0)
    with tarfile.open(fileobj=packed) as archive:
        member = archive.next()
        return hashlib.blake2b(packed.getbuffer()[member.offset_data :] if member else b"").hexdigest()
