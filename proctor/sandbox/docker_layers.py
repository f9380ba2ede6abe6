"""The changed files of a container, read from its layers where this process may read them.

They show what Docker's own comparison misses: other content of the same size and modification time. Every call blocks.
"""

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
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
    """The files that differ from the image; a folder only where the image's own was deleted, or is another's now."""
    found: dict[str, Change] = {}
    for path, is_folder in _entries(own):
        change = _folder_change(own, image, path) if is_folder else _change(own, image, path)
        if change is not None:
            found[os.fsencode(f"/{path}").decode("utf-8", "replace")] = change
    return found


def _entries(own: Path) -> Iterator[tuple[str, bool]]:
    """The paths in a layer, and which are folders. An agent may change the layer meanwhile."""
    folders = [""]
    while folders:
        folder = folders.pop()
        try:
            entries = list(os.scandir(own / folder))
        except OSError:
            continue
        for entry in entries:
            path = os.path.join(folder, entry.name)
            if is_folder := entry.is_dir(follow_symlinks=False):
                folders.append(path)
            yield path, is_folder


def _change(own: Path, image: Sequence[Path], path: str) -> Change | None:
    """How a file of the container's own layer differs; None where it does not, as when it was only linked or opened."""
    mine = _status(own / path)
    if mine is None:
        return None
    if _is_whiteout(mine):
        return Change.DELETED
    layer, theirs = _of_image(image, path)
    if theirs is None:
        return Change.ADDED
    return None if _same(own / path, mine, layer / path, theirs) else Change.CHANGED


def _folder_change(own: Path, image: Sequence[Path], path: str) -> Change | None:
    """DELETED for a folder in the place of something else of the image, or of a folder that was removed before."""
    _, theirs = _of_image(image, path)
    if theirs is None:
        return None
    return None if stat.S_ISDIR(theirs.st_mode) and not _is_opaque(own / path) else Change.DELETED


def _of_image(image: Sequence[Path], path: str) -> tuple[Path, os.stat_result | None]:
    """The image's layer with this path, and what is there; None where nothing is."""
    for layer in image:
        theirs = _status(layer / path)
        if theirs is not None:
            return layer, None if _is_whiteout(theirs) else theirs
        if _is_opaque((layer / path).parent):
            break
    return Path(), None


def _is_opaque(folder: Path) -> bool:
    """Whether overlayfs shows nothing of the layers below in a folder."""
    for name in ("trusted.overlay.opaque", "user.overlay.opaque"):
        try:
            return os.getxattr(folder, name, follow_symlinks=False) == b"y"
        except OSError:
            continue
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
