"""An agent with memory: it buys once in each conversation, of which it keeps nothing but that.

In a plan: {name: shopper, function: ./shopper.py:Shopper}, with the task ./vending_machine.py
"""

import json
import re
from collections.abc import Sequence

from proctor import Action, Message, Tool, ToolCall


class Shopper:
    """Made once for a run or a server; plays many conversations at once."""

    stateful = True

    def __init__(self) -> None:
        self.served = set[str]()

    async def answer(self, messages: Sequence[Message], tools: Sequence[Tool], conversation: str) -> Action:
        """Buys what the first message asks for, then leaves."""
        if conversation in self.served:
            return Action(content="", tool_calls=(ToolCall(id="leave", name="leave", arguments="{}"),))
        self.served.add(conversation)
        wanted = re.search(r"Buy one (\w+)", messages[0].content)
        arguments = json.dumps({"what": wanted[1] if wanted else ""})
        return Action(content="", tool_calls=(ToolCall(id="buy", name="buy", arguments=arguments),))

    def end(self, conversation: str) -> None:
        """The conversation is over, however it ended."""
        self.served.discard(conversation)
