"""Protocol `tools` of the card game: what the acceptance list's lines say of it alone, under their numbers."""

from environments.card_game.environment import CardGame
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.types import Action, FinishReason
from tests.random_calls import fuzz, unread
from tests.tool_calls import calls, replying


def game(**fields: object) -> CardGame:
    return CardGame.model_validate({"protocol": "tools", **fields})


async def test_3_the_reference_plays_the_same_in_both_protocols_with_the_published_agents_bugs() -> None:
    text, tools = CardGame(legacy_agent_bugs=True), game(legacy_agent_bugs=True)
    for sample in text.samples():
        in_text, in_tools = [
            await play_to_finish(each, sample, PolicyAgent(each.reference(sample, 7)), 7) for each in (text, tools)
        ]
        assert (in_tools.score, in_tools.reason) == (in_text.score, in_text.reason)
        assert in_tools.detail["trajectory"] == in_text.detail["trajectory"], "the same game, move by move"


async def test_20_sessions_without_calls_and_of_unknown_functions_end_as_invalid_in_compat_too() -> None:
    silent = await play_to_finish(game(), "random-seat0-0", replying(Action(content="{}")))
    assert silent.reason is FinishReason.INVALID_FORMAT
    assert silent.metrics["no_call"] == silent.metrics["calls"] == silent.metrics["bad_replies"] == 10
    unknown = await play_to_finish(game(), "random-seat0-0", replying(calls(("swim", "{}"))))
    assert unknown.reason is FinishReason.INVALID_ACTION
    assert (unknown.metrics["win"], unknown.metrics["unknown_function"]) == (0.0, 10)


async def test_22_random_and_mutated_calls_with_the_published_agents_bugs() -> None:
    environment = game(legacy_agent_bugs=True)
    samples = environment.samples()
    finishes = [(await fuzz(environment, samples[seed % len(samples)], seed))[0] for seed in range(15)]
    assert min(unread(finishes).values()) > 12
    assert sum(finish.metrics["phases"] for finish in finishes) > 250
