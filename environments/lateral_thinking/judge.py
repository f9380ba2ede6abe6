"""Asks the host model, once for each prompt: what it said is kept, and its failures are faults."""

import asyncio
import re
from collections.abc import Sequence

from pydantic import JsonValue

from environments.base import AgentStopped, AgentUnavailable, EnvironmentFault
from environments.chat import ChatConfig, ChatModel, Completion, Replies, Reply, key_of
from environments.http import AnyClient
from environments.types import Message

TRIES = 4
"""Requests for one answer, where the model refuses or says nothing: the first and three more."""
_REFUSAL = re.compile(
    r"(?:I['’]m |I am )?(?:very |so )?sorry\b|(?:I['’]m |I am )?unable to (?:assist|help|answer|comply|continue)"
    r"|I (?:can['’]t|can ?not|won['’]t) (?:assist|help|answer|comply|continue|provide|discuss)|As an AI\b"
    r"|(?:很|非常)?(?:抱歉|对不起)|我(?:无法|不能)(?:回答|提供|协助|继续)|作为一?个?(?:AI|人工智能)",
    re.IGNORECASE,
)


class Judge:
    """The host model behind its endpoint, at temperature 0 unless its sampling says otherwise."""

    def __init__(self, config: ChatConfig, client: AnyClient, replies: Replies) -> None:
        self._config = config
        self._model = ChatModel(config, client)
        self._replies = replies
        self._sampling: dict[str, JsonValue] = {"temperature": 0, **config.sampling}

    async def ask(self, messages: Sequence[Message]) -> str:
        """The model's reply to a prompt, stripped. Raises EnvironmentFault where none can be had."""
        key = key_of(self._config.model, self._sampling, tuple(messages))
        async with self._replies.locked(key):
            kept = self._replies.get(key)
            return kept.text if kept is not None else await self._buy(key, messages)

    async def _buy(self, key: str, messages: Sequence[Message]) -> str:
        said = "nothing"
        for _ in range(TRIES):
            completion = await self._complete(messages)
            text = completion.action.content.strip()
            if text and completion.stop != "content_filter" and not _REFUSAL.match(text):
                reply = Reply.of(completion).model_copy(update={"text": text})
                return (await asyncio.to_thread(self._replies.keep, key, reply)).text
            said = repr(text[:200]) if text else "nothing"
        raise EnvironmentFault(f"the host model {self._config.model} gave no answer in {TRIES} tries; it said {said}")

    async def _complete(self, messages: Sequence[Message]) -> Completion:
        try:
            return await self._model.complete(messages, sampling=self._sampling)
        except (AgentUnavailable, AgentStopped) as error:
            raise EnvironmentFault(f"the host model {self._config.model} failed: {error}") from error
