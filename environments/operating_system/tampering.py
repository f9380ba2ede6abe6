"""Finds programs and libraries that judge an agent's work and that the agent changed, as the engine sees it."""

import re
import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import PurePosixPath

from environments.operating_system.dataset import SampleRecord, ShellScript
from proctor.environment import EnvironmentFault
from proctor.sandbox.base import Change, Sandbox

_PROGRAMS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
_LIBRARIES = re.compile(
    r"/(usr/|usr/local/)?lib(32|64|x32|exec)?/(?!locale/)|/usr/(include/|share/perl)|/etc/alternatives/"
)
_SEARCHED = re.compile(
    r"/(usr/|usr/local/)?lib(32|64|x32)?/(.*/)?([^/]*\.so[^/]*$|gconv|python3|perl)"
    r"|/etc/(python3|perl/|ld\.so\.)|/root/\.local/lib/python3|/usr/pyvenv\.cfg$"
)
"""Paths where a new file counts too, since loaders and interpreters search them."""
_HOME = "/root"
"""The home of a container's user."""
_TREES = (
    *(f"{place}/{name}" for place in ("", "/usr", "/usr/local") for name in ("lib", "lib32", "lib64", "libx32")),
    *("/usr/libexec", "/usr/local/libexec", "/usr/include", "/usr/share/perl", "/usr/share/perl5"),
    *("/etc/alternatives", "/etc/perl", "/etc/python3", f"{_HOME}/.local/lib"),
)
"""The folders of what is watched below folders."""
_STANDARD_MODULES = sys.stdlib_module_names | {"sitecustomize", "usercustomize"}
ROOTS = frozenset(
    str(place) for path in (*_PROGRAMS, *_TREES) for place in (PurePosixPath(path), *PurePosixPath(path).parents)
)
"""What is watched, down to the folders that hold it, and all that these are in."""
_UNREADABLE = "unreadable"
_NAMED = re.compile(r"(?<![\w.$*}~/-])/(?:[\w.+@-]+/?)*")
_MAX_PATHS = 20


def suspects(changes: Mapping[str, Change], roots: Collection[str] = ROOTS) -> list[str]:
    """The changed paths that may shadow programs and libraries of the checks, without folders whose content changed.

    Every change of `roots`, the watched folders and all that these are in, is included. New programs are included; the
    caller must keep only those that hide another. Compiled Python files are not included, since no check reads them.
    """
    parents = {str(parent) for path in changes for parent in PurePosixPath(path).parents}
    return sorted(
        path
        for path, change in changes.items()
        if (path not in parents or change is Change.FOLDER) and (path in roots or _suspect(PurePosixPath(path), change))
    )


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
        self._roots = ROOTS
        self._found: set[str] = set()

    async def note_image(self) -> None:
        """Records the image's programs, before set-up. Raises EnvironmentFault if the sandbox is gone."""
        programs = [path for path in sorted(self._named) if await self._sandbox.is_program(path)]
        self._programs = {path: await self._sandbox.fingerprint(path) for path in programs}
        self._roots = ROOTS.union(str(folder) for path in programs for folder in PurePosixPath(path).parents)

    async def begin(self) -> None:
        """Records the changes of set-up, which do not count. Raises EnvironmentFault if the sandbox is gone."""
        changes = await self._sandbox.changes() or {}
        self._before = {path: await self._sandbox.fingerprint(path) for path in suspects(changes, self._roots)}
        self._programs = {path: await self._sandbox.fingerprint(path) for path in self._programs}

    async def look(self) -> tuple[str, ...] | None:
        """Changed paths that shadow programs and libraries of the checks, including those of earlier calls.

        `/` stands for all where the engine can't look for what the agent did. None if the engine can see no changes.
        Raises EnvironmentFault if the sandbox is gone.
        """
        try:
            changes = await self._sandbox.changes()
        except EnvironmentFault:
            if not await self._sandbox.is_spoiled(lambda box: box.changes()):
                raise
            self._found.add("/")
            return tuple(sorted(self._found))
        if changes is None:
            return None
        for path in suspects(changes, self._roots):
            new = path not in self._found and len(self._found) < _MAX_PATHS
            if new and await self._is_shadow(path, changes):
                self._found.add(path)
        for path, before in {**self._before, **self._programs}.items():
            if path not in self._found and await self._state(path) != before:
                self._found.add(path)
        return tuple(sorted(self._found))

    async def _state(self, path: str) -> str | None:
        """The fingerprint now; that of nothing known where the engine can't read it for what the agent did."""
        try:
            return await self._sandbox.fingerprint(path)
        except EnvironmentFault:
            if not await self._sandbox.is_spoiled(lambda box: box.fingerprint(path)):
                raise
            return _UNREADABLE

    async def _is_shadow(self, path: str, changes: Mapping[str, Change]) -> bool:
        state, change = await self._state(path), changes[path]
        for known in (self._before, self._programs):
            if path in known:
                return state != known[path]
        if change in (Change.DELETED, Change.FOLDER):
            return True
        if state is None or state.startswith("folder"):  # gone again; or what is in it tells
            return False
        if change is Change.ADDED and not _SEARCHED.match(path) and not _is_module_file(PurePosixPath(path)):
            if _is_program(PurePosixPath(path)):
                return await self._hides(path, state, changes)
            return state.startswith("link") or path in self._roots
        return True

    async def _hides(self, path: str, fingerprint: str, changes: Mapping[str, Change]) -> bool:
        """Whether a different program of this name exists; the same one in a linked folder (/bin) does not count."""
        for folder in _PROGRAMS:
            name = f"{folder}/{PurePosixPath(path).name}"
            if changes.get(name) is not Change.ADDED and await self._state(name) not in (None, fingerprint):
                return True
        return False


def _codes(scripts: Iterable[ShellScript | None]) -> list[str]:
    return [script.code for script in scripts if script is not None]


def _paths(text: str) -> set[str]:
    return {path.rstrip("/.") or "/" for path in _NAMED.findall(text)}


def _suspect(path: PurePosixPath, change: Change) -> bool:
    if "__pycache__" in path.parts:
        return False
    if _is_program(path) or _SEARCHED.match(str(path)) or _is_standard_module(path):
        return True
    in_libraries = _LIBRARIES.match(str(path)) is not None
    may_hold_libraries = not path.suffix and path.parts[1] != "etc"  # as a link to a folder of them
    return in_libraries and (change is not Change.ADDED or may_hold_libraries)


def _is_program(path: PurePosixPath) -> bool:
    return str(path.parent) in _PROGRAMS


def _is_standard_module(path: PurePosixPath) -> bool:
    """Whether Python, started in `/`, could import this, or what a link leads to, in place of a standard module."""
    module = path.parent if path.name.startswith("__init__.") else path
    return str(module.parent) == "/" and module.name.split(".")[0] in _STANDARD_MODULES


def _is_module_file(path: PurePosixPath) -> bool:
    return _is_standard_module(path) and path.suffix in (".py", ".pyc", ".so")
