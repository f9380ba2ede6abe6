"""The progress of a run, and its result."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from eval_client.core.flow import Pair
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
    running: dict[Pair, int] = field(default_factory=dict)
    attempts_lost: int = 0
    causes: dict[str, int] = field(default_factory=dict)
    faults: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """(agent, task, kind of fault) -> attempts that ended with it."""
    trouble: str | None = None
    draining: bool = False
    task_waits: dict[str, str] = field(default_factory=dict)

    def settled(self, pair: Pair, finish: Finish) -> None:
        """Count a trial that has its final row."""
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
