"""The progress of a run, its result, and the number of unscored trials at which it ends early."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from eval_client.core import Pair
from eval_client.core.spend import SpendLimit
from proctor.types import Finish

_CHANGING = re.compile(r"(?<!status )\b(?=[\w-]*\d)[\w-]+\b")
"""Words with a digit, as counts and the ids of requests are, but for the status of a reply."""


def grouped_causes(causes: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Causes with their counts; those that differ in numbers and ids alone are one, in the words of the first."""
    first: dict[str, str] = {}
    grouped: dict[str, int] = {}
    for cause, count in causes:
        name = first.setdefault(_CHANGING.sub("#", cause), cause)
        grouped[name] = grouped.get(name, 0) + count
    return grouped


@dataclass
class Progress:
    """The progress of a run; the screen reads it.

    Planned and scored trials are those of the whole run; the other counts begin anew with a resume.
    """

    planned: dict[Pair, int]
    scored: dict[Pair, int]
    score_sum: dict[Pair, float]
    unscored: dict[Pair, int] = field(default_factory=dict)
    slowest_s: dict[Pair, float] = field(default_factory=dict)
    """pair -> how long its slowest trial took"""
    running: dict[Pair, int] = field(default_factory=dict)
    attempts_lost: int = 0
    causes: dict[str, int] = field(default_factory=dict)
    faults: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """(agent, task, kind of fault) -> attempts that ended with it."""
    trouble: str | None = None
    draining: bool = False
    task_waits: dict[str, str] = field(default_factory=dict)

    def settled(self, pair: Pair, finish: Finish, seconds: float) -> None:
        """Count a trial that has its final row, after so many seconds of play."""
        self.slowest_s[pair] = max(seconds, self.slowest_s.get(pair, 0.0))
        if finish.score is None:
            cause = str(finish.detail.get("cause"))
            self.unscored[pair] = self.unscored.get(pair, 0) + 1
            self.causes[cause] = self.causes.get(cause, 0) + 1
        else:
            self.scored[pair] = self.scored.get(pair, 0) + 1
            self.score_sum[pair] = self.score_sum.get(pair, 0.0) + finish.score


@dataclass(frozen=True)
class RunResult:
    """How a run ended. `stopped` is why some trials were not played; None if all were."""

    stopped: str | None
    refused: Mapping[Pair, str]
    """pair -> why its agent stopped, with what to do"""
    abandoned: bool = False
    """Whether trials under way were cut off."""
    limit: SpendLimit | None = None
    """The limit of the run that stopped it, if one did."""

    def refusals(self) -> list[str]:
        """A line for each agent and cause of refusal, with the tasks that it concerns."""
        tasks: dict[tuple[str, str], list[str]] = {}
        for (agent, task), why in self.refused.items():
            tasks.setdefault((agent, why), []).append(task)
        return [
            f"agent {agent} stopped, its trials of {', '.join(of)} stay pending: {why}"
            for (agent, why), of in tasks.items()
        ]


_WRITTEN = re.compile(r"(\d+)|(\d+(?:\.\d+)?) ?%")


class ErrorLimit(NamedTuple):
    """A number of trials, or a share of all planned ones."""

    written: str
    """As the user wrote it."""
    trials: int | None
    share: float

    @classmethod
    def read(cls, text: str) -> Self:
        """The limit in a text such as `5` or `10%`. Raises ValueError."""
        found = _WRITTEN.fullmatch(text.strip())
        trials = int(found[1]) if found and found[1] else None
        share = float(found[2]) / 100 if found and found[2] else 0.0
        if not found or (trials or share) <= 0 or share > 1:
            raise ValueError(f"{text}: give a number of trials from 1, or a share such as 10%")
        return cls(text.strip(), trials, share)

    def reached(self, progress: Progress, waiting: int = 0) -> str | None:
        """Why the run must end, as text; None while fewer trials are unscored. `waiting` counts as unscored too."""
        unscored, planned = sum(progress.unscored.values()), sum(progress.planned.values())
        limit = self.trials if self.trials is not None else max(1, math.ceil(self.share * planned))
        if unscored + waiting < limit:
            return None
        parts = [f"{unscored} of {planned} trials are unscored"]
        if waiting:
            parts.append(f"{waiting} wait for an endpoint that is down")
        if progress.causes:
            causes = grouped_causes(progress.causes.items())
            parts.append(f"most often: {max(causes, key=lambda cause: causes[cause])}")
        return f"--fail-on-error {self.written}: {'; '.join(parts)}"
