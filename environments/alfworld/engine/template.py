"""Text templates, as a game's grammar writes them (TextWorld's PDDL games)."""

import functools
import re
from dataclasses import dataclass
from typing import TypeAlias

from environments.alfworld.engine.formula import Atom
from environments.alfworld.engine.s_expressions import GameError


@dataclass(frozen=True, slots=True)
class Symbol:
    """`#name#`: the text of the grammar's rule for a name."""

    name: str


@dataclass(frozen=True, slots=True)
class PropertyPattern:
    """`{o.name}` (also `{o}`), `{o.indefinite}`, `{o.id}`: an object's display name, article or identifier."""

    variable: str
    attribute: str


@dataclass(frozen=True, slots=True)
class Pattern:
    """Facts with typed placeholders: `holds(a:agent, o:object) & ...`."""

    atoms: tuple[Atom, ...]
    types: tuple[tuple[str, str], ...]
    """The placeholders in order of appearance, as variables, with their types."""


@dataclass(frozen=True, slots=True)
class ListPattern:
    """`[{item | pattern}]`: one item for each match of the pattern."""

    item: "Text"
    pattern: Pattern


Part: TypeAlias = str | Symbol | PropertyPattern | ListPattern
Text: TypeAlias = tuple[Part, ...]

_NAME = r"[\w.-]+(?:\([\w ,]*\))?"
_PART = re.compile(
    rf"\[\{{(?P<item>[^|{{}}]*)\|(?P<pattern>[^{{}}|]*)\}}\]|\[(?P<bare>\{{[^]]*)\]|"
    rf"\{{(?P<expression>[^{{}}|]*)\}}|\#(?P<symbol>{_NAME})\#|(?P<text>[^\[{{\#]+)"
)
_TERM = re.compile(r"\s*(?:'(?P<text>[^'\\]*)'|(?P<variable>\w+)(?:\.(?P<attribute>name|indefinite|id))?)\s*")
_ATOM = re.compile(r"\s*(?P<predicate>\w+)\((?P<arguments>[^()]*)\)\s*")
_ARGUMENT = re.compile(r"\s*(\w+)\s*:\s*(\w+)\s*")


@functools.lru_cache(maxsize=4096)
def parse(text: str) -> Text:
    """The parts of a template. Raises GameError quoting what is not supported."""
    parts, at = list[Part](), 0
    while at < len(text):
        found = _PART.match(text, at)
        if found is None or found["bare"]:
            raise GameError(f"the grammar uses {text[at : at + 60]!r}, which is not supported")
        at = found.end()
        if found["text"]:
            parts.append(found["text"])
        elif found["symbol"]:
            parts.append(Symbol(found["symbol"]))
        elif found["pattern"] is not None:
            parts.append(ListPattern(_item(found["item"]), pattern(found["pattern"])))
        else:
            parts += _expression(found["expression"])
    return tuple(parts)


def _item(text: str) -> Text:
    symbol = re.fullmatch(rf"\s*#({_NAME})#\s*", text)
    return (Symbol(symbol[1]),) if symbol else _expression(text)


def _expression(text: str) -> Text:
    """Terms joined by `+`; of alternatives joined by `or` only the first, since every object has a name."""
    parts = list[Part]()
    for term in text.split("+"):
        matches = [_TERM.fullmatch(each) for each in re.split(r"\bor\b", term)]
        first = matches[0]
        if first is None or not all(matches):
            raise GameError(f"the grammar uses the expression {{{text[:60]}}}, which is not supported")
        if first["variable"]:
            parts.append(PropertyPattern(f"?{first['variable'].lower()}", first["attribute"] or "name"))
        else:
            parts.append(first["text"])
    return tuple(parts)


@functools.lru_cache(maxsize=4096)
def pattern(text: str) -> Pattern:
    """The facts that a condition needs. Raises GameError quoting what is not supported."""
    atoms, types = list[Atom](), dict[str, str]()
    for part in text.lower().split("&"):
        found = _ATOM.fullmatch(part)
        arguments = [_ARGUMENT.fullmatch(each) for each in found["arguments"].split(",")] if found else []
        if found is None or not all(arguments):
            raise GameError(f"the grammar uses the condition {part.strip()[:60]!r}, which is not supported")
        named = [(f"?{each[1]}", each[2]) for each in arguments if each is not None]
        atoms.append(Atom(found["predicate"], tuple(name for name, _ in named)))
        types.update(named)
    return Pattern(tuple(atoms), tuple(types.items()))
