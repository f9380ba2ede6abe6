"""A tiny environment, and a program that serves it: what the tests of the task server run.

`python -m tests.task_server_world worker|controller CONFIG_JSON` prints the base URL once it listens.
"""

import asyncio
import contextlib
import os
import secrets
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

from proctor import registry
from proctor.environment import Agent, Environment, EnvironmentFault, Policy
from proctor.types import Action, Finish, FinishReason, Message, Observation, Summary
from task_server.client.client import TaskClient
from task_server.wire.messages import Act, Observed


class Counting(Environment):
    """The agent is told a number and must answer the next; the score is the share of right answers."""

    turns: int = 3
    folder: Path | None = None
    """Holds a file for each live session, and one called "shared" while the lifespan lasts."""
    broken: str = ""
    """Why the lifespan can't be entered."""
    version: str = "1"

    def samples(self) -> Sequence[str]:
        return ["plain", "other", "fault"]

    def digest(self) -> str:
        return self.version

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        right = 0
        with self._held():
            for number in range(seed, seed + self.turns):
                action = await agent.act(Observation(messages=(Message(role="user", content=str(number)),)))
                right += action.content == str(number + 1)
                if sample == "fault":
                    raise EnvironmentFault("the part is broken")
            return Finish(reason=FinishReason.COMPLETED, score=right / self.turns, detail={"seed": seed})

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        if self.folder is None:
            yield
            return
        held = self.folder / f"held-{os.getpid()}-{id(asyncio.current_task())}"
        held.touch()
        try:
            yield
        finally:
            held.unlink()

    @contextlib.asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        if self.broken:
            raise EnvironmentFault(self.broken)
        if self.folder is not None:
            (self.folder / "shared").touch()
        yield
        if self.folder is not None:
            (self.folder / "shared").unlink(missing_ok=True)  # several workers may share the folder

    def reference(self, sample: str, seed: int = 0) -> Policy:
        return count

    def naive(self, sample: str, seed: int = 0) -> Policy:
        return count

    def random(self, sample: str, seed: int = 0) -> Policy:
        return count

    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        scores = [finish.score for finish in finishes if finish.score is not None]
        return Summary(primary="mean", metrics={"mean": sum(scores) / max(1, len(scores)), "n": len(scores)})


async def played(client: TaskClient, task: str, sample: str, agent: Agent, seed: int = 0) -> Finish:
    """The finish of a new session that an agent plays."""
    session = secrets.token_hex(16)
    started = await client.start(session, task, sample, seed)
    step = started.step
    while isinstance(step, Observed):
        answer = Act(action=await agent.act(step.observation))
        step = await client.turn(started.url, session, step.turn, answer)
    await client.end(session, started.url)
    return step.finish


def count(conversation: str, transcript: Sequence[Message]) -> Action:
    """The policy that solves it."""
    return Action(content=str(int(transcript[-1].content) + 1))


async def anywhere(url: str, peer: str | None) -> bool:
    """Admits every worker: these servers' hosts are names in a table."""
    return True


def install() -> None:
    """Make every environment's name mean Counting, in this process."""
    registry.load = lambda name: Counting


def main() -> None:
    from task_server.serve import ControllerConfig, WorkerConfig, serve_controller, serve_worker

    install()
    kind, config = sys.argv[1:]
    if kind == "worker":
        serve_worker(WorkerConfig.model_validate_json(config), on_ready=lambda url: print(url, flush=True))
    else:
        serve_controller(ControllerConfig.model_validate_json(config), on_ready=lambda url: print(url, flush=True))


if __name__ == "__main__":
    main()
