"""`legacy_agent_bugs` against the published reader: 4,000 replies of the acting phase and 600 of the guessing phase."""

from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
from pydantic import BaseModel

from environments.card_game.reply import IllegalReply
from environments.card_game.rules.fish import IDS
from environments.card_game.rules.moves import Assert, Attack, Move, Skill
from environments.card_game.sample_game import SampleGame, Setup
from tests.support import SHARED_DATA

NAMES = ("spray", "flame", "eel", "sunfish")
LEGAL, ILLEGAL, NO_JSON = range(3)


class Acted(BaseModel):
    """What the published reader made of a reply in the acting phase."""

    status: int
    move: Mapping[str, str] | None


class PublishedMove(BaseModel):
    """A reply of the acting phase."""

    reply: str
    own_living: Sequence[int]
    enemy_living: Sequence[int]
    published: Acted

    def move(self) -> Move | None:
        """The move it read, as ours. Numbers stand for the fish after the one of that position."""
        if self.published.move is None:
            return None
        name, target = self.published.move["pick_fish"], int(self.published.move["target_position"])
        position = NAMES.index(name) if name in NAMES else int(name) + 1
        if self.published.move["action"] == "normal":
            return Attack(position, target)
        if name in ("spray", "eel"):
            return Skill(position, enemies=tuple(self.enemy_living))
        return Skill(position, mates=(target,))


class PublishedGuess(BaseModel):
    """A reply of the guessing phase, and whether the published reader took it."""

    reply: str
    enemy_living: Sequence[int]
    published: tuple[bool, Mapping[str, str]]

    def move(self) -> Move | None:
        """The guess it read, as ours."""
        taken, guess = self.published
        return Assert(int(guess["target_position"]), IDS[guess["guess_type"]]) if taken else None


def lines(name: str) -> list[str]:
    return (SHARED_DATA / "card_game" / name).read_text(encoding="utf-8").splitlines()


def match_with(own_living: Sequence[int], enemy_living: Sequence[int], asserting: bool) -> SampleGame:
    """A game of an agent that moves first, in which only these fish live."""
    match = SampleGame(Setup("random", 0, 0, legacy_agent_bugs=True), 0)
    for team, living in zip(match.game.teams, (own_living, enemy_living), strict=True):
        for fish in team:
            if fish.position not in living:
                fish.hp, fish.dead = 0, True
    match.game.asserting = asserting
    return match


def status(read: Move | IllegalReply) -> int:
    return LEGAL if not isinstance(read, IllegalReply) else ILLEGAL if read.parsed else NO_JSON


@pytest.mark.shared
def test_every_reply_of_the_acting_phase_is_read_as_published() -> None:
    moves = [PublishedMove.model_validate_json(line) for line in lines("published_moves.jsonl")]
    for each in moves:
        read = match_with(each.own_living, each.enemy_living, asserting=False).read(each.reply)
        assert status(read) == each.published.status, each
        assert each.published.status != LEGAL or read == each.move(), each
    assert min(Counter(each.published.status for each in moves).values()) > 500


@pytest.mark.shared
def test_every_reply_of_the_guessing_phase_is_read_as_published() -> None:
    guesses = [PublishedGuess.model_validate_json(line) for line in lines("published_guesses.jsonl")]
    for each in guesses:
        read = match_with(range(4), each.enemy_living, asserting=True).read(each.reply)
        assert (None if isinstance(read, IllegalReply) else read) == each.move(), each
    assert min(Counter(each.published[0] for each in guesses).values()) > 100
