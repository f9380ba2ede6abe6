"""What models write to the driver's five questions and to the requests N and R, each with its meaning."""

import json
from pathlib import Path
from typing import Any

import pytest

from environments.stss.appointments import commitment_of
from environments.stss.characters.driver import Context
from environments.stss.characters.model import ModelDriver, open_models
from environments.stss.dataset import home_of, shipped
from environments.stss.reply import FormatError, Note, PerformerReply, Promise, Review, read
from environments.stss.town.schedule import Commitment, stamp, time_text
from proctor.environment import EnvironmentFault
from tests.unit.environments.stss.town_model import Model, model

__all__ = ["model"]
ROWS = [json.loads(line) for line in Path(__file__).with_name("driver_replies.jsonl").read_text().splitlines()]
"""Rows: name, question, reply, meaning (`again`: it is asked again), earlier ones, and what is kept of it `thrice`.

The first 218 are by a hand that never saw the reader.
"""
DRIVEN = [row for row in ROWS if row["question"] not in ("note", "review")]
ASKED_AGAIN = {
    *("labelled string in the list", "free string in the list", "plan rows as lists", "summary unescaped quotes")
}
"""Forms with a meaning that are asked about again all the same: reading them would take a guess."""
TOWN = shipped().town
BEN = TOWN.personas["Ben Osei"]
NOW = 9 * 60
AT_HOME = [{"start": f"{at}:00", "end": f"{at}:30", "activity": "x", "place": "home"} for at in (10, 11, 12, 13)]
USABLE = {
    "day_plan": json.dumps({"wake": "06:00", "bed": "21:00", "schedule": AT_HOME}),
    "wants_to_talk": '{"talk": true, "utterance": "second"}',
    "reply": '{"utterance": "second", "end": false}',
    "after_conversation": '{"topic": "second", "commitments": []}',
    "summary": '{"summary": "second"}',
}


def earlier(row: dict[str, Any]) -> tuple[Commitment, ...]:
    promises = [
        Promise(activity=activity, place=place, start=start, end=end)
        for activity, place, start, end in row.get("earlier", ())
    ]
    return tuple(commitment_of(promise, NOW, [], TOWN.places, home_of(BEN)) for promise in promises)


def place(address: str) -> str:
    sector = address.partition(":")[0]
    return "home" if sector == "Ben's house" else sector


async def meaning(driver: ModelDriver, question: str, context: Context) -> dict[str, object]:
    """What the driver makes of a reply, as the rows write it."""
    match question:
        case "day_plan":
            plan = await driver.day_plan(context, 0)
            rows = [[time_text(row.start), time_text(row.end), row.activity, place(row.address)] for row in plan.rows]
            return {"wake": time_text(plan.wake), "bed": time_text(plan.bed), "rows": rows}
        case "wants_to_talk":
            return {"utterance": await driver.wants_to_talk(context)}
        case "reply":
            utterance, end = await driver.reply(context)
            return {"utterance": utterance, "end": end}
        case "summary":
            return {"summary": await driver.summary(context)}
    result = await driver.after_conversation(context)
    made = [[each.activity, place(each.address), stamp(each.start), stamp(each.end)] for each in result.commitments]
    told = {"commitments": made, "invited": bool(result.invited_to), "topic": result.topic}
    return told | {"dropped": len(result.dropped)}


async def answered(model: Model, cache: Path, row: dict[str, Any], *later: str) -> dict[str, object]:
    """The driver's reading of a row's reply; `later` are the model's next replies."""
    replies = iter([row["reply"], *later])
    model.says = lambda asked: next(replies)
    context = Context(BEN, NOW, "Ada Birch", commitments=earlier(row), memory=(row["name"],))
    async with open_models({"driver": model.config}, cache) as models:
        return await meaning(ModelDriver(TOWN, models["driver"]), row["question"], context)


@pytest.mark.parametrize("row", DRIVEN, ids=[f"{row['question']}: {row['name']}" for row in DRIVEN])
async def test_a_reply_means_what_its_writer_meant_or_is_asked_about_again(
    model: Model, tmp_path: Path, row: dict[str, Any]
) -> None:
    found = await answered(model, tmp_path, row, USABLE[row["question"]])
    if row["meaning"] == "again" or row["name"] in ASKED_AGAIN:
        assert len(model.asked) == 2
        assert "second" in json.dumps(found) or row["question"] == "day_plan" or found["commitments"] == []
    else:
        assert len(model.asked) == 1
        assert_means(found, row["meaning"])


def assert_means(found: dict[str, object], meaning: dict[str, object]) -> None:
    wanted = {name: value for name, value in meaning.items() if value is not None or name == "utterance"}
    assert json.dumps({name: found[name] for name in wanted}) == json.dumps(wanted).replace('"24:00"', '"00:00"')


@pytest.mark.parametrize("row", [row for row in ROWS if row not in DRIVEN], ids=lambda row: row["name"])
def test_what_the_performer_notes_is_read_by_the_same_reader(row: dict[str, Any]) -> None:
    kind: type[PerformerReply] = Note if row["question"] == "note" else Review
    if row["meaning"] == "again":
        with pytest.raises(FormatError):
            read(row["reply"], kind)
    else:
        assert read(row["reply"], kind).model_dump(mode="json") == row["meaning"]


async def test_the_reminder_shows_the_form_and_the_places(model: Model, tmp_path: Path) -> None:
    row = {"name": "no form", "question": "after_conversation", "reply": '{"foo": 1}'}
    await answered(model, tmp_path, row, USABLE["after_conversation"])
    reminder = json.loads(model.asked[1])[-1]["content"]
    assert "Your answer can't be used" in reminder
    assert '"commitments": [{"activity"' in reminder
    assert all(sector in reminder for sector in TOWN.known_places[BEN.name])


@pytest.mark.parametrize("row", [row for row in ROWS if "thrice" in row], ids=lambda row: row["name"])
async def test_what_can_be_read_of_a_third_reply_is_kept_and_read_again_from_the_cache(
    model: Model, tmp_path: Path, row: dict[str, Any]
) -> None:
    first = await answered(model, tmp_path, row, *[row["reply"]] * 2)
    assert len(model.asked) == 3
    assert_means(first, row["thrice"])
    assert await answered(model, tmp_path, row) == first
    assert len(model.asked) == 3


@pytest.mark.parametrize("question", [*USABLE])
async def test_a_model_of_which_nothing_is_readable_is_a_fault(model: Model, tmp_path: Path, question: str) -> None:
    with pytest.raises(EnvironmentFault, match="3 tries"):
        await answered(model, tmp_path, {"name": "x", "question": question, "reply": "{"}, "{", '{"foo": [')
