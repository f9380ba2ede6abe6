"""Protocol `tools`: the shop's functions, how a session answers calls, and what the environment refuses."""

import ast
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from environments.webshop import policies, prompt
from environments.webshop.environment import WebShop
from environments.webshop.functions import TOOLSET
from environments.webshop.reply import ShopMove
from environments.webshop.scoring import Profile
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.tools import OWN_FUNCTIONS
from proctor.tools.readers import NOT_EXECUTED
from proctor.types import Action, FinishReason
from tests.tool_calls import call, calls, replying

SAMPLE = "goal-00000"
SEARCH = call("search_action", keywords="Jeans")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
async def shop(cache: Path) -> AsyncIterator[WebShop]:
    environment = WebShop(cache=cache, protocol="tools")
    async with environment.lifespan():
        yield environment


@pytest.mark.parametrize(
    ("name", "arguments", "move"),
    [
        ("search_action", {"keywords": "Blue [dry] Jeans"}, ShopMove("search", "blue [dry] jeans")),
        ("click_action", {"value": "7 [US] oz"}, ShopMove("click", "7 [us] oz")),
    ],
)
def test_a_call_is_the_move_of_its_whole_text(name: str, arguments: dict[str, str], move: ShopMove) -> None:
    function = TOOLSET.find(name, strict=True)
    assert function is not None
    assert function.read(function.checked(json.dumps(arguments), strict=True)) == move
    assert [each.name for each in TOOLSET.functions if each.write(move) is not None] == [name]
    assert function.write(move) == {key: value.lower() for key, value in arguments.items()}
    assert function.write(None) is None


async def test_a_session_opens_with_the_instruction_and_answers_every_call(shop: WebShop) -> None:
    agent = replying(
        SEARCH,
        Action(content="Hm.", tool_calls=(*call("click_action", value="next >").tool_calls, *SEARCH.tool_calls)),
        call("click_action", value="nowhere"),
        call("click_action", value="back to search"),
    )
    finish = await play_to_finish(shop, SAMPLE, agent)
    first, found, second, same = agent.seen[:4]
    assert [message.role for message in first.messages] == ["system", "user"]
    assert first.messages[1].content.startswith("Observation:\nWebShop [SEP] Instruction: [SEP] ")
    assert all(observation.tools == TOOLSET.tools() and not observation.fresh for observation in agent.seen)
    (results,) = found.messages
    assert (results.role, "Page 1 (Total results: " in results.content) == ("tool", True)
    assert [message.role for message in second.messages] == ["tool", "tool"]
    assert "Page 2" in second.messages[0].content
    assert second.messages[1].content == NOT_EXECUTED
    assert same.messages[0].content == second.messages[0].content, "nothing was clicked"
    assert (finish.reason, finish.score, len(agent.seen)) == (FinishReason.TURN_LIMIT, 0.0, 20)
    assert finish.metrics["noop_actions"] == 1 + 16, "one click at nothing, and the search page has no way back"
    assert (finish.metrics["calls"], finish.metrics["extra_calls"], finish.metrics["rounds"]) == (21, 1, 20)


async def test_what_can_t_be_read_is_told_with_the_actions_there_are(shop: WebShop) -> None:
    replies = [Action(content="Action: search[jeans]"), calls(("search_action", '{"keywords": ')), calls(("buy", "{}"))]
    agent = replying(*replies, SEARCH)
    finish = await play_to_finish(shop, SAMPLE, agent)
    told = [observation.messages[-1] for observation in agent.seen[1:4]]
    assert [message.role for message in told] == ["user", "tool", "tool"]
    for message, why in zip(told, ("calls no function", "no JSON", "no function 'buy'"), strict=True):
        text, _, actions = message.content.partition("\n\nAvailable Actions:\n")
        assert text.startswith("Observation:\n")
        assert why in text
        assert ast.literal_eval(actions) == {"has_search_bar": True, "clickables": ["search"]}
    kinds = ("no_call", "bad_arguments", "unknown_function")
    assert [finish.metrics[kind] for kind in kinds] == [1, 1, 1]
    assert finish.metrics["rounds"] == 20


async def test_a_purchase_ends_the_session_with_its_reward(shop: WebShop) -> None:
    finish = await play_to_finish(shop, SAMPLE, PolicyAgent(shop.reference(SAMPLE)))
    assert (finish.reason, finish.score, finish.metrics["purchase"]) == (FinishReason.COMPLETED, 1.0, 1.0)
    assert finish.metrics["calls"] == finish.metrics["rounds"]


@pytest.mark.parametrize(
    ("profile", "reply", "reason"),
    [
        ("strict", Action(content="I look around."), FinishReason.INVALID_FORMAT),
        ("strict", calls(("look", "{}")), FinishReason.INVALID_ACTION),
        ("strict", call("search_action", query="jeans"), FinishReason.INVALID_ACTION),
        ("compat", call("search_action", query="jeans"), FinishReason.TURN_LIMIT),
        ("compat", Action(content="I look around."), FinishReason.TURN_LIMIT),
    ],
)
async def test_a_session_without_a_readable_call(
    cache: Path, profile: Profile, reply: Action, reason: FinishReason
) -> None:
    environment = WebShop(cache=cache, protocol="tools", profile=profile)
    async with environment.lifespan():
        agent = replying(reply)
        finish = await play_to_finish(environment, SAMPLE, agent)
    assert (finish.reason, finish.score, len(agent.seen)) == (reason, 0.0, 20)


async def test_the_random_policy_does_not_repeat_itself(shop: WebShop) -> None:
    finish = await play_to_finish(shop, "goal-00007", PolicyAgent(shop.random("goal-00007", 1)))
    assert finish.metrics["calls"] == finish.metrics["rounds"] > 1


def test_the_instruction_names_functions_and_no_reply_form() -> None:
    (message,) = prompt.opening("tools")
    assert message.role == "system"
    assert all(function.name in message.content for function in TOOLSET.functions)
    assert "search[" not in message.content
    assert policies.spelled(None) == ""


def test_scores_are_not_comparable_and_the_notes_name_the_functions(cache: Path) -> None:
    environment = WebShop(cache=cache, protocol="tools")
    assert environment.not_comparable_because() == OWN_FUNCTIONS
    assert any("the functions are told in our own words" in note for note in environment.summarize([]).notes)
    assert not any("example" in note for note in environment.summarize([]).notes)


def test_a_file_of_prompts_is_for_text(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="prompts: the file's prompt is for protocol: text; leave one of the two out"):
        WebShop(prompts=tmp_path / "p.json", protocol="tools")


def test_the_protocol_is_part_of_the_digest_and_text_is_the_default(cache: Path) -> None:
    assert WebShop(cache=cache, protocol="text").digest() == WebShop(cache=cache).digest()
    assert WebShop(cache=cache, protocol="tools").digest() != WebShop(cache=cache).digest()
    assert [WebShop(protocol=protocol).max_turns for protocol in ("text", "tools")] == [10, 20]
