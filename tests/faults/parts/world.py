"""The world of the fault suite: an environment whose course shows every turn applied twice, lost or changed.

Each observation is a digest of all answers before it, and the finish holds the last one. What was applied stands in a
ledger, a file that no kill -9 takes back.
"""

import asyncio
import contextlib
import hashlib
import itertools
import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from proctor.environment import Agent, Environment, Policy
from proctor.types import Action, Finish, FinishReason, Message, Observation, Summary

ENTRY_POINT = "[proctor.environments]\nledger = tests.faults.parts.world:Ledger\n"


def write_distribution(folder: Path) -> None:
    """The metadata of an installed package with this environment, for any interpreter with the folder on its path."""
    info = folder / "fault_ledger-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fault-ledger\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINT)


def _stubborn() -> None:
    while True:
        with contextlib.suppress(Exception):
            time.sleep(1000)


def _spin() -> None:
    while True:
        pass


BLOCKS: dict[str, Callable[[], object]] = {
    "sleep": lambda: time.sleep(10_000),
    "spin": _spin,
    "stubborn": _stubborn,
    "in C": lambda: sum(itertools.repeat(0, 10**15)),
}
"""Ways to block an event loop: a call, Python's code, code that ignores exceptions, C that holds the interpreter."""


def chained(*texts: object) -> str:
    return hashlib.blake2b("|".join(map(str, texts)).encode(), digest_size=6).hexdigest()


def right_answer(shown: str) -> str:
    return chained("answer", shown)


class Ledger(Environment):
    """The agent is shown a digest and answers with another; the score is the share of right answers."""

    turns: int = 6
    count: int = 10
    ledger: Path | None = None
    deadly: str = ""
    """A sample that kills its worker after its first turn."""
    blocks: str = ""
    """A sample that blocks the event loop after its first turn, for ever."""
    how: str = "sleep"
    """A key of BLOCKS."""

    def samples(self) -> Sequence[str]:
        return tuple(f"s{number}" for number in range(self.count))

    def digest(self) -> str:
        return chained(self.turns, self.count)

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        shown, right = chained(sample, seed), 0
        with self._written(sample) as write:
            for turn in range(1, self.turns + 1):
                action = await agent.act(Observation(messages=(Message(role="user", content=shown),)))
                write("turn", turn, action.content)
                if sample == self.deadly:
                    os.kill(os.getpid(), signal.SIGKILL)
                if sample == self.blocks:
                    BLOCKS[self.how]()
                right += action.content == right_answer(shown)
                shown = chained(shown, action.content)
        return Finish(reason=FinishReason.COMPLETED, score=right / self.turns, detail={"chain": shown})

    @contextlib.contextmanager
    def _written(self, sample: str) -> Iterator[Callable[[str, int, str], None]]:
        """Writes a line for the begin, each turn and the end of a play, each with one system call."""
        if self.ledger is None:
            yield lambda event, turn, answer: None
            return
        task = asyncio.current_task()
        assert task is not None
        session = task.get_name().removeprefix("session ")
        file = os.open(self.ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

        def write(event: str, turn: int = 0, answer: str = "") -> None:
            line = {"session": session, "pid": os.getpid(), "event": event, "turn": turn, "answer": answer}
            os.write(file, (json.dumps(line) + "\n").encode())

        write("begin", answer=sample)
        try:
            yield write
        finally:
            write("end")
            os.close(file)

    def reference(self, sample: str, seed: int = 0) -> Policy:
        return lambda conversation, messages: Action(content=right_answer(messages[-1].content))

    def naive(self, sample: str, seed: int = 0) -> Policy:
        """Right where the digest's last hex digit is even."""
        return lambda conversation, messages: Action(
            content=right_answer(messages[-1].content) if int(messages[-1].content[-1], 16) % 2 == 0 else "no idea"
        )

    def random(self, sample: str, seed: int = 0) -> Policy:
        return lambda conversation, messages: Action(content=chained("random", seed, len(messages)))

    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        scores = [finish.score for finish in finishes if finish.score is not None]
        return Summary(primary="right", metrics={"right": sum(scores) / max(1, len(scores))})
