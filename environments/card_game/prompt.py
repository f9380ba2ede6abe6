"""The agent's prompts: the rules with a fixed confirmation, and the state before each of its phases.

The rules have the content and the numbers of the two prompts in AgentBench (arXiv 2308.03688, Appendix E.3), in our
own words; the reply forms are the published ones. Protocol `tools` names the functions in their place.
"""

import json

from environments.card_game.rules.fish import SPECIES, STANDARD_TEAM
from environments.card_game.rules.moves import GameEvent, MoveRecord
from environments.card_game.sample_game import SampleGame, Setup
from proctor.tools import Protocol

CONFIRMATION = "I have read the rules and will reply in the form you ask for."

_PASSIVES = {
    "counter": "Counter (passive): when a teammate's health is below 30%, whoever attacks it takes 30 damage.",
    "deflect": "Deflect (passive): when attacked, it hands 70% of the damage on to its teammates and takes 30% itself. "
    "For every 200 damage it has taken in total, its attack grows by 40.",
}
_ACTIVES = {
    "aoe": "AOE (active): hits all enemies, each for 35% of its attack.",
    "infight": "Infight (active): deals 75 damage to one living teammate, not to itself, and adds 140 to its own "
    "attack.",
}
_GAME = "You are one of two players in a battle of fish. Each side has four fish, whose types may vary."
_END = "Whoever has more living fish at the end wins."
_TYPES = "The four types of your fish, which are also the four types of the enemy's:\n" + "\n".join(
    f"- {SPECIES[id].name}: {_PASSIVES[SPECIES[id].passive]} {_ACTIVES[SPECIES[id].active]}" for id in STANDARD_TEAM
)
_REPLY = "In each round write down your thoughts, then give your move as a JSON object of this form:"
_FORMS = {
    "guess": '{"guess_type": "<type of fish>", "target_position": <0 to 3>}',
    "act": '{"pick_fish": "<name of a living fish of yours>", "action": "normal" or "active", '
    '"target_position": <0 to 3>}',
}
"""The JSON object of each conversation."""
_DUTY = "You must give a move in each round, otherwise you have lost."

_EXPOSURE = (
    " What your fish are is hidden from the enemy at first. In each round the enemy can guess what one of them is; if "
    "the guess is right, this fish is exposed, and each of your fish loses 50 health."
)
"""Part of the rules in stage 2, where both sides guess."""
_TARGETS = (
    "An infight names the position of one of your own fish, everything else an enemy's; an AOE hits all enemies and "
    "needs no position.\n"
)
"""Part of the rules in `strict` alone."""

_GUESS = f"""\
{_GAME} Each fish starts with some health and some attack, and has a passive and an active skill. What the fish are is \
hidden from the other side at first. In each round you guess what one of the enemy's fish is, which must be a living \
one. If you are right, it is exposed, and each of the enemy's fish loses 50 health. {_END}

{_TYPES}"""

DIFFERENCES = (
    "The game as played differs from this in that a spray's AOE deals a constant 70 damage to each enemy, a deflecting "
    "fish keeps 70% of the damage and its living teammates share 30%, and the game ends when one side has no living "
    "fish; the numbers of living fish count only if it is stopped for its length."
)
"""Added with the field `explain_rules`: where the published code differs from the rules in its prompts."""


def rules(conversation: str, setup: Setup, explained: bool, protocol: Protocol) -> str:
    """The rules prompt of a conversation, `guess` or `act`."""
    guesses = conversation == "guess"
    called = f"In each round think about your move first, then call the function `{conversation}` exactly once."
    form = f"{_REPLY}\n{_FORMS[conversation]}" if protocol == "text" else called
    targets = _TARGETS if setup.profile == "strict" and not guesses else ""
    text = f"{_GUESS if guesses else _act(setup)}\n\n{form}\n{targets}{_DUTY}"
    return f"{text}\n\n{DIFFERENCES}" if explained else text


def _act(setup: Setup) -> str:
    exposure = _EXPOSURE if setup.stage == 2 else ""
    return f"""\
{_GAME} Each fish starts with 400 health and 200 attack, and has a passive and an active skill. In each round one of \
your living fish, which you choose, uses its active skill or makes a normal attack on one enemy fish, with half of its \
attack as damage. A passive skill works by itself where its condition holds, for every fish, chosen or not.{exposure} \
{_END}

{_TYPES}"""


def guess_state(match: SampleGame) -> str:
    """The prompt of a guess."""
    seat = match.setup.seat
    asserted = match.game.assertions[seat]
    previous: object = "none"
    if asserted is not None:
        move, right = asserted
        result = "right" if right else "wrong"
        previous = {"POSITION": move.position, "TYPE": SPECIES[move.id].name, "RESULT": result}
    return _json(
        {
            "Your previous guess": previous,
            "Positions to guess": match.unknown(),
            "Enemy previous action": _action(match.game.actions[1 - seat], 1 - seat, seat),
            "Passives of the enemy": _passives(match),
        }
    )


def act_state(match: SampleGame) -> str:
    """The prompt of an action."""
    seat, view = match.setup.seat, match.view()
    own = [
        {"POSITION": position, "ID": SPECIES[fish.id].name, "HP": fish.hp, "ATK": fish.attack}
        for position, fish in enumerate(view.own)
    ]
    enemies = [
        {
            "POSITION": position,
            "ID": "unknown" if fish.id is None else SPECIES[fish.id].name,
            "HP": fish.hp,
            "ATK": "unknown",
        }
        for position, fish in enumerate(view.enemies)
    ]
    return _json(
        {
            "You": own,
            "Enemy": enemies,
            "Your previous action": _action(match.game.actions[seat], seat, seat),
            "Enemy previous action": _action(match.game.actions[1 - seat], 1 - seat, seat),
        }
    )


def correction(why: str) -> str:
    """The line that a strict retry adds."""
    return f"\nYour last reply was not accepted: {why}. Reply again."


def _action(record: MoveRecord | None, player: int, seat: int) -> object:
    """A past action as the player at `seat` sees it."""
    if record is None:
        return "none"
    targets = [(player, position) for position in record.mates] + [
        (1 - player, position) for position in record.enemies
    ]
    return {
        "POSITION": record.position,
        "TYPE": record.skill,
        "DAMAGE": record.damage,
        "TARGETS": [_place(owner, position, seat) for owner, position in targets],
        "HITS": [f"{_of(event, seat)}: {event.value:g}" for event in record.events if event.kind == "hit"],
        "PASSIVES": [f"{_of(event, seat)}: {event.kind}" for event in record.events if event.kind != "hit"],
    }


def _passives(match: SampleGame) -> dict[str, list[str]]:
    """The passive skills of the enemy that the last two actions set off, by position."""
    seen: dict[str, dict[str, None]] = {}
    for event in (event for record in match.game.actions if record for event in record.events):
        if event.player != match.setup.seat and event.kind != "hit":
            seen.setdefault(str(event.position), {})[event.kind] = None
    return {position: list(kinds) for position, kinds in sorted(seen.items())}


def _of(event: GameEvent, seat: int) -> str:
    return _place(event.player, event.position, seat)


def _place(player: int, position: int, seat: int) -> str:
    return f"{'You' if player == seat else 'Enemy'} {position}"


def _json(state: dict[str, object]) -> str:
    return json.dumps(state, ensure_ascii=False)
