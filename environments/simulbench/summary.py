"""The metrics of many ratings and verdicts, by the subsets of the paper's tables (arXiv 2409.07641, section 4)."""

from collections.abc import Callable, Mapping, Sequence

from proctor.types import Finish, FinishReason, Summary

PRIMARY = "strict_mean"
WORST = 1.0
"""What an agent out of its context counts as in the primary metric."""
FULL_COVERAGE = 0.99
WORDING = "The prompts of judge and user say in our own words what the paper's Appendix B prints."
GIVEN_WORDING = "The judge's prompt is the one that `prompts` names; a user's is in our own words."
QUOTES = "What was recorded quotes material under CC BY-NC 4.0 (SimulBench, Jia et al. 2024), and is under it too."

Wanted = Callable[[Finish], bool]
SUBSETS: dict[str, Wanted] = {
    "hard": lambda finish: finish.detail.get("place") in ("firstchan", "subseqchan"),
    "lastonly": lambda finish: finish.detail.get("place") == "lastonly",
    "firstchan": lambda finish: finish.detail.get("place") == "firstchan",
    "subseqchan": lambda finish: finish.detail.get("place") == "subseqchan",
    "stateless": lambda finish: finish.detail.get("type") == "stateless",
    "stateful": lambda finish: finish.detail.get("type") == "stateful",
    "firstchan_stateless": lambda finish: SUBSETS["firstchan"](finish) and SUBSETS["stateless"](finish),
    "firstchan_stateful": lambda finish: SUBSETS["firstchan"](finish) and SUBSETS["stateful"](finish),
}
"""Beside all; `hard` is what is not lastonly."""


def ratings(finishes: Sequence[Finish], judged_by: str, wording: str = WORDING) -> Summary:
    """Mean ratings from 1 to 10, each with the number of scripts behind it; absent where there is none.

    `mean` and the means of subsets are over the rated scripts. `strict_mean`, the primary one, counts as 1 also those
    where the agent was out of context or beyond its limits. Faults enter neither; `coverage` is rated of requested.
    """
    rated = [finish for finish in finishes if "rating" in finish.metrics]
    stopped = [finish for finish in finishes if finish.score is not None and "rating" not in finish.metrics]
    given = [finish.metrics["rating"] for finish in rated]
    metrics = means({PRIMARY: given + [WORST] * len(stopped), "mean": given}) | {"n": float(len(rated))}
    for name, wanted in SUBSETS.items():
        subset = [finish.metrics["rating"] for finish in rated if wanted(finish)]
        if subset:
            metrics |= {f"mean_{name}": mean(subset), f"n_{name}": float(len(subset))}
    metrics |= _coverage(finishes, len(rated))
    metrics["responses_cut"] = float(sum(finish.detail.get("chars_cut", 0) != 0 for finish in rated))
    for name in ("judge_prompt_tokens", "judge_completion_tokens"):
        metrics[name] = sum(_number(finish, name) for finish in finishes)
    return Summary(
        primary=PRIMARY, metrics=metrics, notes=notes(finishes, metrics, f"Judged by: {judged_by}.", wording)
    )


def verdicts(finishes: Sequence[Finish]) -> Summary:
    """Win, tie and lose in percent of the pairs with a verdict, and the difference of win and lose, also by subset."""
    told = [finish for finish in finishes if "win" in finish.metrics]
    metrics = {"difference": _difference(told)} if told else {}
    metrics |= means({name: [100 * finish.metrics[name] for finish in told] for name in ("win", "tie", "lose")})
    metrics["n"] = float(len(told))
    for name, wanted in SUBSETS.items():
        subset = [finish for finish in told if wanted(finish)]
        if subset:
            metrics |= {f"difference_{name}": _difference(subset), f"n_{name}": float(len(subset))}
    metrics |= _coverage(finishes, len(told))
    who = "The figures are the candidate's, against the reference model; the agent of this run is the judge."
    return Summary(primary="difference", metrics=metrics, notes=notes(finishes, metrics, who))


def work(finishes: Sequence[Finish], names: Sequence[str], who: str) -> Summary:
    """Means over the usable answers of a judge; the first is the primary one."""
    usable = [finish for finish in finishes if names[0] in finish.metrics]
    metrics = means({name: [finish.metrics[name] for finish in usable] for name in names})
    metrics |= {"n": float(len(usable)), **_coverage(finishes, len(usable))}
    return Summary(primary=names[0], metrics=metrics, notes=notes(finishes, metrics, who))


def authored(finishes: Sequence[Finish]) -> Summary:
    """The share of usable tasks that are no other's double, by their act."""
    acts = [str(finish.detail["act"]).lower() for finish in finishes if finish.reason is FinishReason.COMPLETED]
    metrics = {"distinct": len(set(acts)) / len(acts)} if acts else {}
    metrics |= {"n": float(len(acts))} | _coverage(finishes, len(acts))
    return Summary(primary="distinct", metrics=metrics, notes=notes(finishes, metrics, "The agent is the author."))


def notes(finishes: Sequence[Finish], metrics: dict[str, float], first: str, wording: str = WORDING) -> tuple[str, ...]:
    """What must be known beside the figures of any stage."""
    told = [first, wording]
    if any("CC BY-NC" in str(finish.detail.get("licence", "")) for finish in finishes):
        told.append(QUOTES)
    if (coverage := metrics.get("coverage", 1.0)) < FULL_COVERAGE:
        told.append(f"Coverage is {coverage:.1%}: below 99 %, don't compare these figures.")
    return tuple(told)


def mean(values: Sequence[float]) -> float:
    """The mean of at least one value."""
    return sum(values) / len(values)


def means(values: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The mean of each; one over nothing is absent."""
    return {name: mean(each) for name, each in values.items() if each}


def _coverage(finishes: Sequence[Finish], scored: int) -> dict[str, float]:
    counts = {
        "requested": len(finishes),
        "context_limit": sum(finish.reason is FinishReason.CONTEXT_LIMIT for finish in finishes),
        **{f"{who}_unparsed": _unparsed(finishes, who) for who in ("judge", "user", "author")},
    }
    share = {"coverage": scored / len(finishes)} if finishes else {}
    return share | {name: float(count) for name, count in counts.items()}


def _unparsed(finishes: Sequence[Finish], who: str) -> int:
    return sum(finish.detail.get("cause") == f"{who}_unparsed" for finish in finishes)


def _difference(told: Sequence[Finish]) -> float:
    return 100 * (mean([finish.metrics["win"] for finish in told]) - mean([finish.metrics["lose"] for finish in told]))


def _number(finish: Finish, name: str) -> float:
    value = finish.detail.get(name)
    return float(value) if isinstance(value, int) else 0.0
