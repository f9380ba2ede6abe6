"""A played game as readable text."""

from collections.abc import Iterator, Sequence

from environments.card_game.rules.fish import MAX_HP, SPECIES, STANDARD_TEAM, TEAM
from environments.card_game.rules.moves import Assert, Attack, GameEvent, Pass, Skill
from environments.card_game.sample_game import Phase, SampleGame
from environments.card_game.scoring import DECIDED
from proctor.types import FinishReason

_BAR = 8
_PASSIVES = {
    "deflect": "shares its damage with its mates",
    "counter": "is nearly or quite dead: its mates strike back, 30 each",
}
"""What the passives of the standard team do."""
TeamsHp = tuple[tuple[int, ...], ...]
"""Hp by player and position."""


def replay(match: SampleGame, reason: FinishReason) -> str:
    """The whole game, turn by turn, with both teams after each action."""
    setup = match.setup
    names = ("agent", setup.opponent) if setup.seat == 0 else (setup.opponent, "agent")
    lines = [f"{names[0]} (moves first) against {names[1]}, stage {setup.stage}", ""]
    turn = 0
    before: TeamsHp = ((MAX_HP,) * TEAM,) * 2
    for phase in match.phases:
        name, other = names[phase.player], names[1 - phase.player]
        if isinstance(phase.move, Assert):
            lines += [_guess(phase, name, other), *_deaths(phase, before, names)]
        elif not isinstance(phase.move, Pass):
            turn += 1
            lines += [f"{turn}. {_action(phase, name, other)}"]
            lines += [f"     {line}" for line in _changes(phase, before, names)]
            lines += [f"     {_side(names[player], phase, player)}" for player in (0, 1)] + [""]
        before = phase.hp
    return "\n".join([*lines, _ending(match, names, reason)])


def _fish(position: int) -> str:
    return f"{SPECIES[STANDARD_TEAM[position]].name} [{position}]"


def _guess(phase: Phase, name: str, other: str) -> str:
    assert isinstance(phase.move, Assert)
    claim = f"{name} guesses that {other}'s fish [{phase.move.position}] is {_article(SPECIES[phase.move.id].name)}"
    return f"{claim}: " + ("right! Every fish of that side loses 50." if phase.right else "wrong.")


def _article(name: str) -> str:
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def _action(phase: Phase, name: str, other: str) -> str:
    match phase.move:
        case Attack(position, target):
            return f"{name}'s {_fish(position)} attacks {other}'s {_fish(target)}"
        case Skill(position, mates, enemies):
            skill = SPECIES[STANDARD_TEAM[position]].active
            if skill == "aoe":
                return f"{name}'s {_fish(position)} sweeps over all {len(enemies)} enemies"
            return f"{name}'s {_fish(position)} uses {skill} on its mate {_fish(mates[0])}"
        case _:
            raise AssertionError("an assertion is no action")


def _changes(phase: Phase, before: TeamsHp, names: Sequence[str]) -> Iterator[str]:
    """The changes by an action: hp by side, passive skills, and deaths."""
    for player, name in enumerate(names):
        changes = [
            f"{_fish(position)} {now - then:+d}"
            for position, (then, now) in enumerate(zip(before[player], phase.hp[player], strict=True))
            if now != then
        ]
        if changes:
            yield f"{name}: " + ", ".join(changes)
    yield from dict.fromkeys(_passive(event, names) for event in phase.events if event.kind in _PASSIVES)
    yield from _deaths(phase, before, names)


def _deaths(phase: Phase, before: TeamsHp, names: Sequence[str]) -> Iterator[str]:
    for player, name in enumerate(names):
        for position, (then, now) in enumerate(zip(before[player], phase.hp[player], strict=True)):
            if then > 0 >= now:
                yield f"{name}'s {_fish(position)} is dead!"


def _passive(event: GameEvent, names: Sequence[str]) -> str:
    return f"{names[event.player]}'s {_fish(event.position)} {_PASSIVES[event.kind]}"


def _side(name: str, phase: Phase, player: int) -> str:
    fish = zip(STANDARD_TEAM, phase.hp[player], phase.attack[player], strict=True)
    return f"{name:>6}  " + "  ".join(f"{SPECIES[id].name} {_bar(hp)} {hp}/{attack}" for id, hp, attack in fish)


def _bar(hp: int) -> str:
    full = -(-hp * _BAR // MAX_HP)
    return "#" * full + "." * (_BAR - full)


def _ending(match: SampleGame, names: Sequence[str], reason: FinishReason) -> str:
    if reason not in DECIDED:
        return f"The agent is out of the game: {reason.value}."
    stopped = "" if reason is FinishReason.COMPLETED else ", stopped for its number of calls"
    winner = match.game.winner
    return (
        f"{names[winner]} wins" if winner is not None else "A draw"
    ) + f" after {len(match.phases)} phases{stopped}."
