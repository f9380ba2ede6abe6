"""Agents that answer with function calls, for tests of environments in protocol `tools`."""

import hashlib
import itertools
import json
from collections.abc import Sequence

from hypothesis import strategies as st

from proctor.environment import (
    POLICY_KINDS,
    Agent,
    AgentStopped,
    Environment,
    Policy,
    PolicyAgent,
    Transcript,
    play_to_finish,
    policy_of,
)
from proctor.llm.tool_calls import invalid_history, normalised
from proctor.types import Action, Message, Observation, Tool, ToolCall

Scripted = Action | AgentStopped
_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(max_size=5), values, max_size=3),
    max_leaves=5,
)


def calls(*named: tuple[str, object], content: str = "") -> Action:
    """A reply of calls: names with their arguments, which are written as JSON unless they are a text."""
    texts = [(name, given if isinstance(given, str) else json.dumps(given)) for name, given in named]
    return Action(content=content, tool_calls=tuple(ToolCall(id="", name=name, arguments=text) for name, text in texts))


class CallingAgent(Agent):
    """Gives its replies one after the other, the last one for ever, or plays a policy.

    As the client does, it makes every reply whole. Fails where an endpoint might refuse the history of a request.
    """

    def __init__(self, *replies: Scripted, policy: Policy | None = None) -> None:
        self._replies, self._policy = list(replies), policy
        self._transcript = Transcript()
        self.seen: list[Observation] = []

    async def act(self, observation: Observation) -> Action:
        self.seen.append(observation)
        history = self._transcript.observe(observation)
        assert invalid_history(history) is None, invalid_history(history)
        action = normalised(self._reply(observation, history), history)
        self._transcript.answer(observation, action)
        return action

    def told(self, turn: int) -> list[str]:
        """The texts of the messages before a turn, from 0."""
        return [message.content for message in self.seen[turn].messages]

    def _reply(self, observation: Observation, history: Sequence[Message]) -> Action:
        if self._policy is not None:
            return self._policy(observation.conversation, history)
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        if isinstance(reply, AgentStopped):
            raise reply
        return reply


def random_replies(tools: Sequence[Tool], values: Sequence[str]) -> st.SearchStrategy[list[Action]]:
    """Replies of sound, cut and made-up calls, with `values` among their arguments, and replies without calls."""
    texts = st.sampled_from(values) | st.text(max_size=5)
    named = [(tool.name, list[str](tool.parameters["properties"])) for tool in tools]  # type: ignore[arg-type]
    sound = st.sampled_from(named).flatmap(
        lambda function: st.tuples(st.just(function[0]), st.fixed_dictionaries(dict.fromkeys(function[1], texts)))
    )
    odd = st.tuples(st.sampled_from([*(name for name, _ in named), "", "exit"]) | st.text(max_size=9), _ANY)
    cut = st.builds(lambda call, end: (call[0], json.dumps(call[1])[:end]), sound, st.integers(0, 40))
    listed = st.lists(st.one_of(sound, sound, sound, cut, odd), min_size=1, max_size=4)
    contents = st.sampled_from(["", "hm", "Final Answer: #0", "Final Answer: #99", "ACTION: look"]) | st.text(
        max_size=9
    )
    called = st.builds(lambda named, content: calls(*named, content=content), listed, contents)
    silent = contents.map(lambda content: Action(content=content))
    return st.lists(st.one_of(called, called, called, silent), min_size=1, max_size=40)


class _Noting(Agent):
    """Plays for another agent, and keeps the digests of its observations."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.digests: list[str] = []

    async def act(self, observation: Observation) -> Action:
        self.digests.append(observation.digest())
        return await self._agent.act(observation)


class _Repeating(Agent):
    """Gives its replies in turn, again and again."""

    def __init__(self, replies: Sequence[str]) -> None:
        self._replies = itertools.cycle(replies)

    async def act(self, observation: Observation) -> Action:
        return Action(content=next(self._replies))


async def sessions_in_text(environment: Environment, *scripts: Sequence[str]) -> str:
    """A hash of all that is told and scored where each policy plays each sample, and scripts the first one."""
    state = hashlib.blake2b(digest_size=8)

    async def play(sample: str, agent: Agent) -> None:
        noting = _Noting(agent)
        finish = await play_to_finish(environment, sample, noting, seed=1)
        state.update("".join([*noting.digests, finish.model_dump_json()]).encode())

    async with environment.lifespan():
        for sample in environment.samples():
            for kind in POLICY_KINDS:
                policy = policy_of(environment, kind, sample, seed=1)
                assert policy is not None
                await play(sample, PolicyAgent(policy))
        for script in scripts:
            await play(environment.samples()[0], _Repeating(script))
    return state.hexdigest()
