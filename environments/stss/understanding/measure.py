"""How much of the labelled utterances the characters understand, as tables."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

from environments.stss.hearing.labelled import SLOTS, Half, Labelled, Slots, utterances, verdict
from environments.stss.understanding.listener import listen
from environments.stss.understanding.replies import Outcome, answered
from environments.stss.understanding.talks import PlayedTalk, talked
from proctor.tables.table import Figure, ResultTable, TableColumn, TableRow

OUTCOMES: dict[Outcome, str] = {
    "understood": "Understood",
    "asked": "Asked",
    "read_back": "Read back",
    "silent": "Silently wrong",
}
NOTE = (
    "The characters' next move on each utterance, played. Understood: every slot is right, and what was not said stays"
    " open. Asked: nothing is wrong, and the reply asks about what was missed. Read back: something is wrong, and the"
    " reply says it aloud, so that the partner can correct it. Silently wrong: all others."
)
TALKS_NOTE = (
    "The talk that begins with each utterance, played to its end with a partner who answers every question, and"
    " corrects what is read back wrong once, in one plain sentence for each slot. Right: what is agreed in the end is"
    " what the utterance meant, and what was refused is taken for refused."
)


Each = TypeVar("Each", "HeardUtterance", "TalkedUtterance")


class HeardUtterance(NamedTuple):
    """An utterance, what was heard of it alone, what the character answered, and how good that is."""

    said: Labelled
    slots: Slots
    reply: str
    outcome: Outcome


class TalkedUtterance(NamedTuple):
    """An utterance, and the talk that begins with it."""

    said: Labelled
    talk: PlayedTalk


async def measure(half: Half) -> tuple[list[HeardUtterance], list[TalkedUtterance]]:
    """What is heard of each utterance of a half and what the character answers, and the talk that begins with it."""
    heard, talks = [], []
    for said in utterances(half):
        reply, outcome = await answered(said)
        heard.append(HeardUtterance(said, listen(said), reply.text, outcome))
        talks.append(TalkedUtterance(said, await talked(said)))
    return heard, talks


def share(heard: Sequence[HeardUtterance], *wanted: Outcome) -> float:
    """The share of utterances with one of these outcomes, from 0 to 1."""
    return sum(each.outcome in wanted for each in heard) / len(heard)


def share_right(talks: Sequence[TalkedUtterance]) -> float:
    """The share of talks that come to what was meant, from 0 to 1."""
    return sum(each.talk.right for each in talks) / len(talks)


def errors(heard: Sequence[HeardUtterance], talks: Sequence[TalkedUtterance]) -> Iterator[str]:
    """What was said and answered where it is not understood, with each slot as it was said and heard; wrong talks."""
    for said, slots, reply, result in heard:
        if result != "understood":
            differ = [name for name in SLOTS if verdict(name, said.slots, slots) != "right"]
            told = "; ".join(f"{name}: said {said.slots[name]!r}, heard {slots[name]!r}" for name in differ)
            yield f"{said.id} {result}: {said.text}\n    {told}\n    {reply}"
    for each in talks:
        if not each.talk.right:
            yield "\n    ".join((f"{each.said.id} wrong talk:", *(f"{who}: {text}" for who, text in each.talk.lines)))


def tables(half: Half, heard: Sequence[HeardUtterance], talks: Sequence[TalkedUtterance]) -> tuple[ResultTable, ...]:
    """For each category shares of utterances, and of talks that come out right; recall and precision of each slot."""
    return _outcomes(half, heard), _talks(half, talks), _slots(half, heard)


def _outcomes(half: Half, heard: Sequence[HeardUtterance]) -> ResultTable:
    columns = (*_first_columns(), *(TableColumn(title, name=name) for name, title in OUTCOMES.items()))
    rows = tuple(
        TableRow((name, len(group), *(Figure(share(group, each), ".3f") for each in OUTCOMES)), rule=name == "all")
        for name, group in _groups(heard)
    )
    return ResultTable(f"STSS: understood utterances, {half} half", columns, rows, (NOTE,))


def _talks(half: Half, talks: Sequence[TalkedUtterance]) -> ResultTable:
    columns = (*_first_columns(), TableColumn("Right in the end", name="right"), TableColumn("Lines", name="lines"))
    rows = tuple(
        TableRow(
            (
                name,
                len(group),
                Figure(share_right(group), ".3f"),
                Figure(sum(len(each.talk.lines) for each in group) / len(group), ".1f"),
            ),
            rule=name == "all",
        )
        for name, group in _groups(talks)
    )
    return ResultTable(f"STSS: talks with a polite partner, {half} half", columns, rows, (TALKS_NOTE,))


def _first_columns() -> tuple[TableColumn, TableColumn]:
    return TableColumn("Category", name="category", left=True), TableColumn("Utterances", name="utterances")


def _groups(found: Sequence[Each]) -> Iterator[tuple[str, Sequence[Each]]]:
    for category in sorted({each.said.category for each in found}):
        yield category, [each for each in found if each.said.category == category]
    yield "all", found


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
