"""The environment's summary, the samples it knows, and its calls as moves."""

import pytest

from environments.card_game.environment import CardGame
from environments.card_game.functions import BOTH
from environments.card_game.rules.moves import Assert, Attack, Skill
from environments.card_game.sample_game import SampleGame, Setup
from proctor.types import Action, Finish, FinishReason
from tests.tool_calls import call


def finish(win: float, damage: float, opponent: str = "greedy", seat: int = 0, stage: int = 2) -> Finish:
    return Finish(
        reason=FinishReason.COMPLETED,
        score=0.5,
        metrics={"win": win, "damage": damage, "guesses": 4.0, "right_guesses": 1.0},
        detail={"opponent": opponent, "seat": seat, "stage": stage},
    )


def test_a_stage_without_a_scored_game_is_left_out_and_that_is_said() -> None:
    fault, both = Finish.fault(FinishReason.TASK_ERROR, "broken"), CardGame(profile="paper")
    one = both.summarize([finish(1, 1600, stage=1), fault])
    assert one.metrics["score"] == 1.0
    assert "`score` and its rates are over stage 1 alone: no game of stage 2 is scored." in one.notes
    told = [
        *both.summarize([finish(1, 1600, stage=1), finish(0, 0)]).notes,
        *both.summarize([fault]).notes,
        *CardGame(profile="paper", stages=(1,)).summarize([finish(1, 1600, stage=1)]).notes,
    ]
    assert not any("alone" in note for note in told)


def test_an_unknown_sample_is_named() -> None:
    with pytest.raises(ValueError, match="no sample 'greedy-seat2-0'; ids look like random-seat0-0"):
        CardGame().setup("greedy-seat2-0")


GUESS = call("guess", guess_type="eel", target_position=2)
SWEEP = call("act", pick_fish="spray", action="active", target_position=0)


@pytest.mark.parametrize(
    ("action", "asserting", "move"),
    [
        (GUESS, True, Assert(2, 3)),
        (call("act", pick_fish="eel", action="normal", target_position=1), False, Attack(2, 1)),
        (call("act", pick_fish="flame", action="active", target_position=0), False, Skill(1, mates=(0,))),
        (SWEEP, False, Skill(0, enemies=(0, 1, 2, 3))),
    ],
)
def test_a_call_is_the_move_that_its_json_is_in_text(action: Action, asserting: bool, move: object) -> None:
    (asked,) = action.tool_calls
    function = BOTH.find(asked.name, strict=True)
    assert function is not None
    text = function.read(function.checked(asked.arguments, strict=True))
    match = SampleGame(Setup("random", 0, 0), 0)
    match.game.asserting = asserting
    assert match.read(text) == move
    assert [each.name for each in BOTH.functions if each.write(text) is not None] == [asked.name]
