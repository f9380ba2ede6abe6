"""The tools of a conversation are sent once, and what is received is what was offered."""

from hypothesis import given
from hypothesis import strategies as st

from proctor.types import Message, Observation, Tool
from task_server.wire.messages import Observed, TurnResponse
from task_server.wire.offered_tools import OfferedTools

TOOLS = tuple(Tool(name=name, parameters={"type": "object", "properties": {name: {}}}) for name in "abc")
OFFERS = st.sampled_from([(), TOOLS[:1], TOOLS[:2], TOOLS])


def observation(conversation: str, tools: tuple[Tool, ...]) -> Observation:
    return Observation(messages=(Message(role="user", content="?"),), conversation=conversation, tools=tools)


def sent(step: Observed) -> Observed:
    """The step after its way over the wire."""
    read = TurnResponse.model_validate_json(TurnResponse(step=step).model_dump_json()).step
    assert isinstance(read, Observed)
    return read


@given(offers=st.lists(st.tuples(st.sampled_from(["one", "two"]), OFFERS), max_size=12))
def test_the_client_gets_what_the_environment_offered(offers: list[tuple[str, tuple[Tool, ...]]]) -> None:
    worker, client = OfferedTools(), OfferedTools()
    for turn, (conversation, tools) in enumerate(offers, 1):
        told = observation(conversation, tools)
        assert client.observation(sent(worker.step(turn, told))) == told


def test_tools_are_sent_once_to_each_conversation_and_again_where_they_change() -> None:
    worker = OfferedTools()
    offers = [("one", TOOLS), ("one", TOOLS), ("two", TOOLS), ("one", TOOLS[:1]), ("one", TOOLS[:1]), ("one", ())]
    steps = [worker.step(turn, observation(*offer)) for turn, offer in enumerate(offers, 1)]
    assert [len(step.observation.tools) for step in steps] == [3, 0, 3, 1, 0, 0]
    assert [step.tools_as_before for step in steps] == [False, True, False, False, True, False]


def test_a_task_without_tools_is_told_in_the_same_bytes_as_ever() -> None:
    step = OfferedTools().step(2, observation("main", ()))
    assert step.model_dump_json() == (
        '{"kind":"observation","turn":2,"observation":{"messages":[{"role":"user","content":"?","tool_calls":[],'
        '"tool_call_id":null}],"tools":[],"conversation":"main","fresh":false}}'
    )
    assert step.observation.digest() == "f25cc5ccd3d07980"
