"""The puzzles' function of protocol `tools`, and protocol `text` as it was before there was one."""

from environments.lateral_thinking.environment import LateralThinking
from environments.lateral_thinking.reply import toolset
from proctor.session.play import play_to_finish
from proctor.types import Action
from tests.tool_calls import replying, sessions_in_text

TEXT = LateralThinking()


def test_the_function_is_declared_with_its_one_argument() -> None:
    (tool,) = toolset("en", "strict").tools()
    assert tool.name == "ask"
    assert tool.parameters["required"] == ["question"]
    assert tool.parameters["additionalProperties"] is False
    assert list(tool.parameters["properties"]) == ["question"]  # type: ignore[arg-type]
    (chinese,) = toolset("zh", "strict").tools()
    assert chinese.name == "ask"
    assert chinese.description != tool.description


async def test_the_text_protocol_is_as_it_was() -> None:
    agent = replying(Action(content="Is it raining?"))
    async with TEXT.lifespan():
        finish = await play_to_finish(TEXT, "english-00000", agent)
    (first,) = agent.seen[0].messages
    assert (first.role, agent.seen[0].tools) == ("user", ())
    assert "`ask`" not in first.content
    assert "calls" not in finish.metrics
    assert await sessions_in_text(TEXT, TEXT.samples()) == "850abd428a90c035"
    compat = LateralThinking(profile="compat")
    assert await sessions_in_text(compat, compat.samples()) == "be1f8513c06c4fb1"
