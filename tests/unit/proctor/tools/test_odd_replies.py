"""All worlds in both protocols, after odd replies, at an endpoint that holds the rules of five providers at once."""

import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import httpx
import pytest

from proctor import registry
from proctor.environment import Agent, Policy, policy_of
from proctor.llm.config import ChatConfig
from proctor.llm.dialects.chat import messages_json
from proctor.llm.model import ChatModel
from proctor.session.play import play_to_finish
from proctor.session.transcript import Transcript
from proctor.tools import Protocol
from proctor.tools.histories import normalised
from proctor.types import Action, Message, Observation
from tests.support import via
from tests.tool_calls import ENGINES, environment_in
from tests.unit.proctor.tools.provider_rules import refused

Reply = Mapping[str, Any]
NONE = object()
"""In the place of a field that is left out."""


def calling(*calls: object) -> Reply:
    """A message of calls."""
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def call(name: object = "FIRST", arguments: object = "{}", id_: object = NONE, **more: object) -> dict[str, object]:
    """A call; the name FIRST is that of the first function offered."""
    function = {"name": name, "arguments": arguments}
    fields = {"id": id_, "type": "function", "function": {k: v for k, v in function.items() if v is not NONE}, **more}
    return {name: value for name, value in fields.items() if value is not NONE}


def said(content: object, **more: object) -> Reply:
    """A message of words."""
    return {"role": "assistant", "content": content, **more}


ODD: Mapping[str, Reply] = {
    "content empty": said(""),
    "content null": said(None),
    "content absent": {"role": "assistant"},
    "content blank": said(" \n\t"),
    "content of no parts": said([]),
    "content in parts": said([{"type": "text", "text": "yes"}]),
    "a number": said(5),
    "only thoughts": said(None, reasoning_content="I think"),
    "no calls": said("hm", tool_calls=[]),
    "calls an object": said("hm", tool_calls={}),
    "calls null, nothing said": said(None, tool_calls=None),
    "blank beside a call": {**calling(call()), "content": "\n\n"},
    "thoughts beside a call": {**calling(call()), "reasoning_content": "so"},
    "the old function_call": said(None, function_call={"name": "FIRST", "arguments": "{}"}),
    "a name with a dot": calling(call("functions.FIRST")),
    "a name with a suffix": calling(call("FIRST<|channel|>commentary")),
    "a name of spaces": calling(call("  ")),
    "a name in Chinese": calling(call("\u67e5\u8be2")),
    "a long name": calling(call("x" * 300)),
    "a name with controls": calling(call("a\x00b\n")),
    "a name empty": calling(call("")),
    "a name null": calling(call(None)),
    "a name absent": calling(call(NONE)),
    "names that fall together": calling(call("a.b"), call("ab"), call("a-b!")),
    "no function": calling({"id": "abcdefgh1", "type": "function"}),
    "a custom call": calling({"id": "abcdefgh2", "type": "custom", "custom": {"name": "f", "input": "x"}}),
    "arguments half": calling(call(arguments='{"a": ')),
    "arguments a list": calling(call(arguments="[1, 2]")),
    "arguments a text": calling(call(arguments='"x"')),
    "arguments null": calling(call(arguments=None)),
    "arguments absent": calling(call(arguments=NONE)),
    "arguments empty": calling(call(arguments="")),
    "arguments an object": calling(call(arguments={"a": 1})),
    "arguments not JSON": calling(call(arguments='{"a": NaN}')),
    "arguments nested deep": calling(call(arguments='{"x": ' + "[" * 20_000)),
    "arguments with half a character": calling(call(arguments='{"a": "\\ud800"}')),
    "id null": calling(call(id_=None)),
    "id empty": calling(call(id_="")),
    "id a number": calling(call(id_=7)),
    "id short": calling(call(id_="a")),
    "id long": calling(call(id_="call_" + "x" * 60)),
    "two ids missing": calling(call(), call()),
    "one id twice": calling(call(id_="abcdefghi"), call(id_="abcdefghi")),
    "the id of one that is made": calling(call(id_="call00001"), call()),
    "forty calls": calling(*[call(id_=f"abcdefg{n:02}") for n in range(40)]),
}


Mode = Literal["always", "in turns", "beside"]
"""An odd reply to every request; to every second one, the policy's to the others; odd calls beside the policy's."""


class StrictEndpoint:
    """Says odd things, and refuses requests as five providers do. `sound` is what the policy would reply now."""

    def __init__(self, odd: Reply, mode: Mode) -> None:
        self._odd, self._mode, self.sound = odd, mode, Action(content="")
        self._own_ids: set[str] = set()
        self.asked = 0
        self.why: str | None = None

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        self.asked += 1
        self.why = self.why or refused(body, self._own_ids)
        if self.why is not None:
            return httpx.Response(400, json={"error": {"message": self.why}})
        first = body["tools"][0]["function"]["name"] if "tools" in body else "f"
        message = json.loads(json.dumps(self._odd).replace("FIRST", first))
        if self._mode == "beside" or (self._mode == "in turns" and self.asked % 2):
            sound: dict[str, Any] = messages_json([self.sound.message()])[0]
            odd = message if self._mode == "beside" else {}
            calls = [*(sound.get("tool_calls") or []), *(odd.get("tool_calls") or [])]
            message = {**odd, "content": sound["content"] or odd.get("content"), "tool_calls": calls}
        calls = message.get("tool_calls")
        self._own_ids |= {str(each["id"]) for each in calls or [] if each.get("id")}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        return httpx.Response(200, json={"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 3}})


class Asking(Agent):
    """Asks a model, and keeps its answers as the journal does."""

    def __init__(self, policy: Policy | None, endpoint: StrictEndpoint, model: ChatModel) -> None:
        self._policy, self._endpoint, self._model, self._transcript = policy, endpoint, model, Transcript()

    async def act(self, observation: Observation) -> Action:
        history = self._transcript.observe(observation)
        with contextlib.suppress(Exception):  # a policy that can't go on from what the endpoint said
            self._endpoint.sound = (self._policy or _again)(observation.conversation, history)
        action = normalised((await self._model.complete(history, observation.tools)).action, history)
        self._transcript.answer(observation, action)
        return action.without_echo()


def _again(_conversation: str, _history: Sequence[Message]) -> Action:
    return Action(content="yes")


def worlds() -> list[tuple[str, Protocol]]:
    """All worlds in each of their protocols."""
    protocols: tuple[Protocol, ...] = ("text", "tools")
    return [(name, each) for name in registry.names() for each in protocols if each == "text" or name != "simulbench"]


PLAYED = [(*pair, mode) for pair in worlds() for mode in get_args(Mode)]


async def refusals(world: str, protocol: Protocol, mode: Mode, odd: Sequence[str]) -> dict[str, str]:
    """What came of the odd replies after which a request was refused, or a trial has no score."""
    environment, found = environment_in(world, protocol, ENGINES.get(world, {})), dict[str, str]()
    config = ChatConfig(model="m", base_url="http://host/v1", max_tries=1)
    async with environment.lifespan():
        sample = environment.samples()[0]
        for name in odd:
            endpoint, policy = StrictEndpoint(ODD[name], mode), policy_of(environment, "reference", sample, seed=1)
            async with httpx.AsyncClient(transport=httpx.MockTransport(endpoint)) as client:
                agent = Asking(policy, endpoint, ChatModel(config, via(client)))
                finish = await play_to_finish(environment, sample, agent, seed=1)
            if endpoint.why or finish.score is None:
                found[name] = endpoint.why or str(finish.detail)
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("number", range(len(PLAYED)))
async def test_every_request_is_taken_after_odd_replies(number: int) -> None:
    """Each world, protocol and mode with another sixth of the odd replies."""
    assert await refusals(*PLAYED[number], list(ODD)[number % 6 :: 6]) == {}


@pytest.mark.thorough
@pytest.mark.parametrize(("world", "protocol", "mode"), PLAYED)
async def test_every_request_is_taken_after_every_odd_reply(world: str, protocol: Protocol, mode: Mode) -> None:
    assert await refusals(world, protocol, mode, list(ODD)) == {}
