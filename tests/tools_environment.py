"""An installed environment that is played by function calls: walk from door to door. For whole runs with tools."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from proctor.environment import Agent, Environment, Policy
from proctor.types import Action, Finish, FinishReason, Message, Observation, Tool, ToolCall

NAME = "doors"
ENTRY_POINT = f"[proctor.environments]\n{NAME} = tests.tools_environment:Doors\n"
NO_CALL = "Answer with a function call."
TOOLS = (
    Tool(
        name="open_door",
        description="Opens the door of this number, and says what is behind it.",
        parameters={
            "type": "object",
            "properties": {"door": {"type": "string", "description": "The number that was last told."}},
            "required": ["door"],
            "additionalProperties": False,
        },
    ),
    Tool(name="leave", description="Ends the walk.", parameters={"type": "object", "properties": {}}),
)


def write_distribution(folder: Path) -> None:
    """The metadata of an installed package with this environment, for any interpreter with the folder on its path."""
    info = folder / "toy_doors-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-doors\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINT)


def behind(door: str) -> str:
    """The number behind a door."""
    return hashlib.blake2b(door.encode(), digest_size=4).hexdigest()


def opened(door: str) -> ToolCall:
    """The call that opens a door."""
    return ToolCall(id="", name="open_door", arguments=json.dumps({"door": door}))


class Doors(Environment):
    """The agent opens the door whose number it was told last; the score is the share of right doors.

    In `text` a reply is the number alone.
    """

    turns: int = 4
    count: int = 4
    protocol: Literal["text", "tools"] = "tools"

    def samples(self) -> Sequence[str]:
        return tuple(f"s{number}" for number in range(self.count))

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        told, right = behind(sample), 0
        told_first = f"Sample {sample}. The first door is {told}."
        news: tuple[Message, ...] = (
            Message(role="system", content="You walk from door to door."),
            Message(role="user", content=told_first),
        )
        tools = TOOLS if self.protocol == "tools" else ()
        for _ in range(self.turns):
            action = await agent.act(Observation(messages=news, tools=tools))
            opens = [self._door(call) for call in action.tool_calls] if tools else [action.content]
            right += opens[:1] == [told]
            told = behind(told)
            news = tuple(
                Message(role="tool", content=f"Behind it is {told}.", tool_call_id=call.id)
                for call in action.tool_calls
            ) or (Message(role="user", content=f"{NO_CALL if tools else ''} The next door is {told}."),)
        return Finish(reason=FinishReason.COMPLETED, score=right / self.turns, detail={"last": told})

    def _door(self, call: ToolCall) -> str:
        try:
            return str(json.loads(call.arguments)["door"]) if call.name == TOOLS[0].name else "none"
        except (ValueError, LookupError, TypeError):
            return "none"

    def reference(self, sample: str, seed: int = 0) -> Policy:
        def policy(conversation: str, messages: Sequence[Message]) -> Action:
            door = messages[-1].content.rstrip(".").split()[-1]
            return Action(content="", tool_calls=(opened(door),)) if self.protocol == "tools" else Action(content=door)

        return policy
