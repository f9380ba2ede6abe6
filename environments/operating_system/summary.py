"""The metrics of many finishes."""

from collections import Counter
from collections.abc import Sequence

from proctor.types import Finish, FinishReason, Summary

OWN_PROMPT_NOTE = "The instruction is in our own words; the output forms it asks for are the published ones."
OWN_FUNCTIONS_NOTE = "Instruction and functions are in our own words; the functions are those of AgentBench FC."


def summarize(finishes: Sequence[Finish], wording: str | None) -> Summary:
    """Success rate over the scored samples, and pass counts by kind and label. Faults are counted, never scored 0.

    `wording` is the note on the instruction; None for the published one.
    """
    scored = [finish for finish in finishes if finish.score is not None]
    counts: Counter[str] = Counter()
    for finish in scored:
        for group in _groups(finish):
            counts[f"{group}.total"] += 1
            counts[f"{group}.passed"] += int(finish.score == 1.0)
    metrics = {"acc": sum(finish.score == 1.0 for finish in scored) / len(scored)} if scored else {}
    for profile in ("compat", "errata", "strict"):
        known = [value for finish in scored if (value := finish.metrics.get(f"passed_{profile}")) is not None]
        if known:
            metrics[f"acc_{profile}"] = sum(known) / len(known)
    seen = [bool(paths) for finish in scored if (paths := finish.detail.get("tampered")) is not None]
    if seen:
        metrics["tampered"] = sum(seen)
    metrics |= {"scored": len(scored)} | ({"coverage": len(scored) / len(finishes)} if finishes else {})
    metrics |= {name: counts[name] for name in sorted(counts)}
    for reason in FinishReason:
        metrics[reason.value] = sum(finish.reason is reason for finish in finishes)
    notes = (*_notes(finishes), *([wording] if wording else []))
    return Summary(primary="acc", metrics={name: float(value) for name, value in metrics.items()}, notes=notes)


def _groups(finish: Finish) -> list[str]:
    labels = finish.detail.get("labels", [])
    return [
        f"kind.{finish.detail.get('kind')}",
        *(f"label.{label}" for label in (labels if isinstance(labels, list) else [])),
    ]


def _notes(finishes: Sequence[Finish]) -> tuple[str, ...]:
    notes = []
    faults = sum(finish.reason.is_fault for finish in finishes)
    if faults:
        notes.append(f"{faults} of {len(finishes)} finishes are faults and left out of acc.")
    if faults == len(finishes):
        notes.append("No sample was scored, so there is no acc.")
    tampered = sum(bool(finish.detail.get("tampered")) for finish in finishes)
    if tampered:
        notes.append(
            f"In {tampered} samples the agent changed programs or libraries that judge it (`tampered` in the detail); "
            "profile strict scores these 0, the others do not."
        )
    notes.append("An agent that always answers 0 passes 1 of 26 dev samples and 11 of 60 of the train extract.")
    return tuple(notes)
