"""What an agent changed of the programs and libraries that judge its work, as the container engine sees it."""

import re
import sys
from collections.abc import Iterable, Mapping
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
"""A new file counts too here: loaders and interpreters look into these places by themselves."""
_STANDARD_MODULES = sys.stdlib_module_names | {"sitecustomize", "usercustomize"}
_NAMED = re.compile(r"(?<![\w.$*}~/-])/(?:[\w.+@-]+/?)*")
_TOLD = 20


def suspects(changes: Mapping[str, Change]) -> list[str]:
    """The changed paths that may shadow what judging uses; folders whose content changed are left out.

    New programs are among them, though only those count that hide another. Compiled Python is not: no check reads it.
    """
    parents = {str(parent) for path in changes for parent in PurePosixPath(path).parents}
    return sorted(
        path for path, change in changes.items() if path not in parents and _suspect(PurePosixPath(path), change)
    )


def named_by_checks(record: SampleRecord) -> set[str]:
    """The absolute paths that a sample's checks name, and nothing else of it, nor the folder of one.

    What its description, set-up or example names may be what the task is about; without an example, that may be all.
    """
    if record.example is None:
        return set()
    others = (*record.init, record.start, record.example)
    about = _paths(record.description).union(*map(_paths, _codes(others)))
    named = set().union(*map(_paths, _codes(record.checks)))
    return {path for path in named if not about & {path, *map(str, PurePosixPath(path).parents)}}


class Guard:
    """Tells what a sandbox's agent changed, from how the sandbox was before it.

    `named` are paths outside of those where programs are looked for: of them, the programs of the image are watched.
    """

    def __init__(self, sandbox: Sandbox, named: Iterable[str] = ()) -> None:
        self._sandbox, self._named = sandbox, named
        self._before: dict[str, str | None] = {}
        self._programs: dict[str, str | None] = {}
        self._found: set[str] = set()

    async def note_image(self) -> None:
        """Look at the image, before set-up. Raises EnvironmentFault when the sandbox is gone."""
        programs = [path for path in sorted(self._named) if await self._sandbox.is_program(path)]
        self._programs = {path: await self._sandbox.fingerprint(path) for path in programs}

    async def begin(self) -> None:
        """Take what set-up changed for given. Raises EnvironmentFault when the sandbox is gone."""
        changes = await self._sandbox.changes() or {}
        self._before = {path: await self._sandbox.fingerprint(path) for path in suspects(changes)}
        self._programs = {path: await self._sandbox.fingerprint(path) for path in self._programs}

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
        for path, before in self._programs.items():
            if await self._sandbox.fingerprint(path) != before:
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


def _codes(scripts: Iterable[ShellScript | None]) -> list[str]:
    return [script.code for script in scripts if script is not None]


def _paths(text: str) -> set[str]:
    return {path.rstrip("/.") or "/" for path in _NAMED.findall(text)}


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
