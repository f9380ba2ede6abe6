"""An episode for an agent that calls: the world asks for the next action, and the agent's calls are the answers."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass

from proctor.environment import Agent
from proctor.session.transcript import Transcript
from proctor.tools import arguments_schema
from proctor.tools.functions import checked_arguments, given_arguments
from proctor.tools.histories import normalised
from proctor.types import Action, History, Message, Observation, Tool, ToolCall, well_formed
from proctor_bridges.mcp.frames import McpCall, McpOffer, McpResult

OVER = McpResult("The episode is over.", over=True)
ANSWER = Tool(
    name="answer",
    description="Gives your answer to the last message. The result is the next message.",
    parameters=arguments_schema(content={"type": "string", "description": "The whole text of the answer."}),
)
"""The only tool of a task that takes texts."""
REPEATED_S = 5.0
"""A call that comes again, with the same id, within this time after its answer gets the same answer."""


@dataclass(frozen=True)
class _Call:
    action: Action
    readable: bool
    result: asyncio.Future[McpResult]


class CalledEpisode(Agent):
    """Plays one episode by the calls of a client: each call is a turn, one after the other in the order they came.

    `act` is the world's side. `call`, `offer` and `opened` are the client's. Whoever lets the world play must call
    `end` afterwards.
    """

    def __init__(self, repeated_s: float = REPEATED_S) -> None:
        self.over = False
        self.reached = False
        """Whether a client has sent a request."""
        self.calls = 0
        """How many calls were turns."""
        self._repeated_s = repeated_s
        self._opening = ""
        self._tools: tuple[Tool, ...] = ()
        self._conversation = ""
        self._opened = asyncio.Event()
        self._transcript, self._history = Transcript(), History()
        self._next: asyncio.Queue[_Call] = asyncio.Queue()
        self._under_way: _Call | None = None
        self._one_at_a_time = asyncio.Lock()
        self._recent: dict[object, asyncio.Task[McpResult]] = {}

    async def act(self, observation: Observation) -> Action:
        """The action of the next call. The observation is the result of the call before, or the episode's opening."""
        self.show(observation, observation.tools)
        return await self.next_action()

    def show(self, observation: Observation, tools: Sequence[Tool]) -> None:
        """Give the observation to the agent, with the functions that it may call now."""
        text = self._text(observation)
        self._tools, self._history = tuple(tools), self._transcript.observe(observation)
        if self._under_way is None:
            self._opening = text
            self._opened.set()
        else:
            self._under_way.result.set_result(McpResult(text, is_error=not self._under_way.readable))

    async def next_action(self) -> Action:
        """The action of the next call, once it comes."""
        self._under_way = await self._next.get()
        return self._under_way.action

    @property
    def called(self) -> bool:
        """Whether a call waits to be taken as the next action."""
        return not self._next.empty()

    def end(self) -> None:
        """The world asks for nothing more: this is the answer to every call from now on."""
        self.over = True
        self._opening = OVER.text
        self._opened.set()
        waiting = [] if self._under_way is None else [self._under_way]
        while not self._next.empty():
            waiting.append(self._next.get_nowait())
        for call in waiting:
            if not call.result.done():
                call.result.set_result(OVER)

    async def offer(self) -> McpOffer:
        """The opening messages and the tools, once the world has begun."""
        await self._opened.wait()
        return McpOffer(self._opening, self._tools or (ANSWER,))

    async def call(self, request: McpCall, key: object) -> McpResult:
        """The result of a call. A call of the same `key` that is under way, or has just been answered, is this one."""
        task = self._recent.get(key)
        if task is None:
            task = self._recent[key] = asyncio.create_task(self._play(request))
            task.add_done_callback(lambda _: self._forget_later(key))
        return await asyncio.shield(task)

    def _forget_later(self, key: object) -> None:
        asyncio.get_running_loop().call_later(self._repeated_s, self._recent.pop, key, None)

    async def _play(self, request: McpCall) -> McpResult:
        async with self._one_at_a_time:
            await self._opened.wait()
            if self.over:
                return OVER
            if not self._tools:
                content = request.arguments.get("content")
                if request.name != ANSWER.name or not isinstance(content, str):
                    return McpResult('Nothing was played. Call answer with {"content": "your answer"}.', is_error=True)
                call = self._queued(Action(content=well_formed(content)), readable=True)
            else:
                arguments = well_formed(json.dumps(request.arguments, ensure_ascii=False))
                name = well_formed(request.name)
                made = ToolCall(id="", name=name, arguments=arguments)
                action = normalised(Action(content="", tool_calls=(made,)), self._history)
                call = self._queued(action, readable=self._readable(made))
            return await call.result

    def _queued(self, action: Action, *, readable: bool) -> _Call:
        self.calls += 1
        self._history.append(action.message())
        call = _Call(action, readable, asyncio.get_running_loop().create_future())
        self._next.put_nowait(call)
        return call

    def _readable(self, call: ToolCall) -> bool:
        """Whether the call names a function that is offered, with arguments of the right names and types."""
        tool = next((tool for tool in self._tools if tool.name == call.name), None)
        if tool is None:
            return False
        try:
            checked_arguments(tool.parameters, given_arguments(call.arguments))
        except ValueError:
            return False
        return True

    def _text(self, observation: Observation) -> str:
        """The messages of an observation as one text, which says where another conversation begins."""
        begins = observation.fresh or observation.conversation != self._conversation
        self._conversation = observation.conversation
        text = messages_text(observation.messages)
        return f"A new conversation begins.\n\n{text}" if begins and self._under_way is not None else text


def messages_text(messages: Sequence[Message]) -> str:
    """Messages as one text: one alone as it is, several each under its role."""
    if len(messages) == 1:
        return _body(messages[0])
    return "\n\n".join(f"[{message.role}]\n{_body(message)}" for message in messages)


def _body(message: Message) -> str:
    calls = [f"{call.name} {call.arguments}" for call in message.tool_calls]
    return "\n".join([message.content, *calls] if message.content or not calls else calls)
