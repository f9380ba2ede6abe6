"""Any conversation, with any replies of its endpoint, is one that the makers' types and rules take."""

import json
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.llm.dialects import DialectName, dialect_of
from proctor.llm.wire import Form, Reasoning, SystemRole
from proctor.tools.histories import normalised
from proctor.types import Action, Message, Tool
from tests.unit.proctor.llm.dialects.endpoint import DialectEndpoint

TOOLS = (Tool(name="run", parameters={"type": "object"}), Tool(name="look"))
TEXTS = st.sampled_from(["", " ", "\n", "hm", "said\n\nmore", "\u2028", "x" * 3_000])
TOLD = st.sampled_from(["You play.", "x" * 3_000])
ARGUMENTS = st.sampled_from(["{}", '{"a": 1}', "", "[]", "{", "null", "\u2713" * 3_000])
ID = st.sampled_from(["a", "b", "", "call_1"])

THOUGHTS = {
    "responses": st.builds(
        lambda text: {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": text}]}, TEXTS
    ),
    "messages": st.sampled_from(
        [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "redacted_thinking", "data": "zz"},
        ]
    ),
}
SAID = {
    "responses": st.builds(
        lambda text: {
            "type": "message",
            "id": "m",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}] if text else [],
        },
        TEXTS,
    ),
    "messages": st.builds(lambda text: {"type": "text", "text": text}, TEXTS),
}
CALLED = {
    "responses": st.builds(
        lambda id_, given: {"type": "function_call", "call_id": id_, "name": "run", "arguments": given}, ID, ARGUMENTS
    ),
    "messages": st.builds(
        lambda id_, given: {"type": "tool_use", "id": id_, "name": "run", "input": given},
        ID,
        st.sampled_from([{}, {"a": 1}, [], None, "text"]),
    ),
}


def replies(dialect: DialectName) -> st.SearchStrategy[bytes]:
    """Replies of any items, in any order, cut or not."""
    if dialect == "chat":
        calls = st.builds(lambda id_, args: {"id": id_, "function": {"name": "run", "arguments": args}}, ID, ARGUMENTS)
        messages = st.builds(
            lambda text, some: {"content": text, "tool_calls": some}, TEXTS, st.lists(calls, max_size=3)
        )
        return st.builds(lambda message: json.dumps({"choices": [{"message": message}]}).encode(), messages)
    items = st.lists(st.one_of(THOUGHTS[dialect], SAID[dialect], CALLED[dialect]), max_size=5)
    name = "output" if dialect == "responses" else "content"
    return st.builds(lambda some: json.dumps({name: some}).encode(), items)


@st.composite
def conversations(draw: Any, dialect: DialectName) -> list[Message]:
    """Turns of any texts; each call of an answer is answered."""
    history = [Message(role="system", content=text) for text in draw(st.lists(TOLD, max_size=2))]
    history += [Message(role="user", content="Begin.")] if draw(st.booleans()) else []
    for _ in range(draw(st.integers(0, 4))):
        history += [Message(role="user", content=text) for text in draw(st.lists(TEXTS, max_size=2))]
        read = dialect_of(dialect).read(draw(replies(dialect))).action
        action = normalised(draw(st.sampled_from([read, read.without_echo()])), history)
        history.append(action.message())
        history += [Message(role="tool", content=draw(TEXTS), tool_call_id=call.id) for call in action.tool_calls]
    return [*history, *(Message(role="user", content=text) for text in draw(st.lists(TEXTS, max_size=1)))]


@pytest.mark.parametrize("dialect", ["responses", "messages"])
@given(data=st.data())
def test_any_conversation_is_one_that_its_maker_takes(dialect: DialectName, data: st.DataObject) -> None:
    conversation = data.draw(conversations(dialect)) or [Message(role="user", content="Begin.")]
    roles = [role for role in ("system", "developer", "user") if dialect != "messages" or role != "developer"]
    role: SystemRole = data.draw(st.sampled_from(roles))
    reasoning: Reasoning = data.draw(st.sampled_from(["auto", "always", "never"]))
    tools = data.draw(st.sampled_from([(), TOOLS]))
    endpoint = DialectEndpoint()
    endpoint.next = Action(content="hm")
    asked = dialect_of(dialect).request(conversation, tools, {"model": "m"}, Form(reasoning, role))
    request = httpx.Request("POST", f"http://host/v1{asked.path}", headers=dict(asked.headers), content=asked.body)
    assert endpoint(request).status_code == 200
