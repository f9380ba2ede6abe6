"""What surrounds the days: pages, files, frozen meetings, passing invitations on, the floor, broken scenario files."""

import base64
import json
import shutil
import zlib
from pathlib import Path

import pytest

from environments.stss import policies
from environments.stss.dataset import SHIPPED
from environments.stss.days.transcript import DayTranscript, pack, unpack
from environments.stss.environment import Stss
from environments.stss.language.scenarios import chosen, load, meetings
from proctor.session.play import PolicyAgent
from proctor.types import Finish

SAMPLE = "fernmouth_birthday"


async def finish_of(environment: Stss, sample: str = SAMPLE, seed: int = 0) -> Finish:
    return await environment.play(sample, PolicyAgent(environment.reference(sample, seed)), seed)


async def test_evidence_is_small_and_comes_back_whole() -> None:
    finish = await finish_of(Stss())
    packed = str(finish.detail["evidence"])
    day_transcript = unpack(packed)
    assert len(packed) < 40_000
    assert pack(day_transcript) == packed
    assert day_transcript.event_log.digest() == finish.detail["trajectory"]
    with pytest.raises(ValueError, match="not a packed transcript"):
        unpack("aaaa")


async def test_both_files_hold_a_json_object_a_line() -> None:
    day_transcript: DayTranscript = unpack(str((await finish_of(Stss())).detail["evidence"]))
    talks = [json.loads(line) for line in day_transcript.event_log.conversations()]
    assert {"t", "minutes", "people", "lines", "turns", "invited_to", "dropped"} == set(talks[0])
    moves = [json.loads(line) for line in day_transcript.event_log.trajectory()]
    assert {move["kind"] for move in moves} == {"act", "walk", "talk", "sleep"}
    assert [move["t"] for move in moves] == sorted(move["t"] for move in moves)


async def test_a_talk_tells_what_was_asked_in_it_and_only_the_performers_own_count() -> None:
    finish = await finish_of(Stss(sociability=1.0, pass_on=True))
    talks = unpack(str(finish.detail["evidence"])).event_log.talks
    asked = [talk for talk in talks if talk.invited_to]
    assert {talk.invited_to for talk in asked} == {"join me for birthday party"}
    mine = sum("Ada Birch" in talk.people for talk in asked)
    assert finish.metrics["invitations"] == mine
    assert len(asked) > mine > 5
    assert finish.metrics["commitments_dropped"] == sum(len(talk.dropped) for talk in talks) == 0


@pytest.mark.parametrize("fields", [4, 5], ids=["without turns", "without invitations"])
async def test_the_days_of_an_earlier_version_open_and_are_drawn(fields: int) -> None:
    finish = await finish_of(Stss())
    packed = json.loads(zlib.decompress(base64.b64decode(str(finish.detail["evidence"]))))
    packed["talks"] = [talk[:fields] for talk in packed["talks"]]
    old = base64.b64encode(zlib.compress(json.dumps(packed).encode())).decode()
    detail = finish.detail | {"evidence": old, "driver": "rules"}
    earlier, today = unpack(old).event_log, unpack(str(finish.detail["evidence"])).event_log
    assert earlier.records == today.records
    assert earlier.talks == tuple(
        talk._replace(turns=talk.turns if fields == 5 else (), invited_to="", dropped=()) for talk in today.talks
    )
    body = Stss().draw(finish.model_copy(update={"detail": detail})).body
    assert all(f"{talk.people[0]} talks to {talk.people[1]}" in body for talk in today.talks)
    assert ("turn 4" in body) == (fields == 5)


async def test_another_seed_is_another_day() -> None:
    first, second = [await finish_of(Stss(), seed=seed) for seed in (0, 1)]
    assert first.detail["trajectory"] != second.detail["trajectory"]


async def test_invitations_are_passed_on_where_that_is_wished() -> None:
    async def invited(environment: Stss) -> set[str]:
        agreed = unpack(str((await finish_of(environment)).detail["evidence"])).event_log.agreed
        return {each.who for each in agreed}

    spoken = await invited(Stss(sociability=1.0, talks_day_1=3, talks_day_2=0))
    spread = await invited(Stss(sociability=1.0, talks_day_1=3, talks_day_2=0, pass_on=True))
    assert len(spoken) <= 3 < len(spread)


@pytest.mark.parametrize("sociability", [0.0, 1.0])
async def test_more_sociable_people_are_met_more(sociability: float) -> None:
    environment = Stss(sociability=sociability)
    met = 0.0
    for sample in environment.samples():
        finish = await environment.play(sample, PolicyAgent(environment.naive(sample)))
        met += finish.metrics["partners_met"]
    assert met > 20 if sociability else met < 20


async def test_planning_takes_two_calls_more_and_the_reminder_is_told() -> None:
    calls = {}
    for planning in ("ga", "tdp"):
        environment = Stss.model_validate({"planning": planning})
        finish = await environment.play(SAMPLE, PolicyAgent(policies.silent()))
        calls[planning] = finish.metrics["calls"]
    assert calls["tdp"] == calls["ga"] + 2


async def test_a_template_is_played_as_any_task() -> None:
    environment = Stss(templates=1)
    for sample in environment.samples():
        assert (await finish_of(environment, sample)).score == 1.0


async def test_meetings_are_of_day_1_and_for_appointments_with_the_target_only() -> None:
    finish = await finish_of(Stss(), "fernmouth_lighthouse_letters")
    day_transcript = unpack(str(finish.detail["evidence"]))
    with_target = list(meetings("t", "Clara Novak", ["Finn Larsen"], day_transcript.event_log))
    everybody = list(meetings("t", "Clara Novak", [], day_transcript.event_log))
    assert {scenario.partner for scenario in with_target} == {"Finn Larsen"}
    assert len(everybody) >= len(with_target)
    assert chosen([*everybody, *everybody]) == chosen(everybody)


def test_at_most_two_scenarios_of_a_pair_and_twelve_of_a_task_are_kept() -> None:
    base = load(SHIPPED / "scenarios.json")[0]
    many = [
        base.model_copy(update={"id": f"{task}{pair}{n}", "task": task, "partner": str(pair)})
        for task in "ab"
        for pair in range(20)
        for n in range(4)
    ]
    kept = chosen(many)
    assert len(kept) == 24
    assert len({(scenario.task, scenario.partner) for scenario in kept}) == 24
    assert len(chosen(many[:8])) == 4


def test_what_people_know_of_each_other_is_in_the_digest_where_it_is_told(tmp_path: Path) -> None:
    digests = set()
    for told in ("", "Ada Birch,knows Ben Osei"):
        folder = tmp_path / str(len(told))
        shutil.copytree(SHIPPED, folder)
        (folder / "agent_history_init_n12.csv").write_text(f"Name,Whisper\n{told}\n")
        digests |= {(history, Stss(data=folder, history=history).digest()) for history in (False, True)}
    assert sorted(history for history, _ in digests) == [False, True, True]
