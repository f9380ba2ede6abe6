"""How much of the labelled utterances the characters understand, as tables."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from environments.stss.hearing.labelled import SLOTS, Half, Labelled, Outcome, Slots, outcome, utterances, verdict
from proctor.tables.table import Figure, ResultTable, TableColumn, TableRow

Listen = Callable[[Labelled], Slots]
"""Reads an utterance: the values of `SLOTS`."""
NOTE = (
    "Understood: every slot is right, and what was not said stays open to be asked about. Asked again: nothing is"
    " wrong, but a slot that was said is asked about. Silently wrong: all others."
)


class HeardUtterance(NamedTuple):
    """An utterance, what was heard, and how good that is."""

    said: Labelled
    slots: Slots
    outcome: Outcome


def hear(half: Half, listen: Listen) -> list[HeardUtterance]:
    """What is heard of each utterance of a half."""
    found = [(said, listen(said)) for said in utterances(half)]
    return [HeardUtterance(said, slots, outcome(said.slots, slots)) for said, slots in found]


def share(heard: Sequence[HeardUtterance], wanted: Outcome) -> float:
    """The share of utterances with an outcome, from 0 to 1."""
    return sum(each.outcome == wanted for each in heard) / len(heard)


def errors(heard: Sequence[HeardUtterance]) -> Iterator[str]:
    """A line for each utterance that is not understood: what was said, and each slot as it was said and heard."""
    for said, slots, result in heard:
        if result != "understood":
            differ = [name for name in SLOTS if verdict(name, said.slots, slots) != "right"]
            told = "; ".join(f"{name}: said {said.slots[name]!r}, heard {slots[name]!r}" for name in differ)
            yield f"{said.id} {result}: {said.text}\n    {told}"


def tables(half: Half, heard: Sequence[HeardUtterance]) -> tuple[ResultTable, ResultTable]:
    """Shares of utterances for each category, and recall and precision of each slot."""
    return _outcomes(half, heard), _slots(half, heard)


def _groups(heard: Sequence[HeardUtterance]) -> Iterator[tuple[str, Sequence[HeardUtterance]]]:
    for category in sorted({each.said.category for each in heard}):
        yield category, [each for each in heard if each.said.category == category]
    yield "all", heard


def _outcomes(half: Half, heard: Sequence[HeardUtterance]) -> ResultTable:
    names = (TableColumn("Category", name="category", left=True), TableColumn("Utterances", name="utterances"))
    wanted: dict[Outcome, str] = {"understood": "Understood", "asked": "Asked again", "silent": "Silently wrong"}
    columns = tuple(TableColumn(title, name=name) for name, title in wanted.items())
    rows = tuple(
        TableRow((name, len(group), *(Figure(share(group, each), ".3f") for each in wanted)), rule=name == "all")
        for name, group in _groups(heard)
    )
    return ResultTable(f"STSS: understood utterances, {half} half", (*names, *columns), rows, (NOTE,))


def _slots(half: Half, heard: Sequence[HeardUtterance]) -> ResultTable:
    names = TableColumn("Slot", name="slot", left=True)
    groups = list(_groups(heard))
    columns = tuple(
        TableColumn(title, name=f"{title.lower()}_{group}", group=group)
        for group, _ in groups
        for title in ("Recall", "Precision")
    )
    rows = tuple(
        TableRow((slot, *(figure for _, group in groups for figure in _recall_and_precision(slot, group))))
        for slot in SLOTS
    )
    return ResultTable(f"STSS: recall and precision of slots, {half} half", (names, *columns), rows)


def _recall_and_precision(slot: str, heard: Sequence[HeardUtterance]) -> tuple[Figure, Figure]:
    said = sum(each.said.slots[slot] is not None for each in heard)
    found = [each for each in heard if each.slots[slot] is not None]
    right = sum(verdict(slot, each.said.slots, each.slots) == "right" for each in found)
    return Figure(right / said if said else None, ".2f"), Figure(right / len(found) if found else None, ".2f")
