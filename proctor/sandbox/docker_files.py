"""A container's files, read through its engine or from its layers, without running a program in it. Every call blocks.

The layers, where this process may read them, show what Docker's own comparison misses: other content of the same size
and modification time.
"""

import base64
import hashlib
import io
import json
import os
import stat
import tarfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any

import docker

from proctor.sandbox.base import Change

_READ_BYTES = 64 << 20
"""The content of a larger file is not compared."""
_OVERLAYS = ("overlay2", "overlay")
"""Docker's name of the driver, and Podman's."""
_FOLDER, _LINK = 1 << 31, 1 << 27
"""Bits of Go's file modes."""
_PERMISSIONS, _RUN = 0o777, 0o111
Layers = tuple[Path, Sequence[Path]]
"""A container's own layer and those of its image, topmost first."""


def layers(container: Mapping[str, Any]) -> Layers | None:
    """The layers of a container, from the engine's description of it, asked for before an agent plays in it.

    None where the driver has no such folders, or this process can't read them, as on another machine.
    """
    driver = container.get("GraphDriver") or {}
    data = driver.get("Data") or {}
    if driver.get("Name") not in _OVERLAYS or not os.access(data.get("UpperDir", ""), os.R_OK | os.X_OK):
        return None
    return Path(data["UpperDir"]), [Path(layer) for layer in data["LowerDir"].split(":")]


def changes(client: docker.DockerClient, container: str, layers: Layers | None) -> Mapping[str, Change]:
    """The paths that differ from the image, mounts left out."""
    if layers is not None:
        return changed_files(*layers)
    return {found["Path"]: Change(found["Kind"]) for found in client.api.diff(container) or ()}


def fingerprint(client: docker.DockerClient, container: str, path: str) -> str | None:
    """Kind, mode, size, target and content of a file, or `folder MODE`; None where there is nothing."""
    found = _stat(client, container, path)
    if found is None:
        return None
    if found["mode"] & _FOLDER:
        return f"folder {found['mode']:o}"
    content = _content(client, container, path) if found["size"] <= _READ_BYTES else ""
    kind = "link" if found["mode"] & _LINK else "file"
    return f"{kind} {found['mode']:o} {found['size']} {found['linkTarget']} {content}"


def is_program(client: docker.DockerClient, container: str, path: str) -> bool:
    """Whether a path is a plain file that may be run."""
    found = _stat(client, container, path)
    return found is not None and found["mode"] & ~_PERMISSIONS == 0 and bool(found["mode"] & _RUN)


def _stat(client: docker.DockerClient, container: str, path: str) -> Any:
    """The engine's data about a path: mode (as in Go), size and linkTarget; None where nothing exists."""
    api = client.api
    url = f"{api.base_url}/v{api.api_version}/containers/{container}/archive"
    answer = api.head(url, params={"path": path})
    if answer.status_code == HTTPStatus.NOT_FOUND:
        return None
    answer.raise_for_status()
    return json.loads(base64.b64decode(answer.headers["X-Docker-Container-Path-Stat"]))


def content(client: docker.DockerClient, container: str, path: str) -> bytes | None:
    """The content of a plain file; None where there is none, or a larger one than is compared."""
    found = _stat(client, container, path)
    if found is None or found["mode"] & ~_PERMISSIONS or (packed := _packed(client, container, path)) is None:
        return None
    with tarfile.open(fileobj=packed) as archive:
        member = archive.next()
        file = archive.extractfile(member) if member is not None and member.isreg() else None
        return None if file is None else file.read()


def _content(client: docker.DockerClient, container: str, path: str) -> str:
    packed = _packed(client, container, path)
    if packed is None:
        return f"over {_READ_BYTES} bytes"
    with tarfile.open(fileobj=packed) as archive:
        member = archive.next()
        return hashlib.blake2b(packed.getbuffer()[member.offset_data :] if member else b"").hexdigest()


def _packed(client: docker.DockerClient, container: str, path: str) -> io.BytesIO | None:
    """A file as a tar archive; None where it is too large, as it may be though its size was read before."""
    packed = io.BytesIO()
    for chunk in client.api.get_archive(container, path)[0]:
        packed.write(chunk)
        if packed.tell() > _READ_BYTES + 2 * tarfile.RECORDSIZE:
            return None
    packed.seek(0)
    return packed


def changed_files(own: Path, image: Sequence[Path]) -> Mapping[str, Change]:
    """The files that differ from the image, and the folders that were deleted, replaced, or got other permissions."""
    found: dict[str, Change] = {}
    todo = [("", own, image, False)]
    if (change := _change(own, own.lstat(), image[:1])) is not None:
        found["/"] = change
    while todo:
        place, folder, below, hidden = todo.pop()
        hides = hidden or _is_opaque(folder)  # then so do the folders in it
        for name in _names(folder) | (_visible(below) if hides else set()):
            path, beneath = f"{place}/{name}", [layer / name for layer in below]
            mine = _status(folder / name)
            change = _change(folder / name, mine, beneath)
            if change is not None:
                found[os.fsencode(path).decode("utf-8", "replace")] = change
            if mine is not None and stat.S_ISDIR(mine.st_mode):
                todo.append((path, folder / name, _folders(beneath), hides))
    return found


def _names(folder: Path) -> set[str]:
    """What is in a folder; an agent may change it meanwhile."""
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()


def _visible(folders: Sequence[Path]) -> set[str]:
    """The names in a folder of the image, from its layers' folders."""
    names = set().union(*map(_names, folders))
    return {name for name in names if _first([folder / name for folder in folders]) is not None}


def _folders(paths: Sequence[Path]) -> list[Path]:
    """Those of a path's places in the layers, topmost first, whose content is seen in a folder of the image."""
    found = []
    for path in paths:
        status = _status(path)
        if status is not None and not stat.S_ISDIR(status.st_mode):
            break
        if status is not None:
            found.append(path)
            if _is_opaque(path):
                break
    return found


def _first(paths: Sequence[Path]) -> tuple[Path, os.stat_result] | None:
    """Where the image has a path, from its places in the layers; None where it has none."""
    for path in paths:
        status = _status(path)
        if status is not None:
            return None if _is_whiteout(status) else (path, status)
    return None


def _change(path: Path, mine: os.stat_result | None, beneath: Sequence[Path]) -> Change | None:
    """How a path of the container's own layer differs; None where it does not, as when it was only linked or opened.

    A new folder is none: what is in it tells.
    """
    theirs = _first(beneath)
    if mine is None or _is_whiteout(mine):
        return None if theirs is None else Change.DELETED
    is_folder = stat.S_ISDIR(mine.st_mode)
    if theirs is None:
        return None if is_folder else Change.ADDED
    if _same(path, mine, *theirs):
        return None
    return Change.FOLDER if is_folder else Change.CHANGED


def _is_opaque(folder: Path) -> bool:
    """Whether a folder hides those of the layers below it, as one that was deleted and made again does."""
    for name in ("trusted.overlay.opaque", "user.overlay.opaque"):
        with suppress(OSError):
            if os.getxattr(folder, name, follow_symlinks=False) == b"y":
                return True
    return False


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except OSError:
        return None


def _is_whiteout(status: os.stat_result) -> bool:
    """Overlayfs marks a deleted path by a device with number 0."""
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def _same(one: Path, mine: os.stat_result, other: Path, theirs: os.stat_result) -> bool:
    if (mine.st_mode, mine.st_uid, mine.st_gid) != (theirs.st_mode, theirs.st_uid, theirs.st_gid):
        return False
    if stat.S_ISREG(mine.st_mode):
        return mine.st_size == theirs.st_size and _digest(one) == _digest(other)
    return not stat.S_ISLNK(mine.st_mode) or os.readlink(one) == os.readlink(other)


def _digest(path: Path) -> str | None:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            return hashlib.file_digest(file, "blake2b").hexdigest()
    except OSError:
        return None
