"""The two scripted opponents (AgentBench v0.2): pure functions of the view and the dice.

The built-in policies use them too, with the view from their prompts.
"""

import random
from typing import Literal, NamedTuple

from environments.card_game.rules.fish import BARRACUDA, EEL, HAMMERHEAD, SPECIES, SPRAY, STANDARD_TEAM, WHITESHARK
from environments.card_game.rules.legality import LOWEST_ONLY
from environments.card_game.rules.moves import Assert, Attack, Move, Pass, Skill
from environments.card_game.rules.variants import Profile
from environments.card_game.rules.view import View

OpponentName = Literal["random", "greedy"]
NAMES: tuple[OpponentName, ...] = ("random", "greedy")


class Chance(NamedTuple):
    """Guesses and acts at random."""

    normal_share: float = 0.3
    """The share of actions that are normal attacks."""

    def guess(self, view: View, dice: random.Random) -> Move:
        position, id = dice.choice(view.targets()), dice.choice(STANDARD_TEAM)
        return Pass() if view.enemies[position].id is not None else Assert(position, id)

    def act(self, view: View, dice: random.Random) -> Move:
        position = dice.choice(view.living())
        if dice.random() >= self.normal_share and (skill := any_skill(view, position, dice)):
            return skill
        return Attack(position, dice.choice(view.targets()))


class Greedy(NamedTuple):
    """Kills where possible, else uses an AOE, a crit or a normal attack, in this order."""

    kill_first: bool = True
    """False for the paper's order: AOE, kill, other skills, normal attack."""

    def guess(self, view: View, dice: random.Random) -> Move:
        unknown = view.unknown()
        if not unknown:
            return Pass()
        known = {enemy.id for enemy in view.enemies}
        return Assert(dice.choice(unknown), dice.choice([id for id in SPECIES if id not in known]))

    def act(self, view: View, dice: random.Random) -> Move:
        shuffled = view.living()
        dice.shuffle(shuffled)
        strongest = max(shuffled, key=lambda position: view.own[position].attack)
        kill, sweep = _kill(view, strongest), _sweep(view)
        first, second = (kill, sweep) if self.kill_first else (sweep, kill)
        return first or second or _crit(view) or _normal(view, strongest, dice)


Opponent = Chance | Greedy
"""A player without memory: `guess` is its move of an assertion phase, `act` that of an action phase."""


def opponent(name: OpponentName, profile: Profile) -> Opponent:
    """The opponent of a sample."""
    return Chance() if name == "random" else Greedy(kill_first=profile != "paper")


def any_skill(view: View, position: int, dice: random.Random) -> Skill | None:
    """The skill of an own fish on a random legal target; None where there is no such target."""
    id = view.own[position].id
    match SPECIES[id].active:
        case "aoe":
            return Skill(position, enemies=tuple(view.targets()))
        case "infight":
            mates = [mate for mate in view.living() if mate != position]
            return Skill(position, mates=(dice.choice(mates),)) if mates else None
        case "subtle":
            return Skill(position, mates=(dice.choice(view.living()),))
        case "crit":
            targets = view.weakest() if id in LOWEST_ONLY else view.targets()
            return Skill(position, enemies=(dice.choice(targets),))


def _kill(view: View, strongest: int) -> Move | None:
    target = view.weakest()[0]
    return Attack(strongest, target) if view.own[strongest].attack // 2 >= view.enemies[target].hp else None


def _sweep(view: View) -> Move | None:
    if len(view.targets()) < 2:
        return None
    sweeper = _living(view, SPRAY, EEL)
    return None if sweeper is None else Skill(sweeper, enemies=tuple(view.targets()))


def _crit(view: View) -> Move | None:
    critic = _living(view, BARRACUDA, WHITESHARK, HAMMERHEAD)
    return None if critic is None else Skill(critic, enemies=(view.weakest()[0],))


def _normal(view: View, strongest: int, dice: random.Random) -> Move:
    targets = view.targets()
    return Attack(strongest, view.actor if view.actor in targets else dice.choice(targets))


def _living(view: View, *ids: int) -> int | None:
    """The position of the first living own fish of these types, in the order of `ids`."""
    for id in ids:
        for position in view.living():
            if view.own[position].id == id:
                return position
    return None
