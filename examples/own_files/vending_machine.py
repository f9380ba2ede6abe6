"""A world with functions and state: the agent buys what is asked for, for no more coins than it has."""

import json
from collections.abc import Sequence

from proctor import (
    Action,
    Agent,
    Environment,
    Finish,
    FinishReason,
    Message,
    Observation,
    Policy,
    Tool,
    ToolCall,
    asked_and_answered,
)

PRICES = {"apple": 2, "nut": 1, "tea": 3}
TOOLS = (
    Tool(name="buy", description="Buys one piece.", parameters={"type": "object", "properties": {"what": {}}}),
    Tool(name="leave", description="Ends the visit.", parameters={"type": "object", "properties": {}}),
)


class VendingMachine(Environment):
    """Buy what is asked for and leave; the score is 1 if that, and nothing else, was bought."""

    coins: int = 3
    moves: int = 5
    protocol: str = "tools"

    def samples(self) -> Sequence[str]:
        return [name for name, price in PRICES.items() if price <= self.coins]

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        coins, bought = self.coins, list[str]()
        told = [Message(role="user", content=f"You have {coins} coins. Buy one {sample}, then leave. {PRICES}")]
        for _ in range(self.moves):
            action = await agent.act(Observation(messages=tuple(told), tools=TOOLS))
            if not action.tool_calls:
                return Finish(reason=FinishReason.INVALID_FORMAT, score=0.0)
            told = []
            for call in action.tool_calls:  # each has one answer
                what = self._bought(call) if call.name == "buy" else None
                if what is not None and PRICES[what] <= coins:
                    coins -= PRICES[what]
                    bought.append(what)
                answer = f"You have {coins} coins and bought: {', '.join(bought) or 'nothing'}."
                told.append(Message(role="tool", content=answer, tool_call_id=call.id))
            if any(call.name == "leave" for call in action.tool_calls):
                words = asked_and_answered(f"one {sample}", sample, ", ".join(bought) or "nothing")
                return Finish(reason=FinishReason.COMPLETED, score=float(bought == [sample]), detail=words)
        return Finish(reason=FinishReason.TURN_LIMIT, score=0.0)

    def reference(self, sample: str, seed: int = 0) -> Policy:
        buy = ToolCall(id="1", name="buy", arguments=json.dumps({"what": sample}))
        leave = ToolCall(id="2", name="leave", arguments="{}")
        return lambda conversation, transcript: Action(content="", tool_calls=(leave if len(transcript) > 1 else buy,))

    def _bought(self, call: ToolCall) -> str | None:
        """What a call buys; None where its arguments make no sense, which is the agent's doing and no fault."""
        try:
            arguments = json.loads(call.arguments)
        except (ValueError, RecursionError):
            return None
        what = arguments.get("what") if isinstance(arguments, dict) else None
        return what if isinstance(what, str) and what in PRICES else None
