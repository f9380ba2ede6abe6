"""From an agent's text to a move: the first JSON block that is a legal move (AgentBench v0.2)."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from environments.card_game.rules.fish import IDS, SPECIES, Active
from environments.card_game.rules.moves import Assert, Attack, Move, Skill
from proctor.json_objects import objects

MAX_SCANNED = 1 << 20
"""Characters of a reply that are searched for blocks."""
MAX_BLOCKS = 1_000
ONE_POSITION = "target_position must be 0, 1, 2 or 3"
ANY_POSITION = "target_position must be 0, 1, 2 or 3, though an AOE hits all enemies"

Refusal = Callable[[Move], str | None]
"""A function of a move: why it is not accepted, or None where it is."""


class ReplyGrammar(NamedTuple):
    """Forms that are accepted besides those that the published prompts ask for."""

    apostrophes: bool = False
    """A block that is valid JSON. The published code always replaces single quotes with double ones first."""
    nested: bool = False
    """A block with braces in it. The published code ends a block at the first closing brace."""
    targetless_aoe: bool = False
    """An AOE without a target. The published code requires an integer there, though it uses none."""
    numbered_fish: bool = False
    """A number in place of the attacking fish's name, as in the published code: `0` is the fish at position 1."""


class IllegalReply(NamedTuple):
    """A reply without a legal move."""

    parsed: bool
    """Whether any block of it was JSON."""
    why: str
    """The reason, in words for the player."""


def read_action(
    text: str, own: Sequence[int], targets: Sequence[int], refusal: Refusal, grammar: ReplyGrammar
) -> Move | IllegalReply:
    """The action that a reply asks for; `own` are the ids of the own fish, `targets` the living enemies."""
    positions = {SPECIES[id].name: position for position, id in enumerate(own)}
    return _first_legal(blocks(text, grammar), lambda block: _action(block, positions, targets, grammar), refusal)


def read_guess(text: str, types: Sequence[int], refusal: Refusal, grammar: ReplyGrammar) -> Move | IllegalReply:
    """The assertion that a reply makes; `types` are the ids of the enemy's fish."""
    return _first_legal(blocks(text, grammar), lambda block: _guess(block, types), refusal)


def blocks(text: str, grammar: ReplyGrammar) -> Iterator[Mapping[str, object]]:
    """Every shortest `{...}` that is JSON, in order; then, where nesting counts, the objects with others in them."""
    yield from _shortest(text, grammar)
    if grammar.nested:
        yield from filter(None, (_json(found, grammar) for found in objects(text) if found is not None))


def _shortest(text: str, grammar: ReplyGrammar) -> Iterator[Mapping[str, object]]:
    text, end = text[:MAX_SCANNED], 0
    for _ in range(MAX_BLOCKS):
        start = text.find("{", end)
        end = text.find("}", start) + 1
        if start < 0 or end == 0:
            return
        block = _json(text[start:end], grammar)
        if block is not None:
            yield block


def _json(text: str, grammar: ReplyGrammar) -> Mapping[str, object] | None:
    """The object in a block; single quotes count as double ones unless the grammar accepts it without that."""
    double = text.replace("'", '"')
    for written in (text, double) if grammar.apostrophes else (double,):
        try:
            block: dict[str, object] = json.loads(written)
        except (ValueError, RecursionError):
            continue
        return block
    return None


def _first_legal(
    blocks: Iterator[Mapping[str, object]], read: Callable[[Mapping[str, object]], Move | str], refusal: Refusal
) -> Move | IllegalReply:
    why: str | None = None
    for block in blocks:
        move = read(block)
        problem = move if isinstance(move, str) else refusal(move)
        if problem is None and not isinstance(move, str):
            return move
        why = why or problem
    return IllegalReply(why is not None, why or "no JSON object of the asked form was found")


def _guess(block: Mapping[str, object], types: Sequence[int]) -> Move | str:
    guess, position = block.get("guess_type"), _position(block)
    if not isinstance(guess, str) or IDS.get(guess) not in types:
        return "guess_type must be one of " + ", ".join(SPECIES[id].name for id in types)
    return position if isinstance(position, str) else Assert(position, IDS[guess])


def _action(
    block: Mapping[str, object], positions: Mapping[str, int], targets: Sequence[int], grammar: ReplyGrammar
) -> Move | str:
    name, action = block.get("pick_fish"), block.get("action")
    if action == "normal" and grammar.numbered_fish:
        positions = {str(position - 1): position for position in positions.values() if position} | dict(positions)
    if not isinstance(name, str) or name not in positions:
        return "pick_fish must be one of " + ", ".join(positions)
    position = positions[name]
    if action == "normal":
        target = _position(block)
        return target if isinstance(target, str) else Attack(position, target)
    if action != "active":
        return "action must be normal or active"
    return _skill(block, position, SPECIES[IDS[name]].active, targets, grammar)


def _skill(
    block: Mapping[str, object], position: int, skill: Active, targets: Sequence[int], grammar: ReplyGrammar
) -> Move | str:
    """The active skill of the fish at a position."""
    if skill == "aoe":
        aimed = grammar.targetless_aoe or _integer(block.get("target_position")) is not None
        return Skill(position, enemies=tuple(targets)) if aimed else ANY_POSITION
    target = _position(block)
    if isinstance(target, str):
        return target
    return Skill(position, enemies=(target,)) if skill == "crit" else Skill(position, mates=(target,))


def _position(block: Mapping[str, object]) -> int | str:
    """The target's position, or an error text."""
    target = _integer(block.get("target_position"))
    return ONE_POSITION if target is None or target not in range(4) else target


def _integer(value: object) -> int | None:
    """An integer, also from a text that Python's `int` accepts, as published; None for anything else."""
    if not isinstance(value, int | str) or isinstance(value, bool):
        return None
    try:
        return int(value)
    except ValueError:
        return None
