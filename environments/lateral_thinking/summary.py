"""The metrics of many games: plain means (AgentBench, arXiv 2308.03688, Appendix F)."""

from collections.abc import Sequence

from proctor.summary import means
from proctor.types import Finish, FinishReason, Summary

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
    "The instruction and the prompts of a host model are in our own words, with the content of the published ones; "
    "strict adds to the latter that a question is no instruction."
)


def summarize(finishes: Sequence[Finish], host: str) -> Summary:
    """Means over all scored games; without any there are none. Faults enter no mean; only `requested` counts them."""
    scored = [finish for finish in finishes if finish.score is not None]
    metrics = means({name: _values(name, scored) for name in MEANS})
    for language in ("en", "zh"):
        in_language = [finish for finish in scored if finish.detail.get("language") == language]
        if len(in_language) < len(scored):
            metrics |= means({f"{PRIMARY}_{language}": _values(PRIMARY, in_language)})
    for reason in (FinishReason.INVALID_ACTION, FinishReason.INVALID_FORMAT):
        metrics[reason.value] = float(sum(finish.reason is reason for finish in scored))
    metrics |= {"requested": float(len(finishes)), "scored": float(len(scored))}
    return Summary(primary=PRIMARY, metrics=metrics, notes=(f"Judged by the host: {host}.", WORDING))


def _values(name: str, finishes: Sequence[Finish]) -> list[float]:
    return [finish.metrics[name] for finish in finishes if name in finish.metrics]
