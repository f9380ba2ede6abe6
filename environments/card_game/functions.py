"""The functions of protocol `tools`, one for each conversation; a call is read as the JSON of a reply in `text`."""

import json

from pydantic import JsonValue

from environments.card_game.rules.fish import SPECIES, STANDARD_TEAM, TEAM
from proctor.tools import Arguments, Function, Toolset, arguments_schema

_FISH: dict[str, JsonValue] = {"type": "string", "enum": [SPECIES[id].name for id in STANDARD_TEAM]}
_POSITION: dict[str, JsonValue] = {"type": "integer", "enum": list(range(TEAM))}
_ACTION: dict[str, JsonValue] = {"type": "string", "enum": ["normal", "active"]}


def _function(name: str, description: str, parameters: Arguments) -> Function[str]:
    return Function(name, description, parameters, json.dumps, lambda block: _arguments(block, parameters))


def _arguments(block: str, parameters: Arguments) -> Arguments | None:
    """The arguments in a block of JSON; None where it has fields of another function."""
    arguments: dict[str, JsonValue] = json.loads(block)
    properties = parameters["properties"]
    return arguments if isinstance(properties, dict) and arguments.keys() <= properties.keys() else None


_GUESS = _function(
    "guess",
    "Guesses what one of the enemy's living fish is.",
    arguments_schema(
        guess_type={**_FISH, "description": "What you think the fish is."},
        target_position={**_POSITION, "description": "Its position."},
    ),
)
_ACT = _function(
    "act",
    "Attacks with one of your living fish, or uses its active skill.",
    arguments_schema(
        pick_fish={**_FISH, "description": "The fish that acts."},
        action={**_ACTION, "description": "A normal attack on one enemy, or the active skill."},
        target_position={
            **_POSITION,
            "description": "Position of the target: your own fish for an infight, else an enemy's. Any for an AOE.",
        },
    ),
)
_TARGETLESS_ACT = _function("act", _ACT.description, {**_ACT.parameters, "required": ["pick_fish", "action"]})

BOTH = Toolset[str]((_GUESS, _ACT))


def toolset(conversation: str, targetless_aoe: bool) -> Toolset[str]:
    """The function of a conversation, `guess` or `act`; `targetless_aoe`: an action needs no position."""
    if conversation == "guess":
        return Toolset((_GUESS,))
    return Toolset((_TARGETLESS_ACT if targetless_aoe else _ACT,))
