"""A folder of runs with hostile texts, and a client of its viewer."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from eval_client.store.connection import connect, sqlite_url
from eval_client.store.journal import Cost, Journal
from eval_client.store.records import Manifest, TaskRecord, Trial, Turn
from eval_client.store.store import Store
from eval_client.view.access import ViewAccess
from eval_client.view.app import build_app
from eval_client.view.runs import FolderRuns
from proctor.config.tokens import AccessTokens
from proctor.types import Action, Finish, FinishReason, Message, Observation, Tool, ToolCall, Usage
from task_server.wire.messages import Act, Stop

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e{{7*7}}' onerror=\""
SAMPLES = ("std-0001", "a/b", "..", "%2e%2e", "a?b=c#d", "<b>", "漢" * 255, HOSTILE)
AGENTS = ("gpt", "naive", "idle")
PLAN = {
    "agents": [{"name": name, "model": "m"} for name in AGENTS],
    "tasks": [{"name": "riddles", "environment": "ltp"}],
}
ORIGIN = "http://127.0.0.1:7400"
SYSTEM, ASK = Message(role="system", content="be brief"), Message(role="user", content=HOSTILE)
CALL = Action(content="", tool_calls=(ToolCall(id="c1", name="count", arguments='{"what": '),), reasoning="I count")
SHORT, LONG = Action(content="seven"), Action(content="x" * 30_000)
OBSERVATIONS = (
    Observation(messages=(SYSTEM, ASK), tools=(Tool(name="count"),)),
    Observation(messages=(Message(role="tool", content="7", tool_call_id="c1"),), tools=(Tool(name="count"),)),
    Observation(messages=(Message(role="user", content="again"),)),
)

Client = Callable[..., httpx.AsyncClient]


def turns() -> list[Turn]:
    """Three turns: a call with malformed arguments, an answer cut by `max_tokens`, a long one."""
    stops = (None, "length", "stop")
    return [
        Turn(
            turn=number,
            digest=observation.digest(),
            observation=observation.model_dump_json(),
            reply=Act(action=action),
            prompt_tokens=1_000,
            completion_tokens=20,
            model_seconds=1.25,
            world_seconds=0.5,
            tries=number,
            stop=stop,
        )
        for number, (observation, action, stop) in enumerate(
            zip(OBSERVATIONS, (CALL, SHORT, LONG), stops, strict=True), 1
        )
    ]


@pytest.fixture
def folder(tmp_path: Path, played: Path) -> Path:
    """One run, the test's own: `gpt` has scores, `naive` faults and stops, `idle` was not played."""
    return Path(shutil.copytree(played, tmp_path, dirs_exist_ok=True))


@pytest.fixture(scope="session")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `folder` is a copy of."""
    made = tmp_path_factory.mktemp("played")
    asyncio.run(_fill(made / "first"))
    return made


async def _fill(run: Path) -> None:
    run.mkdir()
    store = Store(connect(sqlite_url(run)), "first")
    trials = [
        Trial(id=n, agent=agent, task="riddles", sample=sample, epoch=0, cluster=sample)
        for n, (agent, sample) in enumerate((agent, sample) for agent in AGENTS for sample in SAMPLES)
    ]
    record = TaskRecord(environment="ltp", digest="d", samples=len(SAMPLES), comparable="the samples are invented")
    store.create(Manifest(version="1", plan_path="p", plan=PLAN, identity={}, tasks={"riddles": record}), trials)
    journal = Journal(store, store.take_over())
    for trial in trials[: 2 * len(SAMPLES)]:
        await _play(journal, trial)
    await journal.close()
    store.set_state("finished")
    store.engine.dispose()


async def _play(journal: Journal, trial: Trial) -> None:
    await journal.begin(trial, 1, 0, "0" * 32)
    finish = Finish(
        reason=FinishReason.COMPLETED, score=trial.id % 4 / 4, metrics={"strict": 0.5}, detail={"said": "7"}
    )
    if trial.agent == "naive":
        finish = Finish.fault(FinishReason.TASK_ERROR, f"the sandbox broke {HOSTILE}")
    if trial.id == 0:
        await journal.end(trial, 1, "lost", "connection refused", "worker-2")
        await journal.begin(trial, 2, 0, "1" * 32)
        for turn in turns():
            await journal.turn(trial, 0, turn)
    elif trial.id == 1:
        stop = turns()[0].model_copy(update={"reply": Stop(reason=FinishReason.CONTEXT_LIMIT)})
        await journal.turn(trial, 0, stop)
    cost = Cost(trial.id, Usage(10 * trial.id, 40), 2.5, cut_answers=int(trial.id == 0))
    await journal.finish(trial, 2 if trial.id == 0 else 1, "worker-1", finish, cost)


@pytest.fixture
def client(folder: Path) -> Client:
    """Makes clients of the folder's viewer, with its tokens as an argument."""

    def make(*tokens: str, **headers: str) -> httpx.AsyncClient:
        access = ViewAccess(AccessTokens(*tokens))
        transport = httpx.ASGITransport(build_app(FolderRuns(folder), access))
        return httpx.AsyncClient(transport=transport, base_url=ORIGIN, headers=headers)

    return make
