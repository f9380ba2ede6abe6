"""When a session is over, what it scores, and the metrics of many sessions (AgentBench v0.2, alfworld)."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from environments.alfworld.reply import Chosen, Profile
from environments.alfworld.texts import TASK_TYPES
from proctor.summary import means
from proctor.tools import Protocol
from proctor.types import Finish, FinishReason, Summary

REPEATS = 3
"""Equal replies in a row that end a session."""
FIRST_REPEAT = 4
"""Steps that a session must have before equal replies end it."""
PRIMARY = "success_rate"
WORDING: Mapping[Protocol, str] = {
    "text": "The instruction and the examples are in our own words, not the published ones; prompts shift scores.",
    "tools": "The instruction and the function are described in our own words; prompts shift scores.",
}


class CommandStep(NamedTuple):
    """One reply with an action, and the engine's part of the step."""

    written: str
    """What is compared to find repetitions."""
    action: str
    chosen: Chosen
    refused: bool
    """Whether the engine refused the command."""


def end_reason(won: bool, steps: Sequence[CommandStep], profile: Profile) -> FinishReason | None:
    """Why the session ends after its last step; None where it goes on.

    In `compat` three equal replies end a session even where the third wins the game, as published.
    """
    if _repeated(steps, profile) and (profile == "compat" or not won):
        return FinishReason.INVALID_ACTION
    return FinishReason.COMPLETED if won else None


def _repeated(steps: Sequence[CommandStep], profile: Profile) -> bool:
    """Whether the last replies are equal; in `strict` only if the engine refused them."""
    last = steps[-REPEATS:]
    if len(steps) < FIRST_REPEAT or len({step.written for step in last}) > 1:
        return False
    return profile == "compat" or all(step.refused for step in last)


def score(reason: FinishReason) -> float:
    """1 where the session ended with the game won, 0 otherwise."""
    return float(reason is FinishReason.COMPLETED)


def step_metrics(steps: Sequence[CommandStep]) -> dict[str, float]:
    """Counts of steps: all, with another command than the action, refused, with an action that is not on the list."""
    return {
        "steps": float(len(steps)),
        "matched": float(sum(step.chosen.command != step.action for step in steps)),
        "refused": float(sum(step.refused for step in steps)),
        "below_1": float(sum(step.chosen.similarity < 1 for step in steps)),
    }


def summarize(finishes: Sequence[Finish], skipped: int, wording: str | None) -> Summary:
    """Rates over scored sessions; a rate over none is left out. Faults enter no rate; only `requested` counts them."""
    scored = [finish for finish in finishes if finish.score is not None]
    values = {
        PRIMARY: [finish.score or 0.0 for finish in scored],
        "steps_of_passed": [finish.metrics["steps"] for finish in scored if finish.score == 1.0],
    }
    for kind in TASK_TYPES:
        of_kind = [finish for finish in scored if finish.detail.get("task_type") == kind]
        values[f"{PRIMARY}_{kind}"] = [finish.score or 0.0 for finish in of_kind]
    metrics = means(values)
    for name in ("matched", "refused", "below_1"):
        metrics[name] = sum(finish.metrics.get(name, 0.0) for finish in scored)
    for reason in (FinishReason.INVALID_ACTION, FinishReason.INVALID_FORMAT):
        metrics[reason.value] = float(sum(finish.reason is reason for finish in scored))
    metrics |= {"requested": float(len(finishes)), "scored": float(len(scored)), "skipped_games": float(skipped)}
    formats = sorted({str(finish.detail["format"]) for finish in scored if "format" in finish.detail})
    notes = [
        *([wording] if wording else []),
        *([f"Command formats of the games: {', '.join(formats)}."] if formats else []),
    ]
    if skipped:
        notes.append(f"The split has {skipped} further games that are unsolvable or unsupported; they are not played.")
    return Summary(primary=PRIMARY, metrics=metrics, notes=tuple(notes))
