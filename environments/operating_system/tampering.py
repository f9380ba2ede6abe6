"""Finds programs and libraries that judge an agent's work and that the agent changed, as the engine sees it."""

import re
import sys
from collections.abc import Iterable, Mapping, Set
from pathlib import PurePosixPath

from environments.operating_system.dataset import SampleRecord, ShellScript
from proctor.sandbox import Change, Sandbox

_PROGRAMS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
_LIBRARIES = re.compile(
    r"/(usr/|usr/local/)?lib(32|64|x32|exec)?/(?!locale/)|/usr/(include/|share/perl)|/etc/alternatives/"
)
_SEARCHED = re.compile(
    r"/(usr/|usr/local/)?lib(32|64|x32)?/(.*/)?([^/]*\.so[^/]*$|gconv|python3|perl)"
    r"|/etc/(python3|perl/|ld\.so\.)|/root/\.local/lib/python3|/usr/pyvenv\.cfg$"
)
"""Paths where a new file counts too, since loaders and interpreters search them."""
_ROOTS = (
    *_PROGRAMS,
    *(f"{base}/lib{bits}" for base in ("", "/usr", "/usr/local") for bits in ("", "32", "64", "x32", "exec")),
    *("/etc/alternatives", "/etc/perl", "/etc/python3", "/usr/include", "/usr/share/perl", "/root/.local/lib/python3"),
)
"""Folders in which paths are watched."""
_STANDARD_MODULES = sys.stdlib_module_names | {"sitecustomize", "usercustomize"}
_NAMED = re.compile(r"(?<![\w.$*}~/-])/(?:[\w.+@-]+/?)*")
_MAX_PATHS = 20


def suspects(changes: Mapping[str, Change], above: Set[str] = frozenset()) -> list[str]:
    """The changed paths that may shadow programs and libraries of the checks, without folders whose content changed.

    Also what a watched path lies in, where that was deleted or is no folder of the image's any more. New programs are
    included; the caller must keep only those that hide another. Compiled Python files are not included, since no check
    reads them.
    """
    parents = {str(parent) for path in changes for parent in PurePosixPath(path).parents}
    return sorted(
        path
        for path, change in changes.items()
        if (change is Change.DELETED or path not in parents) and _suspect(PurePosixPath(path), change, above)
    )


def ancestors(paths: Iterable[str]) -> set[str]:
    """The folders that paths lie in, but for the root."""
    return {str(parent) for path in paths for parent in PurePosixPath(path).parents} - {"/"}


def named_by_checks(record: SampleRecord) -> set[str]:
    """The absolute paths in a sample's checks that are neither in its description, set-up or example nor below such a
    path, since the agent may have to change those. Empty without an example, as then all paths may be such.
    """
    if record.example is None:
        return set()
    others = (*record.init, record.start, record.example)
    about = _paths(record.description).union(*map(_paths, _codes(others)))
    named = set().union(*map(_paths, _codes(record.checks)))
    return {path for path in named if not about & {path, *map(str, PurePosixPath(path).parents)}}


class Guard:
    """Finds what the agent changed in a sandbox, compared with the state before its first turn.

    `named`: additional paths to watch; only those that are programs of the image are watched.
    """

    def __init__(self, sandbox: Sandbox, named: Iterable[str] = ()) -> None:
        self._sandbox, self._named = sandbox, named
        self._before: dict[str, str | None] = {}
        self._programs: dict[str, str | None] = {}
        self._above: set[str] = set()
        """The folders that those programs lie in."""
        self._found: set[str] = set()

    async def note_image(self) -> None:
        """Records the image's programs, before set-up. Raises EnvironmentFault if the sandbox is gone."""
        programs = [path for path in sorted(self._named) if await self._sandbox.is_program(path)]
        self._programs = {path: await self._sandbox.fingerprint(path) for path in programs}
        self._above = ancestors(programs)

    async def begin(self) -> None:
        """Records the changes of set-up, which do not count. Raises EnvironmentFault if the sandbox is gone."""
        changes = await self._sandbox.changes() or {}
        self._before = {path: await self._sandbox.fingerprint(path) for path in suspects(changes, self._above)}
        self._programs = {path: await self._sandbox.fingerprint(path) for path in self._programs}

    async def look(self) -> tuple[str, ...] | None:
        """Changed paths that shadow programs and libraries of the checks, including those of earlier calls.

        None if the engine can't see changes. Raises EnvironmentFault if the sandbox is gone.
        """
        changes = await self._sandbox.changes()
        if changes is None:
            return None
        for path in suspects(changes, self._above):
            new = path not in self._found and len(self._found) < _MAX_PATHS
            if new and await self._is_shadow(path, changes):
                self._found.add(path)
        for path, before in self._programs.items():
            if path not in self._found and await self._sandbox.fingerprint(path) != before:
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
        """Whether a different program of this name exists; the same one in a linked folder (/bin) does not count."""
        for folder in _PROGRAMS:
            name = f"{folder}/{PurePosixPath(path).name}"
            if changes.get(name) is not Change.ADDED and await self._sandbox.fingerprint(name) not in (
                None,
                fingerprint,
            ):
                return True
        return False


def _codes(scripts: Iterable[ShellScript | None]) -> list[str]:
    return [script.code for script in scripts if script is not None]


def _paths(text: str) -> set[str]:
    return {path.rstrip("/.") or "/" for path in _NAMED.findall(text)}


def _suspect(path: PurePosixPath, change: Change, above: Set[str]) -> bool:
    if "__pycache__" in path.parts:
        return False
    if str(path) in _ABOVE or str(path) in above:
        return True
    if _is_program(path) or _SEARCHED.match(str(path)) or _is_standard_module(path):
        return True
    return change is not Change.ADDED and (_LIBRARIES.match(str(path)) is not None or str(path) in _ROOTS)


_ABOVE = ancestors(_ROOTS)
"""What watched folders lie in: a link there puts others in their place."""


def _is_program(path: PurePosixPath) -> bool:
    return str(path.parent) in _PROGRAMS


def _is_standard_module(path: PurePosixPath) -> bool:
    """Whether Python, started in `/`, would import this file in place of a standard module."""
    module = path.parent if path.name.startswith("__init__.") else path
    importable = str(module.parent) == "/" and path.suffix in (".py", ".pyc", ".so")
    return importable and module.name.split(".")[0] in _STANDARD_MODULES
