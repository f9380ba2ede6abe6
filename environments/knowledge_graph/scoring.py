"""Marks of one sample against its gold answers, and the metrics of many finishes (AgentBench v0.2, knowledgegraph)."""

import re
from collections.abc import Iterable, Sequence, Set

from environments.knowledge_graph.programs import NAMESPACE
from proctor.types import Finish, Summary

METRICS = ("F1", "EM", "executability")
_TIME_ZONE = re.compile(r"-08:00$")
WORDING = "The instruction and the worked example say in our own words what the published ones say; forms are the same."
REFUSALS = "What an agent is told of a call that can't be done is in Proctor's words; the prompt is that of `prompts`."
COVERAGE = "Means are over scored samples; faults are owed again, `requested` and `scored` stand beside."


def predicted(values: Iterable[str]) -> frozenset[str]:
    """Answers as they are compared: ids without name space, literals as text, dates without their time zone."""
    return frozenset(_TIME_ZONE.sub("", value.removeprefix(NAMESPACE)) for value in values)


def marks(gold: Set[str], found: Set[str]) -> dict[str, float]:
    """F1, exact match and executability, from 0 to 1."""
    both = len(gold & found)
    return {
        "F1": 2 * both / (len(gold) + len(found)) if both else 0.0,
        "EM": float(gold == found),
        "executability": float(bool(found)),
    }


def summarize(finishes: Sequence[Finish], world: str, in_file: int | None, *, own_words: bool) -> Summary:
    """Means over the scored finishes, none where there are none.

    `in_file`, for the compat profile, is how many samples the data file has. The published code divides by that number
    even when only some were run: `<metric>_over_file`.
    """
    scored = [finish for finish in finishes if finish.score is not None]
    metrics: dict[str, float] = {}
    if scored:
        sums = {name: sum(finish.metrics.get(name, 0.0) for finish in scored) for name in METRICS}
        metrics |= {name: total / len(scored) for name, total in sums.items()}
        metrics |= {f"{name}_over_file": total / in_file for name, total in sums.items() if in_file is not None}
    for name in ("n_bad_format", "n_bad_action"):
        metrics[name] = sum(finish.metrics.get(name, 0.0) for finish in scored)
    metrics |= {"requested": float(len(finishes)), "scored": float(len(scored))}
    note = f"Computed on the graph {world}; scores on different graphs can't be compared."
    return Summary(primary="F1", metrics=metrics, notes=(note, COVERAGE, WORDING if own_words else REFUSALS))
