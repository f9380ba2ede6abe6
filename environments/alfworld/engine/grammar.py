"""The grammar of a game: the commands, and the text after each (`game.tw-pddl`, key grammar)."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from environments.alfworld.engine import template
from environments.alfworld.engine.s_expressions import GameError
from environments.alfworld.engine.template import ListPattern, Pattern, Symbol, Text

Format = Literal["put", "move"]
"""How objects are laid down: `put {o} in/on {r}` in games of ALFWorld before 0.4, `move {o} to {r}` since."""
FORMATS: tuple[Format, ...] = get_args(Format)

NAME = "grammar"
LIST_SYMBOLS = ("list_empty", "list_separator", "list_last_separator")
"""The symbols of the texts in a list of nothing, and between the items of others."""
_FIELD = re.compile(r'\s*(\w+)\s*::\s*(?:"""(.*?)"""|"(.*?)")\s*;', re.DOTALL)
_ACTION = re.compile(r"\s*action\s+(\w+)\s*\{")
_END = re.compile(r"\s*\}")
_TEMPLATES: Mapping[str, Format] = {"put {o} in/on {r}": "put", "move {o} to {r}": "move"}


@dataclass(frozen=True, slots=True)
class Rule:
    """The text of a symbol where a condition is met."""

    condition: Pattern | None
    text: Text


@dataclass(frozen=True, slots=True)
class Command:
    """The text of a command, and the feedback after it was carried out."""

    template: Text
    feedback: Text


@dataclass(frozen=True, slots=True)
class Grammar:
    """The commands by the names of their actions in lower case, and the rules of each symbol in their order."""

    commands: Mapping[str, Command]
    rules: Mapping[str, tuple[Rule, ...]]
    format: Format

    @property
    def has_plain_lists(self) -> bool:
        """Whether what stands between the items of lists, and for a list of nothing, is always the same text."""
        rules = [rule for symbol in LIST_SYMBOLS for rule in self.rules[symbol]]
        return all(rule.condition is None and all(isinstance(part, str) for part in rule.text) for rule in rules)


def parse(text: str) -> Grammar:
    """The grammar that a text describes. Raises GameError naming what is not supported."""
    commands: dict[str, Command] = {}
    rules: dict[str, tuple[Rule, ...]] = {}
    formats = set[Format]()
    for action, fields in _blocks(text):
        for symbol, more in _rules(fields.pop("grammar", "{}")).items():
            rules[symbol] = rules.get(symbol, ()) + more
        if action is None:
            continue
        if fields.keys() != {"template", "feedback"}:
            raise GameError(f"{NAME}: action {action}: expected template, feedback and perhaps grammar")
        if action == "putobject":
            formats |= {form for written, form in _TEMPLATES.items() if written == fields["template"]}
        feedback = template.parse(fields["feedback"].removeprefix("\n"))
        commands[action] = Command(template.parse(fields["template"]), feedback)
    if not formats:
        raise GameError(f"{NAME}: action PutObject: its template must be one of: {', '.join(_TEMPLATES)}")
    grammar = Grammar(commands, rules, formats.pop())
    _check_symbols(grammar)
    return grammar


def _blocks(text: str) -> Iterator[tuple[str | None, dict[str, str]]]:
    """The fields of each action, with its name, and the fields outside of actions, with None."""
    at, text = 0, text.rstrip()
    while at < len(text):
        head = _ACTION.match(text, at)
        fields, after = _fields(text, head.end() if head else at)
        end = _END.match(text, after) if head else None
        if (head and not end) or (not head and fields.keys() != {"grammar"}):
            raise GameError(f"{NAME}: {text[after : after + 60].strip()!r} is not supported")
        yield (head[1].lower() if head else None), fields
        at = end.end() if end else after


def _fields(text: str, at: int) -> tuple[dict[str, str], int]:
    """The consecutive fields from a position on, and the position after them."""
    fields: dict[str, str] = {}
    while found := _FIELD.match(text, at):
        fields[found[1]] = found[2] if found[2] is not None else found[3]
        at = found.end()
    return fields, at


def _rules(text: str) -> dict[str, tuple[Rule, ...]]:
    try:
        found = json.loads(text)
        return {name: tuple(_rule(each) for each in alternatives) for name, alternatives in found.items()}
    except (json.JSONDecodeError, AttributeError, KeyError, TypeError) as error:
        raise GameError(f"{NAME}: its rules are not a JSON object of lists of {{condition, rhs}}: {error}") from error


def _rule(alternative: Mapping[str, str]) -> Rule:
    condition = alternative.get("condition")
    unknown = alternative.keys() - {"condition", "rhs"}
    if unknown:
        raise GameError(f"{NAME}: a rule has {min(unknown)!r}, which is not supported")
    return Rule(None if condition is None else template.pattern(condition), template.parse(alternative["rhs"]))


def _check_symbols(grammar: Grammar) -> None:
    texts = [text for command in grammar.commands.values() for text in (command.template, command.feedback)]
    texts += [rule.text for rules in grammar.rules.values() for rule in rules]
    for name in ("intro", *LIST_SYMBOLS, *_symbols(texts)):
        if name not in grammar.rules:
            raise GameError(f"{NAME}: the symbol #{name}# has no rule")


def _symbols(texts: list[Text]) -> Iterator[str]:
    for text in texts:
        for part in text:
            if isinstance(part, Symbol):
                yield part.name
            elif isinstance(part, ListPattern):
                yield from _symbols([part.item])
