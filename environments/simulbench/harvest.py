"""Converts the finished trials of one stage to the records of the next."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from environments.simulbench import shipped
from environments.simulbench.records import CHANGED, PUBLISHED_LICENCE, Dialogue, Pair, Script, Task
from proctor.plugins import FinishedTrial
from proctor.types import Value


class Harvest(NamedTuple):
    """The records made from a run."""

    records: Sequence[Value]
    left_out: int
    """Number of trials, or pairs of trials, without a record: faults, agents out of context, duplicates."""


def tasks(trials: Sequence[FinishedTrial]) -> Harvest:
    """The authors' tasks, each act once, in the run's order."""
    made: dict[str, Task] = {}
    for trial in trials:
        act = str(trial.finish.detail.get("act"))
        if "request_type" in trial.finish.detail and act.lower() not in made:
            fields = ("act", "task_description", "request_type", "type")
            made[act.lower()] = Task.model_validate(
                {
                    "id": f"{len(made):03d}#{'_'.join(re.findall(r'[A-Za-z0-9]+', act))}",
                    "licence": _marked(trial),
                    **{key: trial.finish.detail[key] for key in fields},
                }
            )
    return Harvest(tuple(made.values()), len(trials) - len(made))


def dialogues(trials: Sequence[FinishedTrial]) -> Harvest:
    """The complete dialogues, with task, agent and epoch in their ids."""
    made = [dialogue for trial in trials if (dialogue := _dialogue(trial)) is not None]
    return Harvest(made, len(trials) - len(made))


def _dialogue(trial: FinishedTrial) -> Dialogue | None:
    detail, file = trial.finish.detail, f"{trial.agent}{f'-{trial.epoch}' if trial.epoch else ''}.json"
    messages = detail.get("messages")
    if "rating" not in trial.finish.metrics or not isinstance(messages, list):
        return None
    return Dialogue.model_validate(
        {
            "id": f"{trial.sample}/{file}",
            "source_id": trial.sample,
            "source_file_name": file,
            "task_description": detail["task_description"],
            "licence": _marked(trial),
            **{key: detail[key] for key in ("act", "type", "messages", "strategies")},
        }
    )


def _marked(trial: FinishedTrial) -> str:
    """The licence of a record made in a trial, with a note if it is made from published records."""
    licence = str(trial.finish.detail["licence"])
    return f"{licence}{CHANGED}" if PUBLISHED_LICENCE in licence and CHANGED not in licence else licence


def scripts(trials: Sequence[FinishedTrial], given: Sequence[Dialogue]) -> Harvest:
    """The scripts of all dialogues, cut at the turn of the first epoch that has one; their ids count from 0."""
    known = {dialogue.id: dialogue for dialogue in given}
    cuts: dict[str, Sequence[Script]] = {}
    for trial in trials:
        turn = trial.finish.detail.get("turn")
        if trial.sample in known and trial.sample not in cuts and isinstance(turn, int):
            cuts[trial.sample] = shipped.cut(known[trial.sample], turn, trial.sample)
    made = [script for cut in cuts.values() for script in cut]
    numbered = [script.model_copy(update={"id": str(number)}) for number, script in enumerate(made)]
    return Harvest(numbered, len(trials) - len(cuts))


def pairs(one: Sequence[FinishedTrial], other: Sequence[FinishedTrial], given: Sequence[Script]) -> Harvest:
    """Pairs of two agents' responses to the same script and epoch; empty if an agent was out of context."""
    known = {script.id: script for script in given}
    second = {(trial.sample, trial.epoch): trial for trial in other}
    made = []
    for trial in one:
        rival = second.get((trial.sample, trial.epoch))
        script = known.get(trial.sample)
        if script is None or rival is None or trial.finish.score is None or rival.finish.score is None:
            continue
        made.append(_pair(script, trial, rival))
    return Harvest(made, max(len(one), len(other)) - len(made))


def _pair(script: Script, one: FinishedTrial, other: FinishedTrial) -> Pair:
    return Pair.model_validate(
        {
            "id": f"{script.id}{f'~{one.epoch}' if one.epoch else ''}",
            "type": script.type,
            "place": one.finish.detail["place"],
            "dialogue_history": script.dialogue_history,
            "a": one.finish.detail.get("response", ""),
            "b": other.finish.detail.get("response", ""),
            "model_a": one.agent,
            "model_b": other.agent,
            "licence": script.licence,
            "exchange": script.exchange,
        }
    )
