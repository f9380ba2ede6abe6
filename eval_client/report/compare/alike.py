"""What makes two sides unlike, so that a difference of their scores would not be the agents'."""

from collections.abc import Collection
from typing import Literal, NamedTuple, get_args

from eval_client.plan.plan import differences
from eval_client.report.alike import shaping_parameters
from eval_client.report.compare.sides import TaskSide
from eval_client.report.reference import NotComparable

Across = Literal["limits", "seed", "version", "task"]
ACROSS = get_args(Across)
"""Kinds of unlikeness that a comparison may be made across."""


class Unlike(NamedTuple):
    """One field that differs."""

    kind: Across | None
    """None for what nothing can be compared across."""
    text: str
    """`field: A's -> B's`"""


def unlike(a: TaskSide, b: TaskSide) -> list[Unlike]:
    """All that differs between two sides, agents and their endpoints aside."""
    one, other = a.record, b.record
    if one.environment != other.environment:
        return [Unlike(None, f"tasks.{a.task}.environment: {one.environment!r} -> {other.environment!r}")]
    found: list[Unlike] = []
    if one.digest != other.digest:
        texts = _parameters(a, b) or [f"tasks.{a.task}: data or prompts"]
        found += [Unlike("task", f"{text} (digest {one.digest[:12]} -> {other.digest[:12]})") for text in texts]
    mine, its = a.manifest.identity, b.manifest.identity
    found += [Unlike("limits", text) for text in differences(mine.get("limits"), its.get("limits"), "limits")]
    found += [Unlike("seed", text) for text in differences(mine.get("seed"), its.get("seed"), "seed")]
    if _minor(a.manifest.version) != _minor(b.manifest.version):
        found.append(Unlike("version", f"version of Proctor: {a.manifest.version} -> {b.manifest.version}"))
    return found


def check_alike(pairs: Collection[tuple[TaskSide, TaskSide]], across: Collection[str]) -> None:
    """Raises NotComparable with all differences of two agents' tasks that are not waved through.

    Also where two tasks that differ have other samples: across tasks, samples are paired by their ids.
    """
    refused = [each for a, b in pairs for each in unlike(a, b) if each.kind not in across]
    if not refused:
        for a, b in pairs:
            _check_ids(a, b)
        return
    lines = "\n  ".join(dict.fromkeys(each.text for each in refused))
    kinds = sorted({each.kind for each in refused if each.kind is not None})
    fix = "compare tasks of one environment"
    if all(each.kind is not None for each in refused):
        fix = f"to compare all the same: {' '.join(f'--across {kind}' for kind in kinds)}"
    a, b = next(iter(pairs))
    raise NotComparable(f"{a.label} and {b.label} are not alike:\n  {lines}\n{fix}")


def _check_ids(a: TaskSide, b: TaskSide) -> None:
    """Raises NotComparable where each of two tasks that differ has samples that the other lacks; --limit cuts one."""
    only_a, only_b = a.scores.keys() - b.scores.keys(), b.scores.keys() - a.scores.keys()
    if a.record.digest != b.record.digest and only_a and only_b:
        raise NotComparable(
            f"tasks {a.task} and {b.task} have different samples: {min(only_a)!r} only in {a.label}, {min(only_b)!r} "
            f"only in {b.label}; --across task needs equal ids"
        )


def _parameters(a: TaskSide, b: TaskSide) -> list[str]:
    """The parameters that differ; none where a controller defines the task, since the manifest has none then."""
    one, other = shaping_parameters(a.manifest, a.task), shaping_parameters(b.manifest, b.task)
    return [] if one is None or other is None else differences(one, other, f"tasks.{a.task}.parameters")


def _minor(version: str) -> list[str]:
    return version.split(".")[:2]
