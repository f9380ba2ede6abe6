"""The built-in policies: functions of the transcript alone, and the reference, which has rehearsed its game."""

import functools
import json
import random
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from pydantic import BaseModel, Field

from environments.card_game.rules.fish import FLAME, IDS, SPECIES, SPRAY, STANDARD_TEAM
from environments.card_game.rules.moves import Assert, Attack, Move, Pass, Skill
from environments.card_game.rules.opponents import Chance, Greedy
from environments.card_game.rules.view import Enemy, Own, View
from environments.card_game.sample_game import SampleGame, Setup
from environments.card_game.scoring import ALL_HP
from proctor.environment import Policy
from proctor.types import Action, Message

REHEARSALS = 500
"""The most games that a reference rehearses; most samples need fewer than ten."""
WHIM = 0.4
"""The share of a rehearsal's moves that are random."""
Actor = Callable[[View, random.Random], Move]
Guesser = Callable[[Sequence[Message], random.Random], Move]


class PlannedReplies(NamedTuple):
    """The replies of a game in each conversation, in order."""

    guesses: tuple[str, ...]
    acts: tuple[str, ...]


def reference(setup: Setup, seed: int) -> Policy:
    """Knows the enemy and the random numbers: plays the first rehearsed game that it wins."""

    def policy(conversation: str, transcript: Sequence[Message]) -> Action:
        planned = rehearse(setup, seed)
        replies = planned.guesses if conversation == "guess" else planned.acts
        return Action(content=replies[min(_replies(transcript), len(replies) - 1)])

    return policy


def greedy_agent(setup: Setup, seed: int) -> Policy:
    """Plays as the greedy opponent. A guess of a type that is not in play is refused five times, which is a pass."""
    return _player(setup, seed, Greedy(kill_first=setup.profile != "paper").act, _hidden_type)


def random_agent(setup: Setup, seed: int) -> Policy:
    """Random legal moves: fish, action and target are drawn one after the other."""
    return _player(setup, seed, Chance(normal_share=0.5).act, _any_type)


def blind_aoe(setup: Setup, seed: int) -> Policy:
    """Uses its spray's AOE while that lives, then attacks the first enemy with its first fish; guesses at random."""
    return _player(setup, seed, _sweep, _any_type)


def dead_picker(conversation: str, transcript: Sequence[Message]) -> Action:
    """Always attacks with its flame, also when that is dead."""
    if conversation == "guess":
        return _said(Assert(_guess_state(transcript[-1]).choice()[0], SPRAY))
    return _said(Attack(STANDARD_TEAM.index(FLAME), _view(transcript[-1]).targets()[0]))


@functools.lru_cache(maxsize=512)
def rehearse(setup: Setup, seed: int) -> PlannedReplies:
    """The replies of a game that the agent wins with all damage dealt, else of the game with the most damage."""
    best, most = PlannedReplies((), ()), -1
    for attempt in range(REHEARSALS):
        match = SampleGame(setup, seed)
        planned = _improvised(match, random.Random(attempt))
        if match.game.winner == setup.seat and match.damage() == ALL_HP:
            return planned
        if match.damage() > most:
            best, most = planned, match.damage()
    return best


def _improvised(match: SampleGame, dice: random.Random) -> PlannedReplies:
    """Plays a match to its end: every guess right, actions partly greedy and partly random."""
    guesses, acts = list[str](), list[str]()
    greedy, chance = Greedy(), Chance()
    while not match.over:
        if match.game.asserting:
            position = dice.choice(match.unknown() or match.view().targets())
            move: Move = Assert(position, STANDARD_TEAM[position])
        else:
            actor = chance if dice.random() < WHIM else greedy
            move = _permitted(match.setup, actor.act(match.view(), dice), match.view(), dice)
        (guesses if match.game.asserting else acts).append(_said(move).content)
        match.play(move)
    return PlannedReplies(tuple(guesses), tuple(acts))


def _player(setup: Setup, seed: int, act: Actor, guess: Guesser) -> Policy:
    def policy(conversation: str, transcript: Sequence[Message]) -> Action:
        state = transcript[-1].content.split("\n")[0]
        dice = random.Random(f"{setup.sample} {seed} {_replies(transcript)} {state}")
        if conversation == "guess":
            return _said(guess(transcript, dice))
        view = _view(transcript[-1])
        return _said(_permitted(setup, act(view, dice), view, dice))

    return policy


def _permitted(setup: Setup, move: Move, view: View, dice: random.Random) -> Move:
    """The move, or a normal attack of the same fish where the published mistakes would refuse the move."""
    if isinstance(move, Skill) and setup.refuses(move):
        return Attack(move.position, dice.choice(view.targets()))
    return move


def _sweep(view: View, _: random.Random) -> Move:
    spray = STANDARD_TEAM.index(SPRAY)
    if spray in view.living():
        return Skill(spray, enemies=tuple(view.targets()))
    return Attack(view.living()[0], view.targets()[0])


def _any_type(transcript: Sequence[Message], dice: random.Random) -> Move:
    return Assert(dice.choice(_guess_state(transcript[-1]).choice()), dice.choice(STANDARD_TEAM))


def _hidden_type(transcript: Sequence[Message], dice: random.Random) -> Move:
    """A random guess among all nine types, without those that earlier guesses found."""
    prompts = [_guess_state(message) for message in transcript if message.role == "user" and message.content[0] == "{"]
    guesses = [prompt.guess for prompt in prompts if isinstance(prompt.guess, _Guess)]
    exposed = {IDS[guess.type] for guess in guesses if guess.result == "right"}
    return Assert(dice.choice(prompts[-1].choice()), dice.choice([id for id in SPECIES if id not in exposed]))


def _replies(transcript: Sequence[Message]) -> int:
    """The number of the agent's replies, without the confirmation, which is part of the prompt in protocol `text`."""
    confirmed = transcript[0].role == "user"
    return sum(message.role == "assistant" for message in transcript) - confirmed


# How prompts are read and replies written.


class _Guess(BaseModel):
    type: str = Field(alias="TYPE")
    result: str = Field(alias="RESULT")


class _GuessState(BaseModel):
    guess: _Guess | Literal["none"] = Field(alias="Your previous guess")
    positions: tuple[int, ...] = Field(alias="Positions to guess")

    def choice(self) -> Sequence[int]:
        """The positions to guess; all of them where the prompt lists none, as happens with the published mistakes."""
        return self.positions or range(4)


class _Fish(BaseModel):
    name: str = Field(alias="ID")
    hp: int = Field(alias="HP")
    attack: int | Literal["unknown"] = Field(alias="ATK")


class _Acted(BaseModel):
    position: int = Field(alias="POSITION")


class _ActState(BaseModel):
    own: tuple[_Fish, ...] = Field(alias="You")
    enemies: tuple[_Fish, ...] = Field(alias="Enemy")
    acted: _Acted | Literal["none"] = Field(alias="Enemy previous action")


def _guess_state(message: Message) -> _GuessState:
    return _GuessState.model_validate_json(message.content.split("\n")[0])


def _view(message: Message) -> View:
    """What a prompt of the act conversation shows."""
    state = _ActState.model_validate_json(message.content.split("\n")[0])
    return View(
        tuple(Own(IDS[fish.name], fish.hp, int(fish.attack)) for fish in state.own),
        tuple(Enemy(IDS.get(fish.name), fish.hp) for fish in state.enemies),
        state.acted.position if isinstance(state.acted, _Acted) else None,
    )


def _said(move: Move) -> Action:
    """The reply that asks for a move."""
    match move:
        case Assert(position, id):
            reply: dict[str, str | int] = {"guess_type": SPECIES[id].name, "target_position": position}
        case Attack(position, target):
            reply = {"pick_fish": _name(position), "action": "normal", "target_position": target}
        case Skill(position, mates, enemies):
            target = (mates or enemies)[0]
            reply = {"pick_fish": _name(position), "action": "active", "target_position": target}
        case Pass():
            raise ValueError("no reply means to pass")
    return Action(content=json.dumps(reply))


def _name(position: int) -> str:
    return SPECIES[STANDARD_TEAM[position]].name
