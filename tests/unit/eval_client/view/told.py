"""Reads a report's page as a browser would, and makes the stores that reports are of."""

from html.parser import HTMLParser
from pathlib import Path

import sqlalchemy as sa

from eval_client.store.store import Store
from eval_client.store.tables import attempt_table, trial_table, turn_table
from proctor.types import Action, Finish, FinishReason, Message, Observation
from task_server.wire.messages import Act
from tests.unit.eval_client.report.compare.stored import Grades, stored_run

GRADES: dict[str, dict[str, Grades]] = {
    "gpt": {"os": [1.0, 1.0, 0.0, 1.0, None, 1.0, 1.0], "db": [1.0, 0.5, 0.25, 1.0, 0.0, 0.75, 1.0]},
    "naive": {"os": [0.0, 1.0, 0.0, 0.0, 0.0, None, 0.0], "db": [0.0, 0.5, 0.0, 0.0, 0.0, 0.25, 0.0]},
}
CAUSE = "GET https://inner.example.org:8443/v1 from /home/somebody/data on worker-77.local: canary-of-cause"
ENDPOINT = "https://inner.example.org:8443/v1"
PLAN = {
    "endpoints": [{"name": "mine", "base_url": ENDPOINT, "api_key_env": "NAME_OF_A_KEY"}],
    "agents": [
        {
            "name": "gpt",
            "endpoint": "mine",
            "model": "/home/somebody/models/gpt-7",
            "sampling": {"temperature": 0.5, "max_tokens": 99, "stop": ["canary-of-stop"]},
            "price": {"input": 2.0, "output": 10.0},
        },
        {"name": "naive", "builtin": "naive"},
    ],
    "tasks": [
        {"name": "os", "environment": "os", "parameters": {"scripts": "/home/somebody/canary-of-parameters"}},
        {"name": "db", "environment": "db", "data": "/home/somebody/canary-of-data.jsonl"},
    ],
}
HIDDEN = ("inner.example.org", "somebody", "NAME_OF_A_KEY", "worker-77", "canary-of", "8443")
"""What no report holds unless it shows whole trials."""
SAID = ("canary-of-prompt", "canary-of-answer", "canary-of-gold")


def told_run(folder: Path) -> Store:
    """A run of two agents and two tasks that has something to hide in every place."""
    store = stored_run(folder, "told", GRADES, plan=PLAN, environments={"os": "os", "db": "db"})
    observation = Observation(messages=(Message(role="user", content="canary-of-prompt <b>&amp;</b> \x1b\u202e"),))
    turn = {"run": "told", "journal": 0, "turn": 1, "digest": "d", "observation": observation.model_dump_json()}
    turn |= {"reply": Act(action=Action(content="canary-of-answer")).model_dump_json()}
    turn |= {"prompt_tokens": 10, "completion_tokens": 5, "model_seconds": 0.5, "tries": 1}
    attempt = {"run": "told", "number": 1, "journal": 0, "session": "s", "worker": "http://worker-77.local:7401"}
    attempt |= {"started_at": "2026-11-20T10:00:00+00:00", "outcome": "finished", "cause": CAUSE}
    t = trial_table.c
    with store.engine.begin() as connection:
        rows = connection.execute(sa.select(t.id, t.score).order_by(t.id)).all()
        for number, score in rows:
            finish = ended(score)
            connection.execute(
                trial_table.update()
                .where(t.id == number)
                .values(
                    sample=sa.literal("canary-sample-") + t.sample,
                    reason=finish.reason.value,
                    finish=finish.model_dump_json(),
                    cause=CAUSE if score is None else None,
                    turns=1 + number % 5,
                    prompt_tokens=1000 * (number + 1),
                    completion_tokens=100,
                    seconds=1.5,
                    ended_at=f"2026-11-20T10:{59 - number:02d}:00+00:00",
                )
            )
            connection.execute(attempt_table.insert(), {**attempt, "trial": number})
            connection.execute(turn_table.insert(), {**turn, "trial": number})
    return store


def ended(score: float | None) -> Finish:
    """How a trial ended that got a score, or none."""
    if score is None:
        return Finish.fault(FinishReason.TASK_ERROR, CAUSE)
    reason = FinishReason.COMPLETED if score else FinishReason.TURN_LIMIT
    return Finish(reason=reason, score=score, detail={"type": "INSERT", "right": "canary-of-gold"})


class Page(HTMLParser):
    """The tables of a page by their captions, its elements and its style."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: list[tuple[str, list[list[str]]]] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.style = ""
        self.text = ""
        self._inside = ""
        self._in_cell = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keeps tables and their rows."""
        attributes = dict(attrs)
        self.elements.append((tag, attributes))
        self._inside = tag
        if attributes.get("role") == "region":
            self.tables.append((attributes.get("aria-label") or "", []))
        elif tag == "tr":
            self.tables[-1][1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][1][-1].append("")
            self._in_cell = True

    def handle_data(self, data: str) -> None:
        """Keeps the texts of cells."""
        if self._inside == "style":
            self.style += data
            return
        self.text += data
        if self._in_cell:
            self.tables[-1][1][-1][-1] += data.strip("\n")

    def handle_endtag(self, tag: str) -> None:
        """Leaves a cell."""
        self._inside = ""
        self._in_cell = self._in_cell and tag not in ("td", "th")

    def table(self, caption: str) -> list[list[str]]:
        """The rows of the first table of this caption, with its header; a colon ends a caption."""
        return next(rows for name, rows in self.tables if name.partition(":")[0] == caption.partition(":")[0] and rows)
