"""The metrics of many finishes: accuracy by type, and the mean over the three categories (AgentBench v0.2, dbbench)."""

from collections.abc import Mapping, Sequence

from environments.database.dataset import CATEGORIES, SELECT_KINDS
from proctor.summary import means
from proctor.types import Finish, Summary

NAMES = (*SELECT_KINDS, *CATEGORIES)
NOISE = (
    "Published SELECT labels are noisy: some were computed before rows were added to the table, some hold another "
    "aggregate; perfect SQL does not reach 1.0 on them."
)
COVERAGE = "Accuracies are over scored samples; `requested` and `scored` are counted for each category."
WORDING = "The instruction is in our own words, with the content and the reply forms of the published one."
TOOLS_WORDING = "Instruction and functions are described in our own words; the functions are those of AgentBench FC."


def summarize(finishes: Sequence[Finish], wording: str | None) -> Summary:
    """All metrics. Faults enter no accuracy; only `requested` counts them. A type without a scored sample has none.

    `wording` is the note on the instruction; None for the published one.
    """
    scored = [(finish, finish.score) for finish in finishes if finish.score is not None]
    accuracies = _accuracies(NAMES, scored)
    overall = _category_mean("overall_cat_accuracy", accuracies)
    for profile in ("compat", "strict"):
        judged = [(finish, finish.metrics[profile]) for finish, _ in scored if profile in finish.metrics]
        overall |= _category_mean(f"overall_cat_accuracy_{profile}", _accuracies(CATEGORIES, judged))
    counts = {"requested": float(len(finishes)), "scored": float(len(scored))}
    for name in CATEGORIES:
        counts[f"{name}_requested"] = float(sum(_counts_for(finish, name) for finish in finishes))
        counts[f"{name}_scored"] = float(sum(_counts_for(finish, name) for finish, _ in scored))
    counts["setup_failed"] = float(sum(finish.detail.get("setup_failed") is True for finish in finishes))
    notes = (*_left_out(accuracies), NOISE, COVERAGE, *([wording] if wording else []))
    return Summary(primary="overall_cat_accuracy", metrics=overall | accuracies | counts, notes=notes)


def _counts_for(finish: Finish, name: str) -> bool:
    """Whether a name is a finish's type or its category."""
    return name in (finish.detail.get("type"), finish.detail.get("category"))


def _accuracies(names: Sequence[str], marks: Sequence[tuple[Finish, float]]) -> dict[str, float]:
    """`<name>_accuracy`, the mean mark, for each name that has a mark."""
    by_name = {name: [mark for finish, mark in marks if _counts_for(finish, name)] for name in names}
    return means({f"{name}_accuracy": found for name, found in by_name.items()})


def _category_mean(name: str, accuracies: Mapping[str, float]) -> dict[str, float]:
    """The mean over the categories that have an accuracy, under `name`; empty where none has."""
    present = [accuracies[f"{category}_accuracy"] for category in CATEGORIES if f"{category}_accuracy" in accuracies]
    return means({name: present})


def _left_out(accuracies: Mapping[str, float]) -> tuple[str, ...]:
    """A note on the categories without a scored sample, which the overall accuracy leaves out."""
    missing = [name for name in CATEGORIES if f"{name}_accuracy" not in accuracies]
    if not missing or len(missing) == len(CATEGORIES):
        return ()
    count = len(CATEGORIES) - len(missing)
    return (
        f"`overall_cat_accuracy` is over {count} of {len(CATEGORIES)} categories: "
        f"no sample of {' or '.join(missing)} is scored.",
    )
