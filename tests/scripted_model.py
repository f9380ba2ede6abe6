"""A scripted model at an OpenAI-compatible endpoint."""

import contextlib
import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = str | int | None
"""The text of a completion, a status that is an error, or None: the request is dropped."""


class ScriptedModel(ThreadingHTTPServer):
    """Answers a request's body by a function of it; `answered` are the bodies that got a completion, in order."""

    daemon_threads = True

    served: str | None = None
    """The model's name in replies; None: as it was asked for."""

    def __init__(self, answer: Callable[[dict[str, Any]], Reply], *, prompt: int = 100, completion: int = 10) -> None:
        self.answer, self.usage = answer, {"prompt_tokens": prompt, "completion_tokens": completion}
        self.answered: list[str] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Handler(BaseHTTPRequestHandler):
    """One request; the answer goes out in one packet, since a second one would wait for the first one's receipt."""

    wbufsize = -1
    server: ScriptedModel

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        request = json.loads(body)
        reply = self.server.answer(request)
        if reply is None:
            return
        if isinstance(reply, str):
            self.server.answered.append(body)
        choice = {"index": 0, "message": {"role": "assistant", "content": reply}, "finish_reason": "stop"}
        answer = json.dumps(
            {"choices": [choice], "usage": self.server.usage, "model": self.server.served or request["model"]}
        ).encode()
        with contextlib.suppress(ConnectionError):  # of a client that was killed
            self.send_response(200 if isinstance(reply, str) else reply)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        """Silence."""
