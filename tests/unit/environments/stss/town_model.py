"""A scripted model at an OpenAI-compatible endpoint, for the people of the town and for judges."""

import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from proctor.llm.config import ChatConfig
from tests.support import serving


class Model(ThreadingHTTPServer):
    """An OpenAI-compatible model that answers by a function of the last message; keeps what it was asked."""

    def __init__(self) -> None:
        self.says: Callable[[str], str] = agreeable
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def config(self) -> ChatConfig:
        return ChatConfig(model="town", base_url=f"http://127.0.0.1:{self.server_port}/v1", max_tries=1)


class Handler(BaseHTTPRequestHandler):
    """One request; the answer goes out in one packet, since a second one would wait for the first one's receipt."""

    wbufsize = -1

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        model = self.server
        assert isinstance(model, Model)
        model.asked.append(json.dumps(body["messages"]))
        content = model.says(body["messages"][-1]["content"])
        choice = {"message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
        answer = json.dumps({"choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        """Silence."""


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
