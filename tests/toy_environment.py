"""Installed environments small enough to read: guess a letter. For tests of what needs one by name."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from proctor.environment import Agent, Environment, Policy
from proctor.types import Action, Finish, FinishReason, Message, Observation, Summary, ToolCall

ENTRY_POINTS = """\
[proctor.environments]
toy-letters = tests.toy_environment:Letters
toy-bare = tests.toy_environment:Bare
toy-solved = tests.toy_environment:Solved
"""


@contextmanager
def installed(folder: Path) -> Iterator[None]:
    """Within it these environments are installed; the folder holds their metadata and must be empty."""
    write_distribution(folder)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def write_distribution(folder: Path) -> None:
    """The metadata of an installed package with these environments, for interpreters with the folder on their path."""
    info = folder / "toy_letters-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-letters\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)


class Letters(Environment):
    """Which letter is meant? The sample is the letter; the reference shifts with the seed to show that it is heard."""

    letters: str = "abc"

    def samples(self) -> Sequence[str]:
        return tuple(self.letters)

    def digest(self) -> str:
        return self.letters.encode().hex()

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        action = await agent.act(Observation(messages=(Message(role="user", content="Which letter?"),)))
        return Finish(reason=FinishReason.COMPLETED, score=float(action.content == f"{sample}{seed}"))

    def reference(self, sample: str, seed: int = 0) -> Policy:
        def policy(conversation: str, messages: Sequence[Message]) -> Action:
            if conversation == "tools":
                return Action(content="", tool_calls=(ToolCall(id="c1", name="say", arguments=f'{{"x": "{sample}"}}'),))
            if conversation == "broken":
                raise RuntimeError("canary-traceback")
            return Action(content=f"{sample}{seed}")

        return policy

    def naive(self, sample: str, seed: int = 0) -> Policy:
        return lambda conversation, messages: Action(content=f"a after {len(messages)}")

    def random(self, sample: str, seed: int = 0) -> Policy:
        return lambda conversation, messages: Action(content=self.letters[seed % len(self.letters)])

    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        scores = [finish.score for finish in finishes if finish.score is not None]
        return Summary(primary="accuracy", metrics={"accuracy": sum(scores) / max(1, len(scores))})


class Bare(Environment):
    """Which letter is meant? Two methods, and no policy."""

    letters: str = "abc"

    def samples(self) -> Sequence[str]:
        return tuple(self.letters)

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        action = await agent.act(Observation(messages=(Message(role="user", content="Which letter?"),)))
        return Finish(reason=FinishReason.COMPLETED, score=float(action.content == sample))


class Solved(Bare):
    """Knows its solutions, and says of a further policy that there is none."""

    def reference(self, sample: str, seed: int = 0) -> Policy:
        return lambda conversation, messages: Action(content=sample)

    def naive(self, sample: str, seed: int = 0) -> Policy | None:
        return None
