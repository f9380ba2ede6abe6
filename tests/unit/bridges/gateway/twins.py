"""Environments that say what the toy tasks of the captures say."""

import json
from collections.abc import Sequence

from proctor.environment import Agent, ContextLimitExceeded, Environment
from proctor.types import Finish, FinishReason, Message, Observation, Summary, Tool


def said(*texts: str) -> Observation:
    """User messages, with the agent's between them."""
    roles = ("user", "assistant")
    return Observation(messages=tuple(Message(role=roles[n % 2], content=text) for n, text in enumerate(texts)))


class Sums(Environment):
    """The toy task of the captures of v0.2: the answer to each sum is the sample."""

    def samples(self) -> Sequence[str]:
        return ("0", "1", "2", "3", "four", "5")

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        if sample == "3":
            raise ValueError("the sample is broken")
        first = "word " * 4000 if sample == "5" else f"What is {sample}+0?"
        observation = said("Add the numbers. Reply `Answer: N`.", "OK", first)
        for _ in range(3):
            try:
                text = (await agent.act(observation)).content
            except ContextLimitExceeded:
                return Finish(reason=FinishReason.CONTEXT_LIMIT, score=0.0)
            if "boom" in text:
                raise RuntimeError("boom")
            if "Answer:" not in text and sample == "1":
                return Finish(reason=FinishReason.INVALID_FORMAT, score=0.0)
            answer = text.partition("Answer:")[2].strip()
            if answer and (answer == sample or sample in ("four", "5")):
                return Finish(reason=FinishReason.COMPLETED, score=1.0, detail={"answer": text})
            observation = said("Wrong, try again. Emoji ✓ é")
        return Finish(reason=FinishReason.TURN_LIMIT, score=0.0)

    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        scores = [finish.score for finish in finishes if finish.score is not None]
        return Summary(primary="mean", metrics={"mean": sum(scores) / len(scores), "n": len(finishes)})


class Ids(Environment):
    """Samples whose ids read as numbers, and others; the score is 1 for the right id."""

    ids: tuple[str, ...] = ("0", "7", "007", "+1", "four", "a/b", "id:7", "-0", "1_0", " 8 ", "-3")

    def samples(self) -> Sequence[str]:
        return self.ids

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        action = await agent.act(said(f"I am {sample!r}"))
        return Finish(reason=FinishReason.COMPLETED, score=float(action.content == sample))


class Calls(Environment):
    """Is played by function calls."""

    protocol: str = "tools"

    def samples(self) -> Sequence[str]:
        return ("a",)

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        raise NotImplementedError


SAY = Tool(
    name="say",
    description="Say a number.",
    parameters={
        "type": "object",
        "properties": {"n": {"type": "string"}},
        "required": ["n"],
        "additionalProperties": False,
    },
)


class Say(Environment):
    """The toy task of the captures of AgentRL: the agent has to call a function with the sample."""

    protocol: str = "tools"

    def samples(self) -> Sequence[str]:
        return ("0", "1", "2")

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        if sample == "2":
            raise ValueError("broken sample")
        opening = (Message(role="system", content="Use the tool."), Message(role="user", content=f"Say {sample}"))
        observation = Observation(messages=opening, tools=(SAY,))
        for turn in range(3):
            action = await agent.act(observation)
            if not action.tool_calls:
                told = Message(role="user", content="No tool call.")
            else:
                call, *_ = action.tool_calls
                if json.loads(call.arguments).get("n") == sample:
                    return Finish(reason=FinishReason.COMPLETED, score=1.0, metrics={"turns": turn + 1})
                told = Message(role="tool", tool_call_id=call.id, content="wrong")
            observation = Observation(messages=(told,), tools=(SAY,))
        return Finish(reason=FinishReason.TURN_LIMIT, score=0.0)


class Fresh(Environment):
    """Begins its history anew at the second turn, and talks in another conversation at the third."""

    def samples(self) -> Sequence[str]:
        return ("a",)

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        await agent.act(said("one"))
        await agent.act(said("two").model_copy(update={"fresh": True}))
        await agent.act(said("three").model_copy(update={"conversation": "other"}))
        await agent.act(said("four"))
        raise ContextLimitExceeded
