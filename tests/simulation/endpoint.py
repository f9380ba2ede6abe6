"""An OpenAI-compatible endpoint that answers by a function, in whatever mood it is."""

import asyncio
import json
import random
from collections.abc import Mapping
from enum import Enum

from tests.simulation.game import COMPLETION_TOKENS, LONG, PROMPT_TOKENS, answered
from tests.simulation.network import Reply, Request


class Mood(Enum):
    """How an endpoint behaves for a while."""

    WELL = "well"
    THROTTLING = "throttling"
    FAILING = "failing"
    BABBLING = "babbling"
    SILENT = "silent"


class Endpoint:
    """Answers every transcript with what the agent must answer to it, after some thought."""

    def __init__(self, rng: random.Random, longest_thought_s: float) -> None:
        self.mood = Mood.WELL
        self._rng = rng
        self._longest_thought_s = longest_thought_s

    async def __call__(self, request: Request) -> Reply:
        if self.mood is not Mood.WELL and self._rng.random() < 0.8:
            return await self._misbehave()
        if request.method == "GET":  # the list of models, by which a client looks whether an endpoint is back
            return _json(200, {"data": []})
        await asyncio.sleep(self._longest_thought_s * self._rng.random() ** 4)
        asked = json.loads(request.content)
        said = [message["content"] for message in asked["messages"]]
        if is_probe(asked):
            return _json(200, {"choices": [{"message": {"content": "x"}, "finish_reason": "length"}]})
        if asked["metadata"]["sample"] == LONG and len(said) > 1:
            return _json(400, {"error": {"code": "context_length_exceeded", "message": "too long"}})
        usage = {"prompt_tokens": PROMPT_TOKENS * len(said), "completion_tokens": COMPLETION_TOKENS}
        message = {"role": "assistant", "content": answered(asked["model"], said)}
        return _json(200, {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage})

    async def _misbehave(self) -> Reply:
        match self.mood:
            case Mood.THROTTLING:
                pause = (("retry-after", str(self._rng.randint(0, 3))),) if self._rng.random() < 0.5 else ()
                return _json(429, {"error": {"message": "slow down"}}, pause)
            case Mood.FAILING:
                return _json(self._rng.choice([500, 502, 503, 408]), {"error": {"message": "out of order"}})
            case Mood.BABBLING:
                return Reply(200, self._rng.choice([b"", b"<html>", b'{"choices": []}', b"null"]))
            case _:
                await asyncio.sleep(3600.0)
                return Reply(504, b"")


def is_probe(asked: Mapping[str, object]) -> bool:
    """Whether a request is no trial's, but asks for one token, to see whether the endpoint answers."""
    return "metadata" not in asked


def _json(status: int, body: object, headers: tuple[tuple[str, str], ...] = ()) -> Reply:
    return Reply(status, json.dumps(body).encode(), headers)
