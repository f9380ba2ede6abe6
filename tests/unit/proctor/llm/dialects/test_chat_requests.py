"""A conversation's requests: each message is encoded once, and the body is what encoding all of it would give."""

import itertools
import json
from collections import Counter

import pytest
from pydantic_core import to_json

from proctor.llm.dialects import chat
from proctor.llm.wire import Form, Reasoning, SystemRole
from proctor.session.transcript import Transcript
from proctor.types import Action, Message, Observation, Tool, ToolCall

SYSTEM = Message(role="system", content='Be "brief" \u2713\n')
CALL = ToolCall(id="1", name="f", arguments='{"a": 1}', echo={"extra_content": {"signature": "s"}})
TOLD = [
    (SYSTEM,),
    (SYSTEM, Message(role="user", content="hello")),
    (Message(role="tool", content="done", tool_call_id="1"),),
    (Message(role="user", content="again"), Message(role="system", content="and kind")),
    (Message(role="user", content="last"),),
]
ANSWERS = [
    Action(content="hi", echo={"reasoning_content": "hm"}),
    Action(content="", tool_calls=(CALL,), echo={"reasoning_content": "so"}),
    Action(content="yes"),
]


@pytest.mark.parametrize("system_role", ["system", "developer", "user"])
@pytest.mark.parametrize("reasoning", ["auto", "always", "never"])
@pytest.mark.parametrize("order", range(len(TOLD)))
def test_the_body_is_that_of_all_messages_encoded_anew(
    reasoning: Reasoning, system_role: SystemRole, order: int
) -> None:
    transcript, tools = Transcript(), [Tool(name="f")]
    for messages, answer in zip(TOLD[order:] + TOLD[:order], itertools.cycle(ANSWERS), strict=False):
        observation = Observation(messages=messages)
        history = transcript.observe(observation)
        sent = [
            chat.request(some, tools, {"top_p": 1, "model": "m"}, Form(reasoning, system_role)).body
            for some in (history, list(history), history)
        ]
        assert sent[0] == sent[1] == sent[2]
        assert sent[0] == to_json(json.loads(sent[0]))  # as one dump writes it
        transcript.answer(observation, answer)


def test_a_history_that_begins_anew_sends_nothing_of_the_old() -> None:
    transcript = Transcript()
    for content in ("old", "new"):
        observation = Observation(messages=(Message(role="user", content=content),), fresh=True)
        body = json.loads(chat.request(transcript.observe(observation), [], {}).body)
        assert [message["content"] for message in body["messages"]] == [content]


@pytest.mark.parametrize("system_role", ["system", "developer", "user"])
def test_each_message_is_encoded_once(system_role: SystemRole, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = Counter[str]()

    def counting(value: object) -> bytes:
        text = to_json(value)
        encoded.update(text.decode().split('"'))
        return text

    monkeypatch.setattr(chat, "to_json", counting)
    transcript = Transcript()
    for turn in range(30):
        news = Message(role="user", content=f"said {turn}")
        told = () if turn else (Message(role="system", content="told"),)
        observation = Observation(messages=(*told, news))
        history = transcript.observe(observation)
        for _ in range(2):  # the second one is a repetition
            chat.request(history, [], {}, Form(system_role=system_role))
        transcript.answer(observation, Action(content=f"answer {turn}"))
    first = [r"told\n\nsaid 0"] if system_role == "user" else ["told", "said 0"]
    texts = [*first, *(f"said {turn}" for turn in range(1, 30)), *(f"answer {turn}" for turn in range(29))]
    assert {text: encoded[text] for text in texts} == dict.fromkeys(texts, 1)
