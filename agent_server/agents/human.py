"""A person at the server's terminal as an agent."""

import asyncio
import re
import threading
from typing import TextIO

from agent_server.agents.base import AgentReply, AgentRequest, ServedAgent
from agent_server.errors import RequestRefused
from proctor.types import Action, Message

END = "."
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class HumanAgent(ServedAgent):
    """Shows the new messages of a transcript and reads lines up to a lone "."; one request at a time, others wait.

    It answers with text alone: tools are shown but can't be called.
    """

    def __init__(self, stdin: TextIO, stdout: TextIO) -> None:
        self._stdin, self._stdout = stdin, stdout
        self._turn = asyncio.Lock()

    async def answer(self, request: AgentRequest) -> AgentReply:
        async with self._turn:
            self._stdout.write(prompt(request))
            self._stdout.flush()
            return AgentReply(Action(content=await self._typed()))

    async def _typed(self) -> str:
        """The text that the person types. A daemon thread reads it: a thread that waits for input can't be ended."""
        loop = asyncio.get_running_loop()
        typed: asyncio.Future[str | None] = loop.create_future()

        def deliver(text: str | None) -> None:
            if not typed.done():
                typed.set_result(text)

        threading.Thread(target=lambda: loop.call_soon_threadsafe(deliver, self._read()), daemon=True).start()
        text = await typed
        if text is None:
            raise RequestRefused(502, "the human's terminal was closed", code="agent_unavailable", type="server_error")
        return text

    def _read(self) -> str | None:
        lines: list[str] = []
        for line in iter(self._stdin.readline, ""):
            text = line.rstrip("\r\n")
            if text == END:
                return "\n".join(lines)
            lines.append(text)
        return None


def prompt(request: AgentRequest) -> str:
    """The text to show: the messages since the last answer, without control characters, and how to answer."""
    where = " ".join(f"{name}={value}" for name, value in sorted(request.metadata.items()))
    shown = [f"\n===== {where or 'request'} =====", *(_shown(message) for message in _new(request.messages))]
    if request.tools:
        shown.append("[tools: " + ", ".join(tool.name for tool in request.tools) + "]")
    text = "\n".join([*shown, f'----- your answer, then a line with only "{END}":'])
    return _CONTROL.sub("�", text) + "\n"


def _new(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    last = max((index for index, message in enumerate(messages) if message.role == "assistant"), default=-1)
    return messages[last + 1 :]


def _shown(message: Message) -> str:
    return f"[{message.role}]\n{message.content}"
