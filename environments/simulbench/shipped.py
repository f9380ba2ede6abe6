"""The shipped tasks, dialogues, scripts and pairs, all made from `samples/dialogues.yaml`."""

import functools
from pathlib import Path

from pydantic import Field

from environments.simulbench.dataset import places
from environments.simulbench.policies import naive
from environments.simulbench.records import TURNS, Dialogue, DialogueLine, Exchange, Kind, Pair, Script, Task
from proctor.config.yaml import load
from proctor.types import Value

FILE = Path(__file__).with_name("samples") / "dialogues.yaml"
OWN_LICENCE = "Apache-2.0: Proctor"


class _Written(Value):
    act: str
    type: Kind
    request_type: str
    challenging: int = Field(ge=0, le=TURNS)
    """The first challenging turn, from 1; 0 if there is none."""
    exchanges: tuple[Exchange, ...] = Field(min_length=TURNS, max_length=TURNS)


class _File(Value):
    dialogues: tuple[_Written, ...]


def tasks() -> tuple[Task, ...]:
    """One task for each dialogue, with its right replies."""
    return tuple(
        Task(
            id=_id(number, written),
            act=written.act,
            task_description=written.exchanges[0].request,
            request_type=written.request_type,
            type=written.type,
            licence=OWN_LICENCE,
            exchanges=written.exchanges,
        )
        for number, written in enumerate(_written())
    )


def dialogues() -> tuple[Dialogue, ...]:
    """One dialogue for each task."""
    return tuple(
        dialogue_of(
            task,
            [text for exchange in task.exchanges for text in (exchange.request, exchange.answer)],
            source_file_name="proctor.json",
        )
        for task in tasks()
    )


def scripts() -> tuple[Script, ...]:
    """The scripts of all dialogues, cut at their challenging turns."""
    return tuple(
        script
        for dialogue, written in zip(dialogues(), _written(), strict=True)
        for script in cut(dialogue, written.challenging, dialogue.id[:3])
    )


def pairs() -> tuple[Pair, ...]:
    """For each script the naive policy's reply and the right reply."""
    of = places(scripts())
    return tuple(
        Pair(
            id=script.id,
            type=script.type,
            place=of[script.id],
            dialogue_history=script.dialogue_history,
            a=naive("main", [line.message() for line in script.dialogue_history]).content,
            b=script.exchange.answer,
            model_a="naive",
            model_b="reference",
            licence=script.licence,
            exchange=script.exchange,
        )
        for script in scripts()
        if script.exchange is not None
    )


def dialogue_of(task: Task, texts: list[str], *, source_file_name: str) -> Dialogue:
    """A whole dialogue about a task; `texts` are those of user and assistant in turn."""
    return Dialogue(
        id=f"{task.id}/{source_file_name}",
        source_id=task.id,
        act=task.act,
        task_description=task.task_description,
        type=task.type,
        source_file_name=source_file_name,
        messages=tuple(
            DialogueLine(role="assistant" if index % 2 else "user", content=text) for index, text in enumerate(texts)
        ),
        licence=task.licence,
        exchanges=task.exchanges,
    )


def cut(dialogue: Dialogue, first: int, name: str) -> tuple[Script, ...]:
    """The scripts of a dialogue up to turn `first` and up to each later one; if `first` is 0, one up to the last turn.

    Their ids are `<name>-<turn>`.
    """
    return tuple(_script(dialogue, turn, f"{name}-{turn}") for turn in (range(first, TURNS + 1) if first else (0,)))


def _script(dialogue: Dialogue, turn: int, name: str) -> Script:
    upto = turn or TURNS
    return Script(
        id=name,
        source_id=dialogue.source_id,
        act=dialogue.act,
        task_description=dialogue.task_description,
        type=dialogue.type,
        source_file_name=dialogue.source_file_name,
        turn_num=turn,
        dialogue_history=dialogue.messages[: 2 * upto - 1],
        licence=dialogue.licence,
        exchange=dialogue.exchanges[upto - 1] if dialogue.exchanges else None,
    )


def _id(number: int, written: _Written) -> str:
    return f"{number:03d}#{written.act.replace(' ', '_')}"


@functools.cache
def _written() -> tuple[_Written, ...]:
    return load(FILE, _File).dialogues
