"""Asks the host model, once for each prompt: what it said is kept, and its failures are faults."""

import re
from collections.abc import Sequence

from pydantic import JsonValue

from proctor.environment import EnvironmentFault
from proctor.http.client import AnyClient
from proctor.llm import CachedModel, ChatConfig, NoReadableReply, Question, Replies
from proctor.types import Message

TRIES = 4
"""Requests for one answer, where the model refuses or says nothing: the first and three more."""
_REFUSAL = re.compile(
    r"(?:I['’]m |I am )?(?:very |so )?sorry\b|(?:I['’]m |I am )?unable to (?:assist|help|answer|comply|continue)"
    r"|I (?:can['’]t|can ?not|won['’]t) (?:assist|help|answer|comply|continue|provide|discuss)|As an AI\b"
    r"|(?:很|非常)?(?:抱歉|对不起)|我(?:无法|不能)(?:回答|提供|协助|继续)|作为一?个?(?:AI|人工智能)",
    re.IGNORECASE,
)


_REMINDER = "Please answer what was asked, in the form that was asked for. 请按要求的格式回答上面的问题。"


SAMPLING: dict[str, JsonValue] = {"temperature": 0}
"""Of requests to the host model, below what its own sampling says."""


class PuzzleJudge:
    """The host model behind its endpoint, at temperature 0 unless its sampling says otherwise."""

    def __init__(self, config: ChatConfig, client: AnyClient, replies: Replies) -> None:
        self._model = CachedModel("host model", config, client, replies, SAMPLING)

    async def ask(self, messages: Sequence[Message]) -> str:
        """The model's reply to a prompt, stripped. Raises EnvironmentFault where none can be had."""
        try:
            return (await self._model.ask(Question(tuple(messages), _said, lambda problem: _REMINDER, TRIES))).meaning
        except NoReadableReply as error:
            raise EnvironmentFault(str(error)) from error


def _said(text: str) -> str:
    text = text.strip()
    if not text or _REFUSAL.match(text):
        raise ValueError(f"it said {text[:200]!r}" if text else "it said nothing")
    return text
