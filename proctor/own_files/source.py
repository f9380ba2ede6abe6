"""What a user's world or agent is identified by: the tokens of its file and of the modules beside it that it imports,
and the bytes of the files of its folder that are opened while it is imported and by `samples()`.
"""

import ast
import hashlib
import importlib.util
import inspect
import io
import linecache
import sys
import sysconfig
import textwrap
import tokenize
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from proctor.digest import digest_of
from proctor.environment import Environment
from proctor.own_files.loading import OwnFileError, folder_of, is_users, loaded_folders
from proctor.own_files.opened import opened_by

Lines = list[tuple[int, str]]
"""Each logical line of a source: its number, and its tokens without comments and layout."""
BYTES, UNCHECKED = "bytes.", "unchecked"
INSTALLED, MOST_INSTALLED = {"site-packages", "dist-packages"}, 50


class OwnSource(NamedTuple):
    """What something of the user's is made of."""

    digest: str
    """Hex digits that change with any token or byte of it."""
    files: Mapping[str, str]
    """file, relative to the folder of the first -> `LINE.HASH` of each of its logical lines, or a hash of its bytes.

    What can't be checked has `unchecked`.
    """


def source_of(found: Any, world: Environment | None = None, *, whole_file: bool = True) -> OwnSource:
    """The source of a class or a function: its file with the modules beside it, and what they and the world opened.

    Without a file, or not the whole file: its own text, and the functions, classes and constants of its module that it
    names. Raises OwnFileError.
    """
    file = _file_of(found)
    if file is None or not whole_file:
        return _source(_texts(found))
    modules = _modules(Path(file).resolve())
    folder = folder_of(next(iter(modules)))
    fields = [getattr(world, field) for field in type(world).operational] if world is not None else []
    caches = [field.resolve() for field in fields if isinstance(field, Path)]
    opened = set[Path]().union(*(opened_by(module, world) for module in modules)) - modules.keys()
    data = [path for path in sorted(opened) if is_users(str(path), folder) and "__pycache__" not in path.parts]
    kept = [path for path in data if path.is_file() and not any(map(path.is_relative_to, caches))]
    whole: dict[Path, Lines | str] = {**modules, **{path: f"{BYTES}{digest_of(path)}" for path in kept}}
    return _source({path.relative_to(folder).as_posix(): what for path, what in whole.items()})


def given_source(found: Any) -> OwnSource | None:
    """The source of a function or class that a program gives as an agent; None where it can't be checked: of other
    objects, of closures, which have variables of the function that made them, and where the text is not known.

    What `__main__` or a cell defines is known by its text, since the rest of those is the evaluation itself.
    """
    if not (isinstance(found, type) or inspect.isfunction(found)):
        return None
    in_file, name = _file_of(found) is not None and found.__module__ != "__main__", found.__qualname__
    if "<locals>" in name and (isinstance(found, type) or found.__closure__):
        return None
    if not in_file and found.__name__ == "<lambda>":  # its text is that of the whole call that it stands in
        return None
    try:
        source = source_of(found, whole_file=in_file)
    except OwnFileError:
        return None
    return None if source.files.get(name) == UNCHECKED else source


def world_source(environment: Environment) -> OwnSource:
    """The source of a world, with its own digest; call it after `samples()`. Raises OwnFileError, ValueError."""
    found = source_of(type(environment), environment)
    return OwnSource(digest_of([environment.digest(), found.digest]), found.files)


def difference(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """What differs first between the files of two sources; empty where nothing does."""
    for name in [*now, *(before.keys() - now.keys())]:
        if name not in before or name not in now:
            return f"{name} {'is new' if name in now else 'is gone'}"
        old, new = ([part.partition(".")[::2] for part in each[name].split(" ")] for each in (before, now))
        unlike = (i for i, pair in enumerate(zip_longest(old, new)) if not all(pair) or pair[0][1] != pair[1][1])
        if (first := next(unlike, None)) is not None:
            line = new[min(first, len(new) - 1)][0]
            return f"{name}, line {line}" if line.isdigit() else f"{name}, its contents"
    return ""


def _file_of(found: Any) -> str | None:
    """The file of a class or function, also of one whose module is loaded no more."""
    if (module := sys.modules.get(found.__module__)) is not None:
        return getattr(module, "__file__", None)
    codes = filter(inspect.isfunction, vars(found).values() if isinstance(found, type) else [inspect.unwrap(found)])
    return next((each.__globals__.get("__file__") for each in codes), None)


def _source(parts: Mapping[str, Lines | str]) -> OwnSource:
    """The source of parts: logical lines of code, and what stands for others."""
    whole = digest_of(
        {name: [text for _, text in part] if isinstance(part, list) else part for name, part in parts.items()}
    )
    return OwnSource(whole, {name: part if isinstance(part, str) else _hashes(part) for name, part in parts.items()})


def _hashes(lines: Lines) -> str:
    return " ".join(f"{line}.{hashlib.blake2b(text.encode(), digest_size=4).hexdigest()}" for line, text in lines)


def _modules(file: Path) -> dict[Path, Lines]:
    """The file, the packages that it is in, and all modules of its folder that these import, at any depth.

    Of what is installed, and of Python itself, these are MOST_INSTALLED modules of the same package.
    """
    folder, found = folder_of(file), dict[Path, Lines]()
    installed = INSTALLED.intersection(folder.parts) or folder == Path(sysconfig.get_path("stdlib")).resolve()
    alone = file.relative_to(folder).parts[0] if installed else ""
    packages = [parent / "__init__.py" for parent in file.parents if parent.is_relative_to(folder) and parent != folder]
    waiting = [file, *packages]
    while waiting and not (installed and len(found) == MOST_INSTALLED):
        path = waiting.pop(0)
        if path not in found:
            try:
                with tokenize.open(path) as opened:
                    text = opened.read()
                found[path] = _lines(text)
                waiting += _imports(ast.parse(text), path, folder, alone)
            except (SyntaxError, tokenize.TokenError, UnicodeDecodeError, OSError) as error:
                raise OwnFileError(f"{path}:{getattr(error, 'lineno', None) or 1}: {error}") from error
    return found


def _imports(tree: ast.AST, file: Path, folder: Path, alone: str) -> Iterator[Path]:
    """The files of a folder that a module imports, inside functions too; `alone` of one package, if that is named."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            package = file.relative_to(folder).parts[: -node.level] if node.level else ()
            base = ".".join([*package, *([node.module] if node.module else [])])
            names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        for name in names:
            parts = name.split(".")
            known = parts[0] and alone in ("", parts[0])
            if known and _is_found_in(parts[0], folder, f"{file}:{getattr(node, 'lineno', 1)}"):
                for depth in range(1, len(parts) + 1):
                    place = folder.joinpath(*parts[:depth])
                    files = (place.with_name(f"{place.name}.py"), place / "__init__.py")
                    yield from (each.resolve() for each in files if each.is_file())


def _is_found_in(top: str, folder: Path, where: str) -> bool:
    """Whether `import TOP` finds it in a folder. Raises OwnFileError where that of another world is found."""
    beside = [place for place in (folder / f"{top}.py", folder / top) if place.exists()]
    if not beside:
        return False
    try:
        spec = importlib.util.find_spec(top)
    except ValueError:  # it is loaded in a way of its own
        spec = None
    places = [] if spec is None else [spec.origin, *(spec.submodule_search_locations or ())]
    found = [Path(place).resolve() for place in places if place and place not in ("built-in", "frozen")]
    if any(is_users(str(place), folder) for place in found):
        return True
    other = next((place for place in found if place.parent in loaded_folders()), None)
    if other is not None:
        raise OwnFileError(f"{where}: `{top}` is {other} here, not {beside[0]}, as both folders are in use; rename one")
    return False


def _lines(text: str) -> Lines:
    """The logical lines of a source. A string with fields in braces is one token, as it is up to Python 3.11."""
    source, lines, parts, first, begun = text.split("\n"), Lines(), list[str](), 1, list[tuple[int, int]]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kind, said, row = tokenize.tok_name[token.type], token.string, token.start[0]
        if kind.endswith("STRING_START"):
            begun.append(token.start)
        elif kind.endswith("STRING_END"):
            (row, column), (last, end) = begun.pop(), token.end
            said = "\n".join([*source[row - 1 : last - 1], source[last - 1][:end]])[column:]
        if begun or kind in ("COMMENT", "NL", "ENDMARKER"):
            continue
        if kind == "NEWLINE":
            lines.append((first, "\0".join(parts)))
            parts = []
            continue
        first = first if parts else row
        parts.append(kind if kind in ("INDENT", "DEDENT") else said)
    return lines


def _texts(found: Any) -> dict[str, Lines | str]:
    """The text of a class or function, and of what it names in its module; constants by their values."""
    texts, waiting = dict[str, Lines | str](), {found.__qualname__: found}
    known = vars(sys.modules[found.__module__]) if found.__module__ in sys.modules else {}
    while waiting:
        name, value = waiting.popitem()
        texts[name] = UNCHECKED
        if isinstance(value, type) or inspect.isfunction(value):
            try:
                text = _text_of(value)
                texts[name] = _lines(text)
                named = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
                named = {each for each in named if not each.startswith("__")}  # such as `__file__`
            except (OSError, TypeError, SyntaxError, tokenize.TokenError):
                continue
            for each in sorted((named & known.keys()) - texts.keys()):
                other = isinstance(known[each], type) or inspect.isroutine(known[each])
                if not inspect.ismodule(known[each]) and not (other and known[each].__module__ != found.__module__):
                    waiting[each] = known[each]
        elif not isinstance(value, Path | Iterator):  # what lies there may grow; an iterator would be used up
            try:
                texts[name] = f"value.{digest_of(value)}"
            except (ValueError, OSError, RecursionError):
                continue
    return dict(sorted(texts.items()))


def _text_of(found: Any) -> str:
    """The text of a class or function, also of one in a notebook's cell. Raises OSError, TypeError, SyntaxError."""
    if not isinstance(found, type):
        return textwrap.dedent(inspect.getsource(found))
    codes = [each.__code__ for each in vars(found).values() if inspect.isfunction(each)]
    text = "".join(linecache.getlines(codes[0].co_filename)) if codes else ""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.ClassDef) or node.name != found.__name__:
            continue
        if node.lineno <= codes[0].co_firstlineno <= (node.end_lineno or 0):
            return textwrap.dedent(ast.get_source_segment(text, node, padded=True) or "")
    raise OSError(f"the text of class {found.__name__} is not known")
