"""Which files users' code opens while it is imported and in `samples`: data beside a world's file are part of it."""

import os
import sys
from collections.abc import Set
from pathlib import Path
from typing import Any

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

_watching: list[bool] = []
_otherwise: dict[str, set[Path]] = {}
_opened: dict[tuple[str, str, str], set[Path]] = {}
"""(file of code, names in the configuration of the world whose `samples` ran, all of that) -> what was opened"""


def watch() -> None:
    """Note from now on what is opened. Python has no way to stop that, so only processes with users' code do it."""
    if not _watching:
        _watching.append(True)
        sys.addaudithook(_note)


def opened_by(file: Path, world: object) -> Set[Path]:
    """The files in a file's folder that its import, or `samples` of a world configured alike, opened to read."""
    imported, key = _opened.get((str(file), "", ""), set()), (str(file), *_configuration(world))
    alike = (paths for known, paths in _opened.items() if known[:2] == key[:2] and known != key)
    own, others = _opened.get(key, set()), set[Path]().union(*alike)
    return imported | own | (set() if own - others else others)  # one of those may have read what is cached since


def watch_folder(folder: Path) -> Set[Path]:
    """The files in a folder that other code opens to read from now on: a set that grows."""
    watch()
    return _otherwise.setdefault(f"{folder}{os.sep}", set())


def _configuration(world: object) -> tuple[str, str]:
    """The names and paths by which a world is configured, and its whole configuration; an agent has none."""
    if world is None:
        return "", ""
    return str([str(value) for value in vars(world).values() if isinstance(value, str | Path)]), repr(world)


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in ("open", "sqlite3.connect") or not isinstance(arguments[0], str | bytes | os.PathLike):
        return
    if event == "open" and (not isinstance(arguments[2], int) or arguments[2] & WRITES or not arguments[2]):
        return  # one without flags is a module that is imported
    path = os.path.realpath(os.fsdecode(arguments[0]))
    frame = sys._getframe(1)
    while frame is not None:
        name, file, world = frame.f_code.co_name, frame.f_code.co_filename, None
        if name == "samples" and (world := frame.f_locals.get("self")) is not None:
            file = getattr(sys.modules.get(type(world).__module__), "__file__", None) or file
        if name in ("<module>", "samples"):
            code = os.path.realpath(file)
            if path.startswith(f"{os.path.dirname(code)}{os.sep}"):
                key = (code, "", "") if world is None else (code, *_configuration(world))
                _opened.setdefault(key, set()).add(Path(path))
                return
            break
        frame = frame.f_back  # type: ignore[assignment]  # None at the end
    for folder, files in _otherwise.items():
        if path.startswith(folder):
            files.add(Path(path))
