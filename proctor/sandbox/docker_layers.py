"""The changed files of a container, read from its layers where this process may read them.

They show what Docker's own comparison misses: other content of the same size and modification time. Every call blocks.
"""

import hashlib
import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from proctor.sandbox.base import Change


def layers(container: Mapping[str, Any]) -> tuple[Path, Sequence[Path]] | None:
    """The container's own layer and those of its image, topmost first, from the engine's description of the container.

    None where the driver has no such folders, or this process can't read them, as on another machine.
    """
    driver = container.get("GraphDriver") or {}
    data = driver.get("Data") or {}
    if driver.get("Name") != "overlay2" or not os.access(data.get("UpperDir", ""), os.R_OK | os.X_OK):
        return None
    return Path(data["UpperDir"]), [Path(layer) for layer in data["LowerDir"].split(":")]


def changes(own: Path, image: Sequence[Path]) -> Mapping[str, Change]:
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
        return mine.st_size == theirs.st_size and _content(one) == _content(other)
    return not stat.S_ISLNK(mine.st_mode) or os.readlink(one) == os.readlink(other)


def _content(path: Path) -> str | None:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            return hashlib.file_digest(file, "blake2b").hexdigest()
    except OSError:
        return None
