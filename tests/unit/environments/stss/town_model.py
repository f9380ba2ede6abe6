"""A scripted model for the people of the town and for judges."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from proctor.llm.config import ChatConfig
from tests.scripted_model import ScriptedModel
from tests.support import serving


class Model(ScriptedModel):
    """Answers by a function of the last message; keeps the messages that it was asked."""

    def __init__(self) -> None:
        self.says: Callable[[str], str] = agreeable
        self.asked: list[str] = []
        super().__init__(self._answer)

    def _answer(self, body: dict[str, Any]) -> str:
        self.asked.append(json.dumps(body["messages"]))
        return self.says(body["messages"][-1]["content"])

    @property
    def config(self) -> ChatConfig:
        return ChatConfig(model="town", base_url=self.url, max_tries=1)


@pytest.fixture
def model() -> Iterator[Model]:
    with Model() as server, serving(server):
        yield server


def agreeable(asked: str) -> str:
    """Spends the day at the inn, never speaks first, and agrees to the party."""
    if "Plan the day" in asked:
        rows = [
            {"start": f"{h:02}:00", "end": f"{h:02}:50", "activity": "idling", "place": "Anchor Inn"}
            for h in range(8, 20)
        ]
        return json.dumps({"wake": "07:00", "bed": "23:00", "schedule": rows})
    if "speak first" in asked:
        return '{"talk": false}'
    if "agreed to do" in asked:
        times = {"start": "2023-02-14 19:00", "end": "2023-02-14 20:00"}
        return json.dumps({"commitments": [{"activity": "the birthday party", "place": "Anchor Inn"} | times]})
    if "remember of it" in asked:
        return json.dumps({"summary": "Ada Birch asked me: what: birthday party. I agreed."})
    return '{"utterance": "Yes, of course, see you on 2023-02-14 at 19:00!", "end": false}'
