"""The metrics of many sessions: success rate, whole and by task type, and how actions were understood."""

from collections.abc import Sequence

from environments.alfworld.task_types import TASK_TYPES
from proctor.types import Finish, FinishReason, Summary

PRIMARY = "success_rate"
WORDING = "The instruction and the examples are in our own words, not the published ones; prompts shift scores."


def summarize(finishes: Sequence[Finish], skipped: int, *, own_words: bool) -> Summary:
    """Rates over scored sessions; one over nothing is absent. Faults enter no rate and are counted as requested."""
    scored = [finish for finish in finishes if finish.score is not None]
    values = {
        PRIMARY: [finish.score or 0.0 for finish in scored],
        "steps_of_passed": [finish.metrics["steps"] for finish in scored if finish.score == 1.0],
    }
    for kind in TASK_TYPES:
        those = [finish.score or 0.0 for finish in scored if finish.detail.get("task_type") == kind]
        values[f"{PRIMARY}_{kind}"] = those
    metrics = {name: sum(each) / len(each) for name, each in values.items() if each}
    for name in ("matched", "refused", "below_1"):
        metrics[name] = sum(finish.metrics.get(name, 0.0) for finish in scored)
    for reason in (FinishReason.INVALID_ACTION, FinishReason.INVALID_FORMAT):
        metrics[reason.value] = float(sum(finish.reason is reason for finish in scored))
    metrics |= {"requested": float(len(finishes)), "scored": float(len(scored)), "skipped_games": float(skipped)}
    formats = sorted({str(finish.detail["format"]) for finish in scored if "format" in finish.detail})
    notes = [
        *([WORDING] if own_words else []),
        *([f"Command formats of the games: {', '.join(formats)}."] if formats else []),
    ]
    if skipped:
        notes.append(f"The split has {skipped} further games that are unsolvable or unsupported; they are not played.")
    return Summary(primary=PRIMARY, metrics=metrics, notes=tuple(notes))
