"""The metrics of many sessions: success rate, whole and by task type, and how actions were understood."""

from collections.abc import Sequence

from environments.alfworld.task_types import TASK_TYPES
from environments.types import Finish, FinishReason, Summary

PRIMARY = "success_rate"
WORDING = "The instruction and the examples are in our own words, not the published ones; prompts shift scores."


def summarize(finishes: Sequence[Finish], skipped: int) -> Summary:
    """Rates over all scored sessions, 0 where there are none. Faults enter no rate and are counted as requested."""
    scored = [finish for finish in finishes if finish.score is not None]
    passed = [finish for finish in scored if finish.score == 1.0]
    metrics = {PRIMARY: _rate(scored), "steps_of_passed": _mean(passed, "steps")}
    for kind in TASK_TYPES:
        those = [finish for finish in scored if finish.detail.get("task_type") == kind]
        if those:
            metrics[f"{PRIMARY}_{kind}"] = _rate(those)
    for name in ("matched", "refused", "below_1"):
        metrics[name] = sum(finish.metrics.get(name, 0.0) for finish in scored)
    for reason in (FinishReason.INVALID_ACTION, FinishReason.INVALID_FORMAT):
        metrics[reason.value] = float(sum(finish.reason is reason for finish in scored))
    metrics |= {"requested": float(len(finishes)), "scored": float(len(scored)), "skipped_games": float(skipped)}
    formats = sorted({str(finish.detail["format"]) for finish in scored if "format" in finish.detail})
    notes = [WORDING, *([f"Command formats of the games: {', '.join(formats)}."] if formats else [])]
    if skipped:
        notes.append(f"The split has {skipped} further games that are unsolvable or unsupported; they are not played.")
    return Summary(primary=PRIMARY, metrics=metrics, notes=tuple(notes))


def _rate(finishes: Sequence[Finish]) -> float:
    return sum(finish.score or 0.0 for finish in finishes) / len(finishes) if finishes else 0.0


def _mean(finishes: Sequence[Finish], name: str) -> float:
    return sum(finish.metrics[name] for finish in finishes) / len(finishes) if finishes else 0.0
