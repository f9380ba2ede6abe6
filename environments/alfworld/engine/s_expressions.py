"""Parses the nested expressions of PDDL, and the error of a game file."""

import re
from typing import TypeAlias

Tree: TypeAlias = "str | list[Tree]"
MAX_DEPTH = 100
"""How deep parentheses may be nested."""
_COMMENT = re.compile(r";[^\n]*")


class GameError(ValueError):
    """A game can't be read or played; the message names the part and what is wrong with it."""


def read(text: str, name: str) -> list[Tree]:
    """The one expression of a text, in lower case, without comments. Raises GameError that begins with `name`."""
    top: list[Tree] = []
    inner, outer = top, list[list[Tree]]()
    for token in _COMMENT.sub("", text).lower().replace("(", " ( ").replace(")", " ) ").split():
        if token == "(":
            outer.append(inner)
            inner = []
            outer[-1].append(inner)
            if len(outer) > MAX_DEPTH:
                raise GameError(f"{name}: parentheses are nested deeper than {MAX_DEPTH}; balance them")
        elif token != ")":
            inner.append(token)
        elif outer:
            inner = outer.pop()
        else:
            raise GameError(f"{name}: a closing parenthesis has no opening one; balance them")
    if outer:
        raise GameError(f"{name}: {len(outer)} opening parentheses are never closed; balance them")
    if len(top) != 1 or not isinstance(top[0], list):
        raise GameError(f"{name}: expected one expression in parentheses, found {len(top)} parts")
    return top[0]


def show(tree: Tree) -> str:
    """An expression as text, cut to 80 characters."""
    text = tree if isinstance(tree, str) else f"({' '.join(map(show, tree))})"
    return text if len(text) <= 80 else text[:77] + "..."


def as_list(tree: Tree, name: str) -> list[Tree]:
    """The parts of an expression. Raises GameError where it is a single word or empty."""
    if isinstance(tree, str) or not tree:
        raise GameError(f"{name}: expected an expression in parentheses, found {show(tree)}")
    return tree


def as_words(tree: Tree, name: str) -> list[str]:
    """The words of an expression. Raises GameError where it has other parts than words."""
    words = [part for part in as_list(tree, name) if isinstance(part, str)]
    if len(words) != len(tree):
        raise GameError(f"{name}: expected words alone in {show(tree)}")
    return words


def typed(words: list[Tree], name: str) -> list[tuple[str, str]]:
    """The names of a typed list with their types: `a b - t c - u`. Raises GameError where one has no type."""
    found: list[tuple[str, str]] = []
    waiting: list[str] = []
    parts = iter(words)
    for part in parts:
        if not isinstance(part, str):
            raise GameError(f"{name}: expected words alone, found {show(part)}")
        if part != "-":
            waiting.append(part)
            continue
        kind = next(parts, None)
        if not isinstance(kind, str):
            raise GameError(f"{name}: a dash must be followed by a type")
        found += [(each, kind) for each in waiting]
        waiting = []
    if waiting:
        raise GameError(f"{name}: {waiting[0]} has no type; write `{waiting[0]} - type`")
    return found
