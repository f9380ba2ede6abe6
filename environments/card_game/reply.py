"""From an agent's text to a move: the first JSON block that is a legal one (AgentBench v0.2)."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from environments.card_game.fish import IDS, SPECIES
from environments.card_game.moves import Assert, Attack, Move, Skill

MAX_SCANNED = 1 << 20
"""Characters of a reply that are looked at."""
MAX_BLOCKS = 1_000
POSITIONS = {str(position): position for position in range(4)}

Refusal = Callable[[Move], str | None]
"""Why a move isn't accepted; None where it is."""


class Refused(NamedTuple):
    """A reply without a legal move."""

    parsed: bool
    """Whether any block of it was JSON."""
    why: str
    """For the player."""


def read_action(text: str, own: Sequence[int], targets: Sequence[int], refusal: Refusal) -> Move | Refused:
    """The action that a reply asks for; `own` are the ids of the own fish, `targets` the living enemies."""
    positions = {SPECIES[id].name: position for position, id in enumerate(own)}
    return _first_legal(text, lambda block: _action(block, positions, targets), refusal)


def read_guess(text: str, types: Sequence[int], refusal: Refusal) -> Move | Refused:
    """The assertion that a reply makes; `types` are the ids of the enemy's fish."""
    return _first_legal(text, lambda block: _guess(block, types), refusal)


def blocks(text: str) -> Iterator[Mapping[str, object]]:
    """Every shortest `{...}` that is JSON once single quotes are double ones, in order."""
    text, end = text[:MAX_SCANNED], 0
    for _ in range(MAX_BLOCKS):
        start = text.find("{", end)
        end = text.find("}", start) + 1
        if start < 0 or end == 0:
            return
        try:
            block = json.loads(text[start:end].replace("'", '"'))
        except (ValueError, RecursionError):
            continue
        yield block


def _first_legal(text: str, read: Callable[[Mapping[str, object]], Move | str], refusal: Refusal) -> Move | Refused:
    why: str | None = None
    for block in blocks(text):
        move = read(block)
        problem = move if isinstance(move, str) else refusal(move)
        if problem is None and not isinstance(move, str):
            return move
        why = why or problem
    return Refused(why is not None, why or "no JSON object of the asked form was found")


def _guess(block: Mapping[str, object], types: Sequence[int]) -> Move | str:
    guess, position = block.get("guess_type"), _position(block)
    if not isinstance(guess, str) or IDS.get(guess) not in types:
        return "guess_type must be one of " + ", ".join(SPECIES[id].name for id in types)
    return position if isinstance(position, str) else Assert(position, IDS[guess])


def _action(block: Mapping[str, object], positions: Mapping[str, int], targets: Sequence[int]) -> Move | str:
    name, action = block.get("pick_fish"), block.get("action")
    if not isinstance(name, str) or name not in positions:
        return "pick_fish must be one of " + ", ".join(positions)
    if action not in ("normal", "active"):
        return "action must be normal or active"
    skill = SPECIES[IDS[name]].active
    if action == "active" and skill == "aoe":
        return Skill(positions[name], enemies=tuple(targets))
    target = _position(block)
    if isinstance(target, str):
        return target
    if action == "normal":
        return Attack(positions[name], target)
    if skill == "crit":
        return Skill(positions[name], enemies=(target,))
    return Skill(positions[name], mates=(target,))


def _position(block: Mapping[str, object]) -> int | str:
    """The target's position, or what is wrong with it."""
    target = block.get("target_position")
    if isinstance(target, int | str) and not isinstance(target, bool) and str(target) in POSITIONS:
        return POSITIONS[str(target)]
    return "target_position must be 0, 1, 2 or 3"
