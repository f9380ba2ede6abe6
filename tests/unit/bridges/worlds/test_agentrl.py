"""Tasks of AgentRL, played against a double that answers what was captured from its worker."""

import math
from collections.abc import Sequence
from typing import Any, Literal

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from proctor.environment import Agent, AgentStopped, EnvironmentFault
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.types import Action, Finish, FinishReason, Message, Observation, ToolCall
from proctor_bridges.worlds.agentrl import AgentRL, EnvOutput, observation, output_of
from tests.support import SHARED_DATA
from tests.unit.bridges.gateway.world import lines
from tests.unit.bridges.worlds.served import served

CAPTURE = SHARED_DATA / "interop" / "agentrl" / "toy.jsonl"
pytestmark = pytest.mark.shared


class Replayed:
    """Answers the captured requests of one hop, in their order, and only those."""

    def __init__(self, hop: str, first: int, last: int) -> None:
        captured = [line for line in lines(CAPTURE) if line["hop"].startswith(hop)]
        self.rest = [line for line in captured if line["request"] is not None or "cancel" in line["path"]][first:last]
        self.wrong: list[Any] = []
        posts = ("start_sample", "interact", "cancel")
        routes = [Route(f"/api/{path}", self._answer, methods=["POST"]) for path in posts]
        self.app = Starlette(routes=[Route("/api/get_indices", self._indices), *routes])

    async def _indices(self, _: Request) -> Response:
        return JSONResponse([0, 1, 2])

    async def _answer(self, request: Request) -> Response:
        body: Any = await request.json() if await request.body() else None
        line = self.rest.pop(0)
        wanted = {**line["request"]} if line["request"] else line["request"]
        if wanted and "session_id" in wanted:  # we choose another number
            assert (body["session_id"] > 0) is True
            wanted["session_id"] = body["session_id"]
        if (request.url.path, body) != (line["path"], wanted):
            self.wrong.append((request.url.path, body, line["path"], wanted))
        if named := line["headers"].get("session_id"):
            assert request.headers["session_id"] == named
        return JSONResponse(line["response"], line["status"], line["response_headers"])


def says(*actions: Action) -> Agent:
    rest = list(actions)
    return PolicyAgent(lambda conversation, transcript: rest.pop(0))


def call(n: str) -> Action:
    return Action(content="", tool_calls=(ToolCall(id="call_0", name="say", arguments=f'{{"n": "{n}"}}'),))


@pytest.fixture(params=["controller->worker", "client->controller"])
def hop(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def reached(hop: str, url: str) -> AgentRL:
    if hop == "client->controller":
        return AgentRL(url=f"{url}/api", task="toy-std")
    return AgentRL(workers=(f"{url}/api",))


Session = tuple[str, int, int, Sequence[Action], tuple[FinishReason, float | None]]
"""(sample, first and last captured request, what the agent says, reason and score)"""
SESSIONS: list[Session] = [
    ("0", 0, 4, [Action(content="hm"), call("5"), call("0")], (FinishReason.COMPLETED, 1.0)),
    ("1", 4, 8, [Action(content=each) for each in "abc"], (FinishReason.TURN_LIMIT, 0.0)),
    ("2", 8, 9, [], (FinishReason.TASK_ERROR, None)),
]


@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session[0])
async def test_the_captured_sessions_are_played(hop: str, session: Session) -> None:
    """Line 4, our client's side: the same requests, and the ends that they had."""
    sample, first, last, actions, wanted = session
    double = Replayed(hop, first, last)
    async with served(double.app) as url:
        environment = reached(hop, url)
        async with environment.lifespan():
            finish = await play_to_finish(environment, sample, says(*actions))
    assert (double.wrong, double.rest) == ([], [])
    assert (finish.reason, finish.score) == wanted


async def test_a_session_that_we_end_is_cancelled(hop: str) -> None:
    class Stops(Agent):
        async def act(self, observation: Observation) -> Action:
            raise AgentStopped(FinishReason.CONTEXT_LIMIT)

    double = Replayed(hop, 9, 11)
    async with served(double.app) as url:
        environment = reached(hop, url)
        async with environment.lifespan():
            finish = await play_to_finish(environment, "0", Stops())
    assert (double.wrong, double.rest) == ([], [])
    assert (finish.reason, finish.score) == (FinishReason.CONTEXT_LIMIT, 0.0)


def test_functions_and_a_new_history_reach_the_agent() -> None:
    started = next(line["response"] for line in lines(CAPTURE) if "start_sample" in line["path"])
    output = output_of(started)
    first, later = (observation(output, first=first) for first in (True, False))
    assert [(message.role, message.content) for message in first.messages] == [
        ("system", "Use the tool."),
        ("user", "Say 0"),
    ]
    assert first.tools[0].parameters["required"] == ["n"]
    assert (first.fresh, later.fresh) == (False, True)


@pytest.mark.parametrize(
    "message",
    [
        {"role": "wizard", "content": "x"},
        {"content": "x"},
        {"role": "user", "content": ["x"]},
        {"role": "assistant", "tool_calls": [{}]},
    ],
)
def test_a_message_that_can_not_be_read_is_a_fault(message: dict[str, Any]) -> None:
    with pytest.raises(EnvironmentFault):
        observation(EnvOutput(messages=(message,), status="running"), first=True)


def test_contents_in_parts_are_joined() -> None:
    parts = {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
    told = observation(EnvOutput(messages=(parts, {"role": "user", "content": None}), status="running"), first=True)
    assert told.messages == (Message(role="user", content="ab"), Message(role="user", content=""))


def ended(score: Literal["metrics.score", "reward"], **output: Any) -> Finish:
    environment = AgentRL(workers=("http://127.0.0.1:9/api",), score=score)
    return environment._finish(EnvOutput.model_validate({"status": "completed", "finish": True, **output}))


def test_measures_that_are_no_finite_numbers_are_left_out() -> None:
    metric = {"score": 1, "turns": 3, "won": True, "loss": math.nan, "long": 10**400, "name": "x"}
    finish = ended("metrics.score", metric=metric)
    assert (finish.score, finish.metrics) == (1.0, {"turns": 3.0, "won": 1.0})
    assert Finish.model_validate_json(finish.model_dump_json()) == finish


def test_an_end_without_its_reward_is_a_fault() -> None:
    assert ended("reward", reward=0.5).score == 0.5
    for status in ("completed", "task limit reached"):
        with pytest.raises(EnvironmentFault, match="/reward"):
            ended("reward", status=status, metrics={"score": 1})
