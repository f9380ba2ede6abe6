"""A sample's game with its opponent: plays on until it is the agent's turn. All randomness is from one generator."""

import hashlib
import random
from typing import Literal, NamedTuple

from environments.card_game.reply import IllegalReply, ReplyGrammar, read_action, read_guess
from environments.card_game.rules.engine import Game
from environments.card_game.rules.fish import EEL, STANDARD_TEAM, SUNFISH
from environments.card_game.rules.moves import Assert, GameEvent, Move, Pass, Skill
from environments.card_game.rules.opponents import OpponentName, opponent
from environments.card_game.rules.variants import RULES, Profile
from environments.card_game.rules.view import View, seen_by

Stage = Literal[1, 2]
"""1: nobody guesses; 2: both sides guess before each action."""


class Setup(NamedTuple):
    """The settings of one game."""

    opponent: OpponentName
    seat: int
    """The player that the agent is; player 0 moves first."""
    repetition: int
    stage: Stage = 2
    profile: Profile = "compat"
    legacy_agent_bugs: bool = False

    @property
    def sample(self) -> str:
        """The id of the sample."""
        suffix = "" if self.stage == 2 else f"-stage{self.stage}"
        return f"{self.opponent}-seat{self.seat}-{self.repetition}{suffix}"

    @property
    def grammar(self) -> ReplyGrammar:
        """The forms of replies that are accepted."""
        strict = self.profile == "strict"
        return ReplyGrammar(
            apostrophes=strict, nested=strict, targetless_aoe=strict, numbered_fish=self.legacy_agent_bugs
        )

    def refuses(self, move: Move) -> bool:
        """Whether a move that was read is refused by a mistake of the published code that this game repeats."""
        return self.legacy_agent_bugs and isinstance(move, Skill) and STANDARD_TEAM[move.position] in (EEL, SUNFISH)

    def dice(self, seed: int) -> random.Random:
        """The generator of a game: a hash of the sample's id and the run's seed."""
        digest = hashlib.blake2b(f"{self.sample}\n{seed}".encode(), digest_size=16).digest()
        return random.Random(int.from_bytes(digest, "big"))


class Phase(NamedTuple):
    """A phase that was played, and both teams after it."""

    player: int
    move: Move
    events: tuple[GameEvent, ...]
    right: bool
    """True for an assertion that was right."""
    hp: tuple[tuple[int, ...], ...]
    """By player and position, at least 0."""
    attack: tuple[tuple[int, ...], ...]
    """The effective attack, by player and position."""


class SampleGame:
    """A game between the agent and its opponent: it is always at a phase of the agent, or over."""

    def __init__(self, setup: Setup, seed: int) -> None:
        self.setup = setup
        self._dice = setup.dice(seed)
        self._opponent = opponent(setup.opponent, setup.profile)
        self._guessed: set[int] = set()
        """Positions that were guessed; the published code, by mistake, offers them no more."""
        self.game = Game((STANDARD_TEAM, STANDARD_TEAM), self._dice, RULES[setup.profile])
        self.phases: list[Phase] = []
        self._advance()

    @property
    def over(self) -> bool:
        return self.game.over

    def view(self) -> View:
        """What the agent sees."""
        return seen_by(self.game, self.setup.seat)

    def unknown(self) -> list[int]:
        """Positions that the prompt offers for a guess."""
        return [position for position in self.view().unknown() if position not in self._guessed]

    def read(self, text: str) -> Move | IllegalReply:
        """The agent's move of this phase, read from a reply."""
        if self.game.asserting:
            return read_guess(text, STANDARD_TEAM, self._problem, self.setup.grammar)
        return read_action(text, STANDARD_TEAM, self.view().targets(), self._problem, self.setup.grammar)

    def play(self, move: Move) -> None:
        """Plays the agent's move, and all phases up to its next one. Raises RuntimeError for an illegal move."""
        self._apply(self._guess_as_published(move) if self.setup.legacy_agent_bugs else move)
        self._advance()

    def damage(self) -> int:
        """Points that the enemies have lost, from 0 to 1600."""
        return sum(400 - max(fish.hp, 0) for fish in self.game.teams[1 - self.setup.seat])

    def trajectory(self) -> str:
        """16 hex digits that agree exactly when all phases were the same."""
        return hashlib.blake2b(repr(self.phases).encode(), digest_size=8).hexdigest()

    def _problem(self, move: Move) -> str | None:
        """Why the agent's move is not accepted, or None. The published code accepts guesses at exposed fish."""
        if isinstance(move, Assert) and self.setup.legacy_agent_bugs and move.position in self.view().targets():
            return None
        return self.game.problem(move)

    def _guess_as_published(self, move: Move) -> Move:
        """The move, or a pass for a guess at an exposed fish. Records the guessed position, not to be offered again."""
        if not isinstance(move, Assert):
            return move
        self._guessed.add(move.position)
        return move if move.position in self.view().unknown() else Pass()

    def _advance(self) -> None:
        while not self.game.over:
            move = self._automatic()
            if move is None:
                return
            self._apply(move)

    def _automatic(self) -> Move | None:
        """The move of a phase in which the agent is not asked: the opponent's, or a pass; None where the agent is."""
        if self.game.asserting and self.setup.stage == 1:
            return Pass()
        if self.game.player == self.setup.seat:
            return Pass() if self.game.asserting and self._nothing_to_guess() else None
        view = seen_by(self.game, self.game.player)
        return (self._opponent.guess if self.game.asserting else self._opponent.act)(view, self._dice)

    def _nothing_to_guess(self) -> bool:
        """Whether the agent's guess is skipped; the published code asks for one in every phase."""
        return not self.setup.legacy_agent_bugs and not self.unknown()

    def _apply(self, move: Move) -> None:
        player = self.game.player
        problem = self.game.apply(move)
        if problem is not None:
            raise RuntimeError(f"illegal move {move} of player {player}: {problem}")
        assertion = self.game.assertions[player]
        self.phases.append(
            Phase(
                player,
                move,
                self.game.events,
                isinstance(move, Assert) and assertion is not None and assertion[1],
                tuple([tuple([max(fish.hp, 0) for fish in team]) for team in self.game.teams]),
                tuple([tuple([fish.effective_attack for fish in team]) for team in self.game.teams]),
            )
        )
