"""Sessions: two conversations, tries, finish reasons, scores."""

import json
from collections.abc import Sequence

import pytest

from environments.card_game.conversation import opened
from environments.card_game.environment import CardGame
from environments.card_game.prompt import CONFIRMATION, DIFFERENCES
from environments.card_game.sample_game import SampleGame, Setup
from environments.card_game.session import CardGameSession
from proctor.environment import Agent, AgentUnavailable
from proctor.types import Action, Finish, FinishReason, Message, Observation

SAMPLE = "greedy-seat0-0"
GUESS = '{"guess_type": "eel", "target_position": 2}'
SWEEP = '{"pick_fish": "spray", "action": "active", "target_position": 0}'


class Scripted(Agent):
    """Gives replies by conversation, the last one for ever; keeps the whole transcript of each call."""

    def __init__(self, guess: Sequence[str | Exception], act: Sequence[str | Exception]) -> None:
        self._replies = {"guess": list(guess), "act": list(act)}
        self._history: dict[str, list[Message]] = {}
        self.calls: list[tuple[str, tuple[Message, ...]]] = []

    async def act(self, observation: Observation) -> Action:
        name = observation.conversation
        if observation.fresh:
            self._history[name] = []
        history = self._history.setdefault(name, [])
        history.extend(observation.messages)
        self.calls.append((name, tuple(history)))
        replies = self._replies[name]
        reply = replies.pop(0) if len(replies) > 1 else replies[0]
        if isinstance(reply, Exception):
            raise reply
        history.append(Message(role="assistant", content=reply))
        return Action(content=reply)

    def told(self, name: str) -> list[tuple[Message, ...]]:
        return [messages for conversation, messages in self.calls if conversation == name]


async def play(agent: Agent, sample: str = SAMPLE, **fields: object) -> Finish:
    return await CardGame.model_validate(fields).play(sample, agent)


async def test_each_kind_of_request_has_a_history_of_accepted_pairs_under_its_rules() -> None:
    agent = Scripted(["nothing", GUESS, "what?"], ["hm", SWEEP, "bad", SWEEP, "no"])
    finish = await play(agent)
    assert finish.reason is FinishReason.INVALID_FORMAT
    acts = agent.told("act")
    assert [len(messages) for messages in acts] == [3, 3, 5, 5, *[7] * 5]
    assert acts[0] == acts[1]
    assert acts[0][1].content == CONFIRMATION
    assert [message.content for message in acts[-1] if message.role == "assistant"] == [CONFIRMATION, SWEEP, SWEEP]
    guesses = agent.told("guess")
    assert [len(messages) for messages in guesses] == [3, 3, *[5] * 10]
    assert "guess" in guesses[0][0].content
    assert "guess_type" not in acts[0][0].content


async def test_a_strict_retry_says_what_was_wrong_and_a_compat_retry_is_the_same_prompt() -> None:
    dead = '{"pick_fish": "octopus", "action": "normal", "target_position": 0}'
    for profile, same in (("compat", True), ("strict", False)):
        agent = Scripted([GUESS], [dead])
        finish = await play(agent, profile=profile)
        assert finish.reason is FinishReason.INVALID_ACTION
        first, second, third = (messages[-1].content for messages in agent.told("act")[:3])
        assert (first == second) == same
        assert second == third
        assert same or second.startswith(first + "\nYour last reply was not accepted: pick_fish must be one of spray")


async def test_the_guess_prompt_shows_result_positions_and_passives() -> None:
    agent = Scripted([GUESS, '{"guess_type": "eel", "target_position": 0}', "-"], [SWEEP, SWEEP, "-"])
    await play(agent)
    second, third = (json.loads(agent.told("guess")[index][-1].content) for index in (1, 2))
    assert second["Your previous guess"] == {"POSITION": 2, "TYPE": "eel", "RESULT": "right"}
    assert second["Positions to guess"] == [0, 1, 3]
    assert second["Passives of the enemy"] == {"2": ["deflect"], "3": ["deflect"]}
    assert second["Enemy previous action"]["TYPE"] == "aoe"
    assert third["Your previous guess"]["RESULT"] == "wrong"
    assert third["Positions to guess"] == [0, 1, 3]


async def test_the_act_prompt_shows_both_teams_and_both_last_actions() -> None:
    agent = Scripted([GUESS], [SWEEP, "-"])
    await play(agent)
    first, second = (json.loads(agent.told("act")[index][-1].content) for index in (0, 1))
    assert first["You"][1] == {"POSITION": 1, "ID": "flame", "HP": 400, "ATK": 200}
    assert [fish["ID"] for fish in first["Enemy"]] == ["unknown", "unknown", "eel", "unknown"]
    assert {fish["ATK"] for fish in first["Enemy"]} == {"unknown"}
    assert (first["Your previous action"], first["Enemy previous action"]) == ("none", "none")
    assert [fish["HP"] for fish in second["Enemy"]] == [266, 266, 294, 294]
    action = second["Your previous action"]
    assert (action["POSITION"], action["TYPE"], action["DAMAGE"]) == (0, "aoe", 70)
    assert action["TARGETS"] == ["Enemy 0", "Enemy 1", "Enemy 2", "Enemy 3"]
    assert action["HITS"][:3] == ["Enemy 0: 70", "Enemy 1: 70", "Enemy 0: 7"]
    assert action["PASSIVES"] == ["Enemy 2: deflect", "Enemy 3: deflect"]
    assert [hit.split(":")[0] for hit in second["Enemy previous action"]["HITS"][:2]] == ["You 0", "You 1"]


@pytest.mark.parametrize("stage", [1, 2])
async def test_the_act_rules_say_that_the_enemy_guesses_too_where_it_does(stage: int) -> None:
    agent = Scripted(["-"], ["-"])
    await play(agent, "greedy-seat0-0" + ("-stage1" if stage == 1 else ""), stages=(stage,))
    (told, *_), *_ = agent.told("act")
    assert (
        ("the enemy can guess" in told.content) == ("each of your fish loses 50 health" in told.content) == (stage == 2)
    )


async def test_the_rules_name_no_order_of_the_fish() -> None:
    agent = Scripted(["-"], ["-"])
    await play(agent)
    for rules in (agent.told("guess")[0][0].content, agent.told("act")[0][0].content):
        assert "position" not in rules.split("In each round write down")[0]


async def test_the_differences_are_told_only_when_asked_for() -> None:
    for explained in (False, True):
        agent = Scripted(["-"], ["-"])
        await play(agent, explain_rules=explained)
        assert {DIFFERENCES in messages[0].content for _, messages in agent.calls} == {explained}


async def test_an_infight_alone_is_refused() -> None:
    match = SampleGame(Setup("random", 0, 0), 0)
    for position in (0, 2, 3):
        match.game.teams[0][position].hp, match.game.teams[0][position].dead = 0, True
    agent = Scripted(["-"], ['{"pick_fish": "flame", "action": "active", "target_position": 0}'])
    assert (await CardGameSession(match, agent, *opened(match.setup)).play()).reason is FinishReason.INVALID_ACTION


async def test_a_failed_endpoint_is_a_fault() -> None:
    with pytest.raises(AgentUnavailable):
        await play(Scripted([GUESS], [AgentUnavailable("down")]))


@pytest.mark.parametrize("repeated", ['{"guess_type": "eel", "target_position": 0}', GUESS])
async def test_with_the_published_bugs_a_guessed_position_is_hidden_and_still_taken(repeated: str) -> None:
    """A guess at an exposed fish is a pass, one at a hidden fish counts."""
    wrong = '{"guess_type": "eel", "target_position": 0}'
    agent = Scripted([wrong, GUESS, repeated, "-"], [SWEEP, SWEEP, SWEEP, "-"])
    finish = await play(agent, legacy_agent_bugs=True, sample="random-seat0-0")
    offered = [json.loads(messages[-1].content)["Positions to guess"] for messages in agent.told("guess")[:4]]
    assert offered == [[0, 1, 2, 3], [1, 2, 3], [1, 3], [1, 3]]
    assert (finish.metrics["guesses"], finish.metrics["right_guesses"]) == (2 if repeated == GUESS else 3, 1)


@pytest.mark.parametrize("bugs", [True, False])
async def test_with_the_published_bugs_a_guess_is_asked_for_even_where_none_is_left(bugs: bool) -> None:
    match = SampleGame(Setup("random", 0, 0, legacy_agent_bugs=bugs), 0)
    for fish in match.game.teams[1]:
        fish.exposed = True
    agent = Scripted([GUESS], [SWEEP, "-"])
    finish = await CardGameSession(match, agent, *opened(match.setup)).play()
    asked = [name for name, _ in agent.calls]
    assert asked == (["guess", "act", "guess", *["act"] * 5] if bugs else [*["guess"] * 5, *["act"] * 6])
    assert json.loads(agent.told("guess")[-1][-1].content)["Positions to guess"] == []
    assert finish.metrics["guesses"] == 0


async def test_with_the_published_bugs_a_guess_at_a_dead_fish_is_refused() -> None:
    match = SampleGame(Setup("random", 0, 0, legacy_agent_bugs=True), 0)
    match.game.teams[1][2].hp, match.game.teams[1][2].dead = 0, True
    agent = Scripted([GUESS], ["-"])
    finish = await CardGameSession(match, agent, *opened(match.setup)).play()
    assert (len(agent.told("guess")), finish.metrics["guesses"]) == (5, 0)
