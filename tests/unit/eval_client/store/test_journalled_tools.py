"""Observations of a journal get back the tools that it leaves out."""

from eval_client.store.records import JournalledTools
from proctor.types import Message, Observation, Tool

TOOLS = (Tool(name="a"), Tool(name="b"))


def observation(conversation: str, tools: tuple[Tool, ...] = ()) -> Observation:
    return Observation(messages=(Message(role="user", content='"tools"'),), conversation=conversation, tools=tools)


def test_what_is_left_out_is_what_the_conversation_was_offered_last() -> None:
    whole = [
        observation("one", TOOLS),
        observation("two", TOOLS[:1]),
        observation("one", TOOLS),
        observation("one"),
        observation("one", TOOLS),
        observation("two", TOOLS[:1]),
    ]
    left_out = [False, False, True, False, True, True]
    kept = [
        each.model_dump_json(exclude={"tools"} if left else None) for each, left in zip(whole, left_out, strict=True)
    ]
    tools = JournalledTools()
    assert [Observation.model_validate(tools.whole(text)) for text in kept] == whole
