"""The rules of a game between two players: legality, damage, phases, the end. All randomness is from `dice`."""

import random
from collections.abc import Callable, Sequence

from environments.card_game.rules import legality
from environments.card_game.rules.fish import BARRACUDA, EEL, FLAME, MAX_HP, MOBULA, OCTOPUS, SPRAY, SUNFISH, Fish
from environments.card_game.rules.moves import Assert, Attack, EventKind, GameEvent, Move, MoveRecord, Pass, Skill
from environments.card_game.rules.variants import CODE, RuleVariants

LAST_PHASE = 128
FIRST_PHASE = 3
"""Phases 1 and 2 are the picks of the teams."""
DODGE = 0.3
SHIELD = 0.3
COUNTER = 30
COUNTERED_BELOW = 120
EXPLOSION = 40
HEALING = 20
WOUND = 200
ANGER = 40
"""Attack that a deflecting fish gains for each WOUND points of damage."""
EXPOSURE = 50


class Game:
    """A game under way. Player 0 moves first; a player's turn has two phases, an assertion and an action."""

    def __init__(self, teams: Sequence[Sequence[int]], dice: random.Random, rules: RuleVariants = CODE) -> None:
        self.rules = rules
        self.teams = tuple(
            tuple(Fish(id, player, position, rules.start_attack(id)) for position, id in enumerate(team))
            for player, team in enumerate(teams)
        )
        self.phase = FIRST_PHASE
        self.player = 0
        self.asserting = True
        self.over = False
        self.winner: int | None = None
        """None while the game goes on, and after a draw."""
        self.actions: list[MoveRecord | None] = [None, None]
        """The last action of each player."""
        self.assertions: list[tuple[Assert, bool] | None] = [None, None]
        """The last assertion of each player, and whether it was right; None after a pass."""
        self._events: list[GameEvent] = []
        self._dodges: Callable[[], bool] = lambda: dice.random() < DODGE

    def apply(self, move: Move) -> str | None:
        """Plays a phase and returns None; an illegal move loses the game for its player, and the reason is returned."""
        if self.over:
            return "the game is over"
        problem = self.problem(move)
        if problem is not None:
            self._end(1 - self.player)
            return problem
        self._events = []
        match move:
            case Assert():
                self._assert(move)
            case Pass():
                self.assertions[self.player] = None
            case Attack():
                self._attack(move)
            case Skill():
                self._skill(move)
        self._end_phase()
        return None

    def problem(self, move: Move) -> str | None:
        """Why the move would be illegal now, in words for the player; None where it is legal."""
        return legality.problem(self.asserting, self.teams[self.player], self.teams[1 - self.player], move)

    @property
    def events(self) -> tuple[GameEvent, ...]:
        """What happened in the last phase, in order."""
        return tuple(self._events)

    def leader(self) -> int | None:
        """Who wins if the game stops now: by number of living fish, sum of hp, highest hp, then player 1.

        None is a draw: where the rules count only living fish, and their numbers are equal.
        """
        sides = [sorted(max(fish.hp, 0) for fish in team) for team in self.teams]
        ranks = [(sum(hp > 0 for hp in side), sum(side), side[-1]) for side in sides]
        if self.rules.counted and ranks[0][0] == ranks[1][0]:
            return None
        return 0 if ranks[0] > ranks[1] else 1

    def stop(self) -> None:
        """Ends the game now; the leader wins."""
        self._end(self.leader())

    def _end(self, winner: int | None) -> None:
        self.over, self.winner = True, winner

    def _end_phase(self) -> None:
        for team in self.teams:
            for fish in team:
                fish.dead = fish.dead or fish.hp <= 0
        lost = [all(fish.dead for fish in team) for team in self.teams]
        if self.phase + 1 > LAST_PHASE:
            self.stop()
        elif all(lost):
            self._end(None if self.rules.counted else self.player)
        elif any(lost):
            self._end(lost.index(False))
        else:
            self._next_phase()

    def _next_phase(self) -> None:
        self.phase += 1
        if not self.asserting:
            self.player = 1 - self.player
        self.asserting = not self.asserting

    # The moves.

    def _assert(self, move: Assert) -> None:
        enemies = self.teams[1 - self.player]
        right = enemies[move.position].id == move.id
        self.assertions[self.player] = (move, right)
        if right:
            enemies[move.position].exposed = True
            for fish in enemies:
                fish.hp = fish.hp - EXPOSURE if fish.hp >= EXPOSURE else 0
        else:
            for fish in self.teams[self.player]:
                fish.hp = max(fish.hp, 0)

    def _attack(self, move: Attack) -> None:
        fish = self.teams[self.player][move.position]
        damage = fish.effective_attack // 2
        self._attack_hit(fish, self.teams[1 - self.player][move.target], damage)
        self.actions[self.player] = MoveRecord(move.position, "normal", damage, (), (move.target,), self.events)

    def _skill(self, move: Skill) -> None:
        own, enemies = self.teams[self.player], self.teams[1 - self.player]
        fish = own[move.position]
        targets = [enemies[position] for position in sorted(move.enemies)]
        damage, shown_mates = 0, move.mates
        match fish.id:
            case id if id in (FLAME, SUNFISH):
                damage = 75
                self._take(own[move.mates[0]], None, damage)
                fish.attack += 140
            case id if id in (MOBULA, OCTOPUS):
                shown_mates = ()
                own[move.mates[0]].shield = True
                fish.attack += 20
            case _:
                damage = self._skill_damage(fish, targets[0])
                for target in targets:
                    self._attack_hit(fish, target, damage)
        positions = tuple(target.position for target in targets)
        self.actions[self.player] = MoveRecord(
            move.position, fish.species.active, damage, shown_mates, positions, self.events
        )

    def _skill_damage(self, fish: Fish, target: Fish) -> int:
        """The damage of an AOE or crit to each target, computed before the first hit."""
        if fish.id == SPRAY:
            return self.rules.spray_damage(fish)
        if fish.id == EEL:
            return int(fish.attack * 0.35)
        if fish.id == BARRACUDA:
            return 120
        return int(fish.effective_attack * (1.4 if target.hp < 160 else 1.2))

    # Damage.

    def _tell(self, kind: EventKind, fish: Fish, value: float, traceable: bool = False) -> None:
        self._events.append(GameEvent(kind, fish.player, fish.position, value, traceable))

    def _attack_hit(self, source: Fish, target: Fish, damage: int) -> None:
        self._take(target, source, damage)
        if target.hp >= COUNTERED_BELOW:
            return
        for mate in self.teams[target.player]:
            if mate.species.passive == "counter" and not mate.dead and mate is not target:
                self._tell("counter", target, COUNTER)
                self._take(source, None, COUNTER)

    def _take(self, fish: Fish, source: Fish | None, damage: int) -> None:
        """Damage, as the fish's passive skill changes it; without a source nothing is shared, shielded or avenged."""
        match fish.species.passive:
            case "counter":
                self._hurt(fish, source, damage)
            case "deflect":
                self._deflect(fish, source, damage)
            case "reduce":
                if self._dodges():
                    self._tell("reduce", fish, 0)
                    self._tell("hit", fish, 0, source is not None)
                else:
                    self._hurt(fish, source, damage)
            case "heal":
                self._hurt(fish, source, damage)
                if fish.hp > 0:
                    gain = min(HEALING, MAX_HP - fish.hp)
                    fish.hp += gain
                    self._tell("heal", fish, gain)
            case "explode":
                self._hurt(fish, source, damage)
                if source is not None and (fish.hp > 0) == self.rules.explodes_alive:
                    self._tell("explode", fish, EXPLOSION)
                    self._take(source, None, EXPLOSION)

    def _hurt(self, fish: Fish, source: Fish | None, damage: int) -> None:
        if fish.shield and source is not None:
            fish.shield = False
            damage = int(damage * SHIELD)
            self._tell("reduce", fish, SHIELD)
        self._tell("hit", fish, damage, source is not None)
        fish.hp -= damage
        fish.wound += damage

    def _deflect(self, fish: Fish, source: Fish | None, damage: int) -> None:
        mates = [mate for mate in self.teams[fish.player] if not mate.dead and mate is not fish]
        if source is not None and mates:
            own = int(damage * self.rules.own_part)
            each = int(damage * self.rules.mates_part) // len(mates)
            self._tell("deflect", fish, own)
            for mate in mates:
                self._take(mate, None, each)
            damage = own
        self._hurt(fish, source, damage)
        if fish.wound >= WOUND:
            fish.attack += ANGER * (fish.wound // WOUND)
            fish.wound %= WOUND
