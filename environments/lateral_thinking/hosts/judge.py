"""Asks the host model, once for each prompt: its replies are cached, and its failures are faults."""

import re
from collections.abc import Sequence

from pydantic import JsonValue

from environments.lateral_thinking.host import Profile
from proctor.environment import EnvironmentFault
from proctor.http.client import HttpClient
from proctor.llm.cached_model import CachedModel, NoReadableReply, Question, Replies
from proctor.llm.config import ChatConfig
from proctor.session.thoughts import without_thought
from proctor.types import Message

TRIES = 4
"""The most requests for one answer, where the model refuses or sends an empty reply."""
_REFUSAL = re.compile(
    r"(?:I['’]m |I am )?(?:very |so )?sorry\b|(?:I['’]m |I am )?unable to (?:assist|help|answer|comply|continue)"
    r"|I (?:can['’]t|can ?not|won['’]t) (?:assist|help|answer|comply|continue|provide|discuss)|As an AI\b"
    r"|(?:很|非常)?(?:抱歉|对不起)|我(?:无法|不能)(?:回答|提供|协助|继续)|作为一?个?(?:AI|人工智能)",
    re.IGNORECASE,
)


_REMINDER = "Please answer what was asked, in the form that was asked for. 请按要求的格式回答上面的问题。"


SAMPLING: dict[str, JsonValue] = {"temperature": 0}
"""The default sampling of requests to the host model; the sampling in its configuration takes precedence."""


class PuzzleJudge:
    """The host model behind its endpoint, at temperature 0 unless its configuration sets another."""

    def __init__(self, config: ChatConfig, client: HttpClient, replies: Replies) -> None:
        self._model = CachedModel("host model", config, client, replies, SAMPLING)

    async def ask(self, messages: Sequence[Message], profile: Profile) -> str:
        """The model's reply to a prompt, stripped, in `strict` without thoughts.

        Raises EnvironmentFault where there is no usable one.
        """
        read = _usable if profile == "compat" else _usable_without_thought
        try:
            return (await self._model.ask(Question(tuple(messages), read, lambda problem: _REMINDER, TRIES))).meaning
        except NoReadableReply as error:
            raise EnvironmentFault(str(error)) from error


def _usable(text: str) -> str:
    """The reply, stripped. Raises ValueError for an empty one and for a refusal."""
    text = text.strip()
    if not text or _REFUSAL.match(text):
        raise ValueError(f"it replied {text[:200]!r}" if text else "it sent an empty reply")
    return text


def _usable_without_thought(text: str) -> str:
    return _usable(without_thought(text))
