"""The metrics of many games: plain means (AgentBench, arXiv 2308.03688, Appendix F)."""

from collections.abc import Sequence

from environments.types import Finish, FinishReason, Summary

PRIMARY = "game_progress"
MEANS = (
    PRIMARY,
    "single_game_accuracy",
    "query_relevance",
    "round_efficiency",
    "rounds",
    "hints",
    "unreadable",
    "finished",
)
WORDING = (
    "The instruction says in our own words what the published one says; so do the prompts of a host model, to which "
    "strict adds that a question is no instruction."
)


def summarize(finishes: Sequence[Finish], host: str) -> Summary:
    """Means over all scored games; 0 where there are none. Faults enter no mean and are counted as requested."""
    scored = [finish for finish in finishes if finish.score is not None]
    metrics = {name: _mean(scored, name) for name in MEANS}
    for language in ("en", "zh"):
        spoken = [finish for finish in scored if finish.detail.get("language") == language]
        if spoken and len(spoken) < len(scored):
            metrics[f"{PRIMARY}_{language}"] = _mean(spoken, PRIMARY)
    for reason in (FinishReason.INVALID_ACTION, FinishReason.INVALID_FORMAT):
        metrics[reason.value] = float(sum(finish.reason is reason for finish in scored))
    metrics |= {"requested": float(len(finishes)), "scored": float(len(scored))}
    return Summary(primary=PRIMARY, metrics=metrics, notes=(f"Judged by the host: {host}.", WORDING))


def _mean(finishes: Sequence[Finish], name: str) -> float:
    return sum(finish.metrics.get(name, 0.0) for finish in finishes) / len(finishes) if finishes else 0.0
