"""Reads literals from a Python file without running it: published prompts are part of source files."""

import ast
import contextlib
from pathlib import Path

from proctor.config.yaml import FileError, read_text


def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a file. Raises FileError."""
    text = read_text(path)
    try:
        return ast.parse(text)
    except SyntaxError as error:
        raise FileError(f"{path}:{error.lineno or 1}: {error.msg}; give the published file as it is") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise FileError(f"{path}: can't be read as Python: {error}; give the published file as it is") from error


def texts_of(tree: ast.Module) -> dict[str, str]:
    """The texts that the file assigns to names at its top level; the last one of each name."""
    found: dict[str, str] = {}
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text))):
                found[name] = text
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=str(text))):
                found[name] = text
    return found


def value_of(tree: ast.Module, name: str) -> object:
    """The first literal that the file assigns to a name at its top level; None where there is none."""
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=found)], value=value) if found == name:
                with contextlib.suppress(ValueError, RecursionError, MemoryError):
                    return ast.literal_eval(value)
    return None
