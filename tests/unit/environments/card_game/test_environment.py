"""The environment's configuration, scores, summary, replay text and built-in agents."""

import pytest
from pydantic import JsonValue

from environments.card_game.environment import CardGame
from environments.card_game.policies import rehearse
from environments.card_game.sample_game import Setup
from environments.card_game.scoring import ALL_HP
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.types import Finish, FinishReason
from tests.unit.environments.fixed_policies import garbage

Fields = dict[str, JsonValue]


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


@pytest.mark.parametrize("fields", [{"legacy_agent_bugs": True}, {"stages": [1]}, {"repetitions": 25}])
async def test_the_reference_wins_every_game(fields: Fields) -> None:
    environment = CardGame.model_validate(fields)
    for sample in environment.samples():
        agent = PolicyAgent(environment.reference(sample, 7))
        finish = await play_to_finish(environment, sample, agent, 7)
        assert (finish.reason, finish.score) == (FinishReason.COMPLETED, 1.0), sample


def test_a_rehearsal_depends_on_the_seed_and_nothing_else() -> None:
    setup = Setup("greedy", 1, 0)
    line = rehearse(setup, 1)
    rehearse.cache_clear()
    assert rehearse(setup, 1) == line
    assert line.acts


async def test_the_replay_tells_the_game_to_a_person() -> None:
    environment = CardGame()
    sample = "greedy-seat0-0"
    finish = await environment.play(sample, PolicyAgent(environment.naive(sample, 0)), 0)
    lines = str(finish.detail["replay"]).splitlines()
    assert lines[0] == "agent (moves first) against greedy, stage 2"
    assert "1. agent's spray [0] sweeps over all 4 enemies" in lines
    assert "     greedy: spray [0] -84, flame [1] -84, eel [2] -56, sunfish [3] -56" in lines
    assert any("guesses that" in line for line in lines)
    assert any(line.endswith("is dead!") for line in lines)
    assert lines[-1].endswith(f"wins after {finish.metrics['phases']:g} phases.")
    assert max(map(len, lines)) <= 120


async def test_the_replay_says_why_the_agent_is_out() -> None:
    environment = CardGame()
    finish = await environment.play("greedy-seat0-0", PolicyAgent(garbage), 0)
    assert str(finish.detail["replay"]).endswith("The agent is out of the game: invalid_format.")


def test_all_damage_is_four_fish_of_400_hp() -> None:
    assert ALL_HP == 1600
