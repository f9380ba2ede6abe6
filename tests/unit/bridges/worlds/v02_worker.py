"""A double of AgentBench v0.2's worker with the toy task of the captures, and of its controller in front of it.

`test_agentbench_v02.py` holds it to the captured replies.
"""

from collections.abc import Awaitable, Callable, Generator
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

INDICES = [0, 1, 2, 3, "four", 5]
End = tuple[str, Any]
Play = Generator[None, dict[str, Any], End]
LONG = "word " * 4000
NOTICE = "\n\n[NOTICE] 2 messages are omitted."


def play(index: int | str, history: list[dict[str, str]]) -> Play:
    """The toy task: yields where it waits for the agent."""
    history += [user("Add the numbers. Reply `Answer: N`."), agent("OK")]
    if index == 3:
        raise ValueError("the sample is broken")
    for n in range(3):
        asked = f"What is {index}+{n}?" if n == 0 else "Wrong, try again. Emoji ✓ é"
        history.append(user(LONG if index == 5 and n == 0 else asked))
        response = yield
        if response["status"] == "agent context limit":
            return "agent context limit", {"score": 0}
        text = response["content"] or ""
        history.append(agent(text))
        if "boom" in text:
            raise RuntimeError("boom")
        if "Answer:" not in text:
            if index == 1:
                return "agent validation failed", {"score": 0}
            continue
        if text.split("Answer:")[1].strip() == str(index) or index in ("four", 5):
            return "completed", {"score": 1, "answer": text}
    return "task limit reached", {"score": 0}


def user(content: str) -> dict[str, str]:
    return {"role": "user", "content": content}


def agent(content: str) -> dict[str, str]:
    return {"role": "agent", "content": content}


class V02Worker:
    """The app: `/api` of a worker, or of a controller with this one worker."""

    def __init__(self, slots: int = 3, *, controller: bool = False) -> None:
        self.slots, self.controller = slots, controller
        self.live: dict[int, tuple[int | str, list[dict[str, str]], Play]] = {}
        self.requests: list[tuple[str, Any]] = []
        self.garbled: Callable[[], Awaitable[Response]] | None = None
        """Answers the starts in the worker's place, which have begun their sessions."""
        self._next = 0
        routes = [
            Route("/api/get_indices", self._indices),
            Route("/api/start_sample", self._start, methods=["POST"]),
            Route("/api/interact", self._interact, methods=["POST"]),
            Route("/api/cancel", self._cancel, methods=["POST"]),
        ]
        self.app = Starlette(routes=routes)

    async def _indices(self, request: Request) -> Response:
        if self.controller and request.query_params.get("name") != "toy-std":
            return JSONResponse({"detail": "Error: Task does not exist"}, 400)
        return JSONResponse(INDICES)

    async def _start(self, request: Request) -> Response:
        asked = await self._body(request)
        if self.controller:
            assert set(asked) == {"name", "index"}
            asked["session_id"], self._next = self._next, self._next + 1
        if len(self.live) >= self.slots:
            return JSONResponse({"detail": f"Sample concurrency limit reached: {self.slots}"}, 406)
        history: list[dict[str, str]] = []
        self.live[asked["session_id"]] = (asked["index"], history, play(asked["index"], history))
        stands = self._went_on(asked["session_id"], None)
        return JSONResponse(stands) if self.garbled is None else await self.garbled()

    async def _interact(self, request: Request) -> Response:
        asked = await self._body(request)
        if asked["session_id"] not in self.live:
            return JSONResponse({"detail": "No such session"}, 400)
        answer = self._went_on(asked["session_id"], asked["agent_response"])
        if answer["output"]["status"] == "task error":
            return JSONResponse({"detail": answer}, 501)
        return JSONResponse(answer)

    async def _cancel(self, request: Request) -> Response:
        asked = await self._body(request)
        if self.live.pop(asked["session_id"], None) is None:
            return JSONResponse({"detail": "No such session"}, 400)
        return JSONResponse({"session_id": asked["session_id"]})

    async def _body(self, request: Request) -> Any:
        body = await request.json()
        self.requests.append((request.url.path.removeprefix("/api/"), body))
        return dict(body)

    def _went_on(self, session: int, response: dict[str, Any] | None) -> dict[str, Any]:
        index, history, playing = self.live[session]
        output: dict[str, Any] = {"index": None, "status": "running", "result": None, "history": shortened(history)}
        try:
            playing.send(response)  # type: ignore[arg-type]  # None begins a generator
            output["history"] = shortened(history)
        except StopIteration as stop:
            status, result = stop.value
            output = {"index": index, "status": status, "result": result, "history": history}
        except (ValueError, RuntimeError) as error:
            trace = f"Traceback (most recent call last):\n{type(error).__name__}: {error}\n"
            output = {"index": index, "status": "task error", "result": trace, "history": history}
        if output["status"] != "running":
            del self.live[session]
        return {"session_id": session, "output": output}


def shortened(history: list[dict[str, str]]) -> list[dict[str, str]]:
    """What v0.2 shows of a history with a very long text."""
    if not history or history[-1]["content"] != LONG:
        return list(history)
    return [user(history[0]["content"] + NOTICE)]
