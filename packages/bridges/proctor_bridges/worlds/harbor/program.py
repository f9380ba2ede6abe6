"""A coding agent in a task's container: what client and worker tell each other of it, as the texts of turns."""

import base64
import zlib
from contextlib import suppress
from typing import Annotated, Literal, Self

from pydantic import Base64Bytes, Field, ValidationError
from pydantic_core import to_json

from proctor.llm.dialects import DialectName
from proctor.types import Action, Message, Observation, ToolCall, Value

CALL = "run_installed_agent"
"""The call by which a client begins it; no model is offered this function."""
REQUESTS, ENDED = "requests", "ended"
"""The conversations that its requests come in, and its end."""
RELAY_IMAGE = "proctor-os:latest"
"""That of the environment `os`."""
LOG_BYTES = 256 << 10
"""Of what it prints, so much is kept."""


Feature = Literal["anthropic-version", "anthropic-beta", "openai-beta"]
"""Headers that say which features of a dialect a request uses."""


class Told(Value):
    """What one side tells the other."""

    def observation(self, conversation: str) -> Observation:
        """As the worker tells it."""
        told = Message(role="user", content=self.model_dump_json())
        return Observation(messages=(told,), conversation=conversation)

    @classmethod
    def of(cls, observation: Observation) -> Self:
        """As the client reads it. Raises ValidationError."""
        return cls.model_validate_json(observation.messages[-1].content)


class Program(Told):
    """What to install and to run; the client's first answer."""

    command: tuple[str, ...] = Field(min_length=1)
    install: str = ""
    model: str
    dialect: DialectName
    session: str = Field(min_length=1)
    """The session's id, which no model is told: so none can begin a program in place of its client."""

    def action(self) -> Action:
        """As the client tells it."""
        return Action(content="", tool_calls=(ToolCall(id="run", name=CALL, arguments=self.model_dump_json()),))

    @classmethod
    def begun_by(cls, action: Action, session: str | None) -> "Program | None":
        """The program that the client of a session begins by an answer; None where it is another answer."""
        for call in action.tool_calls:
            with suppress(ValidationError):
                if call.name == CALL and (program := cls.model_validate_json(call.arguments)).session == session:
                    return program
        return None


class Asked(Told):
    """A request of the program."""

    headers: dict[Feature, Annotated[str, Field(pattern="^[ -~]{1,1000}$")]]
    body: str


class RelayReply(Told):
    """The answer to a request."""

    status: int
    type: str
    packed: Base64Bytes
    """The body, compressed: streams are long."""
    waited_s: float = 0.0
    """How long the request waited for limits, or for an endpoint that was down: that is none of the program's time."""

    @classmethod
    def made(cls, status: int, kind: str, body: bytes) -> "RelayReply":
        """A reply with this body."""
        return cls(status=status, type=kind, packed=base64.b64encode(zlib.compress(body)))

    def response(self) -> bytes:
        """The whole response, as HTTP has it."""
        body = zlib.decompress(self.packed)
        head = f"HTTP/1.1 {self.status} -\r\nContent-Type: {self.type}\r\nContent-Length: {len(body)}\r\n"
        return head.encode("ascii", "replace") + b"Connection: close\r\n\r\n" + body


class ProgramEnd(Told):
    """How a run of the program ended, and what it printed."""

    status: int
    late: bool
    log: str
    refused: str = ""
    """Why its last request was refused that did not go to the endpoint."""


def refusal(why: str, status: int = 400) -> RelayReply:
    """An error that says why, as every dialect has it."""
    error = {"type": "invalid_request_error", "code": "invalid_request", "message": why}
    return RelayReply.made(status, "application/json", to_json({"type": "error", "error": error}))
