"""An environment that costs nothing: what it says is fixed, what it is told is ignored."""

from collections.abc import Sequence
from pathlib import Path

from proctor.environment import Agent, Environment, Policy
from proctor.types import Action, Finish, FinishReason, Message, Observation, Summary

NAME = "bench-echo"
QUESTION = "What do you say to this? " + "It is a line of text of an ordinary length, as tasks have them. " * 6


class Echo(Environment):
    """A fixed number of turns, then a score of 1."""

    turns: int = 8
    count: int = 101_000

    def samples(self) -> Sequence[str]:
        return [f"s{number}" for number in range(self.count)]

    def digest(self) -> str:
        return f"{self.turns}-{self.count}"

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        for _ in range(self.turns):
            await agent.act(Observation(messages=(Message(role="user", content=QUESTION),)))
        return Finish(reason=FinishReason.COMPLETED, score=1.0)

    def reference(self, sample: str, seed: int = 0) -> Policy:
        return lambda conversation, transcript: Action(content="so be it")

    def naive(self, sample: str, seed: int = 0) -> Policy:
        return self.reference(sample, seed)

    def random(self, sample: str, seed: int = 0) -> Policy:
        return self.reference(sample, seed)

    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        return Summary(primary="n", metrics={"n": float(len(finishes))})


def install(folder: Path) -> str:
    """The PYTHONPATH under which any interpreter finds this environment by its name; its metadata go to the folder."""
    info = folder / "bench_echo-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bench-echo\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[proctor.environments]\n{NAME} = benchmarks.echo:Echo\n")
    return f"{folder}:{Path(__file__).resolve().parents[1]}"
