"""The metrics of many ratings and verdicts, by the subsets of the paper's tables (arXiv 2409.07641, section 4)."""

from collections.abc import Callable, Sequence

from proctor.summary import mean, means
from proctor.types import Finish, FinishReason, Summary

PRIMARY, RULES_PRIMARY = "strict_mean", "rules_mean"
"""The primary metric where a model judges, and where the rules do."""
RULES = "rules, not a model"
"""What the rules are called as a judge."""
RULES_CAUTION = "its judge goes by rules that know one right reply or none; evaluate models with `judge:` a model"
WORST = 1.0
"""Rating in the primary metric of an agent that ran out of context."""
FULL_COVERAGE = 0.99
OWN_PROMPT_NOTE = "The prompts of judge and user are in our own words, with the content of the paper's Appendix B."
GIVEN_PROMPT_NOTE = "The judge's prompt is the one that `prompts` names; the user's is in our own words."
QUOTES = (
    "The recorded transcripts quote material under CC BY-NC 4.0 (SimulBench, Jia et al. 2024), so that licence applies "
    "to them too."
)

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
"""The subsets with metrics of their own; `hard` is all but lastonly."""


def ratings(finishes: Sequence[Finish], judged_by: str, prompt_note: str = OWN_PROMPT_NOTE) -> Summary:
    """Mean ratings from 1 to 10, each with its number of scripts; absent if there is none.

    `mean` and the means of subsets cover rated scripts. `strict_mean`, the primary metric, also counts a rating of 1
    for each script where the agent ran out of context or over a limit; judged by RULES it is `rules_mean`. Faults enter
    neither. `coverage` is the fraction of rated scripts among those requested.
    """
    primary = RULES_PRIMARY if judged_by == RULES else PRIMARY
    rated = [finish for finish in finishes if "rating" in finish.metrics]
    stopped = [finish for finish in finishes if finish.score is not None and "rating" not in finish.metrics]
    given = [finish.metrics["rating"] for finish in rated]
    metrics = means({primary: given + [WORST] * len(stopped), "mean": given}) | {"n": float(len(rated))}
    for name, wanted in SUBSETS.items():
        subset = [finish.metrics["rating"] for finish in rated if wanted(finish)]
        if subset:
            metrics |= {f"mean_{name}": mean(subset), f"n_{name}": float(len(subset))}
    metrics |= _coverage(finishes, len(rated))
    metrics["responses_cut"] = float(sum(finish.detail.get("chars_cut", 0) != 0 for finish in rated))
    for name in ("judge_prompt_tokens", "judge_completion_tokens"):
        metrics[name] = sum(_number(finish, name) for finish in finishes)
    return Summary(
        primary=primary, metrics=metrics, notes=notes(finishes, metrics, f"Judged by: {judged_by}.", prompt_note)
    )


def verdicts(finishes: Sequence[Finish]) -> Summary:
    """Win, tie and lose in percent of the pairs with a verdict; `difference` is win minus lose. All also by subset."""
    decided = [finish for finish in finishes if "win" in finish.metrics]
    metrics = _percents(decided) | {"n": float(len(decided))}
    for name, wanted in SUBSETS.items():
        subset = [finish for finish in decided if wanted(finish)]
        if subset:
            of_subset = _percents(subset) | {"n": float(len(subset))}
            metrics |= {f"{metric}_{name}": value for metric, value in of_subset.items()}
    metrics |= _coverage(finishes, len(decided))
    who = "The metrics are the candidate's, against the reference model; the agent of this run is the judge."
    return Summary(primary="difference", metrics=metrics, notes=notes(finishes, metrics, who))


def notes(
    finishes: Sequence[Finish], metrics: dict[str, float], first: str, prompt_note: str = OWN_PROMPT_NOTE
) -> tuple[str, ...]:
    """The notes to the metrics of any stage: judge, prompt, licence and low coverage."""
    found = [first, prompt_note]
    if any("CC BY-NC" in str(finish.detail.get("licence", "")) for finish in finishes):
        found.append(QUOTES)
    if (coverage := metrics.get("coverage", 1.0)) < FULL_COVERAGE:
        found.append(f"Coverage is {coverage:.1%}: below 99 %, don't compare these metrics.")
    return tuple(found)


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


def _percents(decided: Sequence[Finish]) -> dict[str, float]:
    shares = means({name: [finish.metrics[name] for finish in decided] for name in ("win", "tie", "lose")})
    percents = {name: 100 * share for name, share in shares.items()}
    return percents | ({"difference": 100 * (shares["win"] - shares["lose"])} if shares else {})


def _number(finish: Finish, name: str) -> float:
    value = finish.detail.get(name)
    return float(value) if isinstance(value, int) else 0.0
