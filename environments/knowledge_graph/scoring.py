"""Marks of one sample against its gold answers, and the metrics of many finishes (AgentBench v0.2, knowledgegraph)."""

import re
from collections.abc import Iterable, Sequence, Set

from environments.knowledge_graph.programs import NAMESPACE
from proctor.types import Finish, Summary

METRICS = ("F1", "EM", "executability")
_TIME_ZONE = re.compile(r"-08:00$")
WORDING = "Instruction and worked example are in our own words, with the content and forms of the published ones."
REFUSALS = "The prompt is that of `prompts`; the messages after calls that can't be executed are in Proctor's words."
COVERAGE = "Means are over scored samples; samples that ended in a fault are run again and enter no mean."


def predicted(values: Iterable[str]) -> frozenset[str]:
    """Answers in the form that is compared: ids without name space, literals as text, dates without time zone."""
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
    """Means over the scored finishes; without any there are none.

    `in_file`, set in the compat profile, is the number of samples in the data file. The published code divides by it
    even if only some samples were run: `<metric>_over_file`.
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
