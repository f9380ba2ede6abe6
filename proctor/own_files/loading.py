"""Worlds and agents in files of the user's own: `./trivia.py`, `./trivia.py:Trivia`, `module:Trivia`.

Only what `admit` has been given is ever loaded. What a store or another machine names never is: who asks for it gets an
OwnFileError, as for everything that is wrong with a user's file.
"""

import contextlib
import hashlib
import importlib
import importlib.util
import inspect
import os
import re
import sys
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from proctor.own_files import opened

if TYPE_CHECKING:
    from proctor.environment import Environment

OURS = ("agent_server", "environments", "eval_client", "proctor", "task_server")
"""Our packages: no package of a user's file may have one of these names."""
NO_FILE = "-"
"""Stands in a reference for the file of a class or function that has none, such as one of a notebook's cell."""


class OwnFileError(ImportError):
    """What is wrong with a user's file, in one line with file and line, so that no traceback of ours is needed.

    Where the file raised, the lines after the first are the frames of the user's own files.
    """


class Loaded(NamedTuple):
    """A module of a user's file, with the size and time of each file beside it that it was loaded from."""

    module: ModuleType
    files: Mapping[Path, tuple[int, int]]


_admitted: set[str] = set()
_given: dict[str, object] = {}
"""reference -> the class or function that a Python program gave"""
_loaded: dict[Path, Loaded] = {}
under_way: list[str] = []
"""The files and modules that are being imported: a program that evaluates must not do so then."""


def admit(reference: str, folder: Path) -> str:
    """The same reference, absolute, and from now on loaded in this process: call it for what the user has named.

    A path is meant from the folder, normally that of the file that names it; so is a module that lies there.
    """
    place, name = _parts(reference)
    if not place.endswith(".py"):
        beside = folder / place.replace(".", "/")
        files = (beside.with_name(f"{beside.name}.py"), beside / "__init__.py")
        place = next((str(file) for file in files if file.is_file()), place)
    if place.endswith(".py"):
        place = str((folder / place).resolve())
    absolute = f"{place}:{name}" if name else place
    _admitted.add(absolute)
    return absolute


def admit_world(reference: str, folder: Path) -> str:
    """`admit` for a world: the reference that all spellings of a class have, by the file that defines it.

    Raises OwnFileError.
    """
    admitted = admit(reference, folder)
    whole = _reference_to(world_class(admitted))
    _admitted.add(whole)
    return admitted if admitted in _given else whole


def admit_given(given: Any) -> str:
    """A reference to a class or function of a Python program, by which this process finds that very object."""
    reference = _reference_to(given)
    _admitted.add(reference)
    _given[reference] = given
    return reference


def _reference_to(found: Any) -> str:
    file = getattr(sys.modules.get(found.__module__), "__file__", None)
    return f"{Path(file).resolve() if file else NO_FILE}:{found.__qualname__}"


def task_name(reference: str) -> str:
    """The name of a task without one: that of its class in snake case, `trivia_night` for `TriviaNight`."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", _parts(reference)[1])
    return name.rpartition(".")[2].lower().strip("_")


def world_class(reference: str) -> "type[Environment]":
    """The Environment class that a reference names, else the only one that its file defines. Raises OwnFileError."""
    from proctor.environment import Environment  # 0.1 s that lists of names do without

    name = _parts(reference)[1]
    if name:
        found = named(reference)
        if not (isinstance(found, type) and issubclass(found, Environment)):
            raise OwnFileError(f"{_line_of(reference, found)}: {name} is no class of Environment")
    else:
        found = _only_class(reference, Environment)
    if inspect.isabstract(found):
        methods = " and ".join(f"`{method}`" for method in sorted(found.__abstractmethods__))
        raise OwnFileError(f"{_line_of(reference, found)}: class {found.__name__} lacks {methods}; define it")
    try:
        found.model_rebuild()
    except Exception as error:
        first = str(error).partition("\n")[0]
        raise OwnFileError(f"{_line_of(reference, found)}: class {found.__name__}: {first}") from error
    return found


def named(reference: str) -> object:
    """The object that a reference names. Raises OwnFileError."""
    if reference in _given:
        return _given[reference]
    place, name = _parts(reference)
    module = _module(reference)
    found: object = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None or not name:
        own = [key for key, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
        has = f"; it defines: {', '.join(own)}" if own else ""
        raise OwnFileError(f"{place}: {f'there is no {name}' if name else 'name what is meant, as FILE.py:NAME'}{has}")
    return found


def _parts(reference: str) -> tuple[str, str]:
    """The file or module of a reference, and the name in it, "" without one."""
    if reference.endswith(".py"):
        return reference, ""
    place, _, name = reference.rpartition(":")
    return place, name


def _only_class(reference: str, base: type[Any]) -> Any:
    module = _module(reference)
    classes = {value: None for value in vars(module).values() if isinstance(value, type) and issubclass(value, base)}
    own = [each for each in classes if each.__module__ == module.__name__]
    whole = [each for each in own if not inspect.isabstract(each)]
    if len(whole or own) == 1:
        return (whole or own)[0]
    if not own:
        imported = [each.__name__ for each in classes if each is not base]
        other = f"; it imports {', '.join(imported)}: to play that, write {reference}:{imported[0]}" if imported else ""
        raise OwnFileError(f"{reference}: defines no class of Environment{other}")
    several = ", ".join(f"{each.__name__} (line {_line(each)})" for each in whole or own)
    raise OwnFileError(
        f"{reference}: defines several worlds: {several}; write {reference}:{(whole or own)[0].__name__}"
    )


def _line(found: Any) -> int:
    try:
        return inspect.getsourcelines(found)[1]
    except (OSError, TypeError):
        return 1


def _line_of(reference: str, found: object) -> str:
    """`FILE:LINE` of a class or function."""
    try:
        return f"{inspect.getsourcefile(found)}:{_line(found)}"  # type: ignore[arg-type]  # raises TypeError for others
    except TypeError:
        return _parts(reference)[0]


def _module(reference: str) -> ModuleType:
    """The module of a reference, loaded once, and anew where it or a module beside it has changed."""
    if reference not in _admitted:
        raise OwnFileError(f"{reference}: is not loaded, since only a store names it; name your plan by --plan FILE")
    place = _parts(reference)[0]
    if not place.endswith(".py"):
        return _imported(place, place, Path.cwd())
    file = Path(place)
    known = _loaded.get(file)
    if known is not None and all(_stamp(path) == stamp for path, stamp in known.files.items()):
        return known.module
    if not file.is_file():
        raise OwnFileError(f"{file}: there is no such file; correct the path")
    folder, name = _package(file)
    if known is not None:
        _forget(folder)
    opened.watch()
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    module = _by_path(file, folder) if name is None else _of_package(name, file, folder)
    _loaded[file] = Loaded(module, {path: _stamp(path) for path in (file, *_modules_in(folder).values())})
    return module


def loaded_folders() -> set[Path]:
    """The folders of all files that have been loaded."""
    return set(map(folder_of, _loaded))


def folder_of(file: Path) -> Path:
    """The folder that a file's absolute imports are found in: its own, or that of the outermost package it is in."""
    return _package(file)[0]


def _package(file: Path) -> tuple[Path, str | None]:
    """The folder for the import path, and the module's name where the file is in a package."""
    folder = file.parent
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    if folder == file.parent:
        return folder, None
    parts = file.relative_to(folder).with_suffix("").parts
    return folder, ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _of_package(name: str, file: Path, folder: Path) -> ModuleType:
    top = name.partition(".")[0]
    if top in OURS and not (folder / top).samefile(Path(__file__).parents[2] / top):
        raise OwnFileError(f"{file}: its package is called {top!r}, as one of Proctor's own; rename the folder")
    module = _imported(name, str(file), folder)
    if module.__file__ is None or Path(module.__file__).resolve() != file:
        raise OwnFileError(f"{file}: another {name!r} is found first, {module.__file__}; rename the folder")
    return module


def _by_path(file: Path, folder: Path) -> ModuleType:
    """A file as a module whose name nothing else has."""
    name = f"own_file_{hashlib.blake2b(str(file).encode(), digest_size=6).hexdigest()}_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pydantic look names up there
    try:
        with _errors_located(str(file), folder):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _imported(name: str, place: str, folder: Path) -> ModuleType:
    with _errors_located(place, folder):
        return importlib.import_module(name)


@contextlib.contextmanager
def _errors_located(place: str, folder: Path) -> Iterator[None]:
    """Import a user's module: its prints go to standard error, and what it raises becomes an OwnFileError.

    No bytecode is written, which would hide an edit within the same second.
    """
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    under_way.append(place)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except OwnFileError:
        raise
    except SyntaxError as error:
        raise OwnFileError(f"{error.filename or place}:{error.lineno or 1}: {error.msg}") from error
    except (Exception, SystemExit) as error:
        raise OwnFileError(_raised(error, folder, place)) from error
    finally:
        sys.dont_write_bytecode = writes
        under_way.remove(place)


def raised(error: BaseException, reference: str) -> str:
    """What a user's code raised: file and line, then the frames of the user's own files, if there are several."""
    place = _parts(reference)[0]
    return _raised(error, folder_of(Path(place)) if place.endswith(".py") else Path.cwd(), place)


def _raised(error: BaseException, folder: Path, place: str) -> str:
    frames = [each for each in traceback.extract_tb(error.__traceback__) if is_users(each.filename, folder)]
    where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else place
    what = " ".join(traceback.format_exception_only(error)[-1].split())
    if isinstance(error, ModuleNotFoundError) and error.name:
        what = f"there is no module {error.name!r}; put its file beside, or install it"
    calls = [f"\n  {each.filename}:{each.lineno} in {each.name}: {each.line}" for each in frames]
    return f"{where}: {what}{''.join(calls) if len(calls) > 1 else ''}"


def is_users(file: str, folder: Path) -> bool:
    """Whether a file is one of the user's own in a folder: neither ours nor of a Python that is installed in there."""
    if not file.startswith(f"{folder}{os.sep}"):
        return False
    parts = Path(file).relative_to(folder).parts
    ours = parts[0] in OURS and folder == Path(__file__).parents[2]
    return not ours and "site-packages" not in parts and not any(part.startswith(".") for part in parts)


def _modules_in(folder: Path) -> dict[str, Path]:
    """The user's modules in a folder that are loaded, with their files."""
    files = {name: getattr(module, "__file__", None) for name, module in list(sys.modules.items())}
    return {name: Path(file) for name, file in files.items() if file and is_users(file, folder)}


def _forget(folder: Path) -> None:
    """Have the modules of a folder loaded anew."""
    for name in _modules_in(folder).keys() - {"__main__"}:
        del sys.modules[name]
    importlib.invalidate_caches()


def _stamp(file: Path) -> tuple[int, int]:
    """A file's time and size; zeros where it is gone."""
    with contextlib.suppress(OSError):
        found = file.stat()
        return found.st_mtime_ns, found.st_size
    return 0, 0
