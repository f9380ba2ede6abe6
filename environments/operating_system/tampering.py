"""What an agent changed of the programs and libraries that judge its work, as the container engine sees it."""

import re
import sys
from collections.abc import Mapping
from pathlib import PurePosixPath

from environments.sandbox import Change, Sandbox

_PROGRAMS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
_LIBRARIES = re.compile(
    r"/(usr/|usr/local/)?lib(32|64|x32|exec)?/(?!locale/)|/usr/(include/|share/perl)|/etc/alternatives/"
)
_SEARCHED = re.compile(
    r"/(usr/|usr/local/)?lib(32|64|x32)?/(.*/)?([^/]*\.so[^/]*$|gconv|python3|perl)"
    r"|/etc/(python3|perl/|ld\.so\.)|/root/\.local/lib/python3|/usr/pyvenv\.cfg$"
)
"""A new file counts too here: loaders and interpreters look into these places by themselves."""
_STANDARD_MODULES = sys.stdlib_module_names | {"sitecustomize", "usercustomize"}
_TOLD = 20


def suspects(changes: Mapping[str, Change]) -> list[str]:
    """The changed paths that may shadow what judging uses; folders whose content changed are left out.

    New programs are among them, though only those count that hide another. Compiled Python is not: no check reads it.
    """
    parents = {str(parent) for path in changes for parent in PurePosixPath(path).parents}
    return sorted(
        path for path, change in changes.items() if path not in parents and _suspect(PurePosixPath(path), change)
    )


class Guard:
    """Tells what a sandbox's agent changed, from how the sandbox was before it."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._before: dict[str, str | None] = {}
        self._found: set[str] = set()

    async def begin(self) -> None:
        """Take what set-up changed for given. Raises EnvironmentFault when the sandbox is gone."""
        changes = await self._sandbox.changes() or {}
        self._before = {path: await self._sandbox.fingerprint(path) for path in suspects(changes)}

    async def look(self) -> tuple[str, ...] | None:
        """The first paths that shadow what judging uses, also those of earlier looks; None where none can be seen.

        Raises EnvironmentFault when the sandbox is gone.
        """
        changes = await self._sandbox.changes()
        if changes is None:
            return None
        for path in suspects(changes):
            if len(self._found) < _TOLD and await self._is_shadow(path, changes):
                self._found.add(path)
        return tuple(sorted(self._found))

    async def _is_shadow(self, path: str, changes: Mapping[str, Change]) -> bool:
        if changes[path] is Change.DELETED:
            return True
        fingerprint = await self._sandbox.fingerprint(path)
        if fingerprint is None or fingerprint == self._before.get(path):
            return False
        is_new_program = changes[path] is Change.ADDED and _is_program(PurePosixPath(path)) and path not in self._before
        return not is_new_program or await self._hides(path, fingerprint, changes)

    async def _hides(self, path: str, fingerprint: str, changes: Mapping[str, Change]) -> bool:
        """Whether another program of this name was there before; the same one by way of a link (/bin) is no other."""
        for folder in _PROGRAMS:
            name = f"{folder}/{PurePosixPath(path).name}"
            if changes.get(name) is not Change.ADDED and await self._sandbox.fingerprint(name) not in (
                None,
                fingerprint,
            ):
                return True
        return False


def _suspect(path: PurePosixPath, change: Change) -> bool:
    if "__pycache__" in path.parts:
        return False
    if _is_program(path) or _SEARCHED.match(str(path)) or _is_standard_module(path):
        return True
    return change is not Change.ADDED and (_LIBRARIES.match(str(path)) is not None or str(path) in _PROGRAMS)


def _is_program(path: PurePosixPath) -> bool:
    return str(path.parent) in _PROGRAMS


def _is_standard_module(path: PurePosixPath) -> bool:
    """Whether Python, started in `/`, would import this file for a module of its own."""
    module = path.parent if path.name.startswith("__init__.") else path
    importable = str(module.parent) == "/" and path.suffix in (".py", ".pyc", ".so")
    return importable and module.name.split(".")[0] in _STANDARD_MODULES
