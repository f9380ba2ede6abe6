"""Runs whose turns a test gives, and a viewer of them as a server."""

import itertools
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from eval_client.store.connection import connect, sqlite_url
from eval_client.store.journal import Cost, Journal
from eval_client.store.records import Manifest, TaskRecord, Trial, Turn
from eval_client.store.store import Store
from eval_client.view.access import ViewAccess
from eval_client.view.app import build_app
from eval_client.view.runs import FolderRuns
from proctor.http.server import listen
from proctor.http.serving import EmbeddedServer
from proctor.types import Action, Finish, FinishReason, Message, Observation, Usage
from task_server.wire.messages import Act

Said = Sequence[tuple[str, str]]
"""What a trial was shown and answered, turn by turn."""


async def played_run(folder: Path, name: str, agents: Mapping[str, Said], epochs: int = 1) -> None:
    """A run of one sample, `s`, that each agent has played; the score of an epoch is half that of the one before."""
    (folder / name).mkdir()
    store = Store(connect(sqlite_url(folder / name)), name)
    plan = {
        "agents": [{"name": agent, "model": "m"} for agent in agents],
        "tasks": [{"name": "riddles", "environment": "ltp"}],
    }
    record = TaskRecord(environment="ltp", digest="d", samples=1)
    trials = [
        Trial(id=number, agent=agent, task="riddles", sample="s", epoch=epoch, cluster="s")
        for number, (agent, epoch) in enumerate(itertools.product(agents, range(epochs)))
    ]
    store.create(Manifest(version="1", plan_path="p", plan=plan, identity={}, tasks={"riddles": record}), trials)
    journal = Journal(store, store.take_over())
    for trial in trials:
        said = agents[trial.agent]
        await journal.begin(trial, 1, 0, "0" * 32)
        for number, (shown, answer) in enumerate(said, 1):
            await journal.turn(trial, 0, _turn(number, shown, answer))
        finish = Finish(reason=FinishReason.COMPLETED, score=0.5**trial.epoch)
        await journal.finish(trial, 1, "", finish, Cost(len(said), Usage(10, 5), 0.5))
    await journal.close()
    store.engine.dispose()


def _turn(number: int, shown: str, answer: str) -> Turn:
    observation = Observation(messages=(Message(role="user", content=shown),))
    return Turn(
        turn=number,
        digest=observation.digest(),
        observation=observation.model_dump_json(),
        reply=Act(action=Action(content=answer)),
        prompt_tokens=10,
        completion_tokens=5,
        model_seconds=0.5,
        tries=1,
    )


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a viewer of the runs in a folder."""
    with listen("127.0.0.1", 0) as listener:
        config = uvicorn.Config(build_app(FolderRuns(folder), ViewAccess()), log_level="warning")
        server = EmbeddedServer(config)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
