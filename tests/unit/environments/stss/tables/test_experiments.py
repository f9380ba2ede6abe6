"""The paper's experiments on finished runs: talks a day, agreed but not kept, action against language."""

import asyncio
import json
from collections.abc import Sequence

import pytest
from click.testing import CliRunner, Result

from environments.stss.commands import stss
from environments.stss.days.event_log import ActivityRecord, Agreed, EventLog, Talk
from environments.stss.days.transcript import DayTranscript, Picture, pack, unpack
from environments.stss.environment import Stss
from environments.stss.hearing.slots import SpokenLine
from environments.stss.tables.levels import levels_table
from environments.stss.tables.talks import key_of, talks_table
from environments.stss.town.clock import DAY
from environments.stss.town.schedule import Commitment
from proctor.plugins import FinishedTrial, RecordedRun
from proctor.session.play import PolicyAgent
from proctor.tables.table import Figure
from proctor.types import Finish, FinishReason
from tests.support import SHARED_DATA
from tests.unit.environments.given_run import GivenRun, pairs_of

TOWN = Picture(width=1, height=1, walls=".", sectors={"Cafe": (0, 0, 1, 1)})
TEN = DAY + 600


def talk(minute: int, *people: str) -> Talk:
    return Talk(minute, 1, (people[0], people[1]), (SpokenLine(people[0], "Hello"),))


def agreed(who: str, start: int) -> Agreed:
    commitment = Commitment(activity="party", address="Cafe:bar", start=start, end=start + 60)
    return Agreed(500, who, commitment)


def act(minute: int, who: str, activity: str, sector: str) -> ActivityRecord:
    return ActivityRecord(minute, who, 0, sector, "bar", activity, f"Town:{sector}:bar", "act")


RECORDS = (
    act(0, "Ann", "party", "Cafe"),
    act(0, "Bob", "reading", "Library"),
    act(TEN + 10, "Bob", "party", "Library"),
    act(0, "Cid", "party", "Cafe"),
)
LOG = EventLog(
    RECORDS,
    (talk(500, "Me", "Ann"), talk(510, "Bob", "Me"), talk(520, "Ann", "Bob"), talk(DAY + 480, "Me", "Cid")),
    (agreed("Ann", TEN), agreed("Bob", TEN), agreed("Cid", TEN + 120), agreed("Me", TEN)),
)
COUNTS = {"partners_met": 3.0, "commitments_made": 3.0, "commitments_kept": 2.0, "no_shows": 1.0}


def acted(
    score: float = 0.5, sample: str = "one", agent: str = "a", category: str = "public", planning: str = "tdp"
) -> FinishedTrial:
    """A trial of two days in which Ann came, Bob did not, and Cid came at an hour that does not count."""
    day = DayTranscript(LOG, TOWN, [("Ann", 0, TEN, TEN + 60)])
    detail = {"level": "action", "planning": planning, "category": category, "performer": "Me", "driver": "rules"}
    detail |= {"evidence": pack(day), "trajectory": LOG.digest()}
    finish = {"reason": "completed", "score": score, "metrics": COUNTS, "detail": detail}
    return FinishedTrial(
        run="r", agent=agent, task=f"days-{planning}", sample=sample, epoch=0, finish=Finish.model_validate(finish)
    )


def spoke(sr: float, gcsr: float, sample: str = "one", category: str = "public") -> FinishedTrial:
    detail = {"level": "language", "planning": "tdp", "category": category}
    metrics = {"sr_conversation": sr, "gcsr_conversation": gcsr}
    finish = Finish.model_validate({"reason": "completed", "score": sr, "metrics": metrics, "detail": detail})
    return FinishedTrial(run="r", agent="a", task="talks", sample=sample, epoch=0, finish=finish)


def table(trials: Sequence[FinishedTrial], *options: str) -> Result:
    def open_run(_: str) -> RecordedRun:
        return GivenRun(trials)

    return CliRunner().invoke(stss, ["table", "r", *options], obj=open_run)


def rows(trials: Sequence[FinishedTrial], option: str) -> list[dict[str, object]]:
    result = table(trials, option, "--format=json")
    assert result.exit_code == 0, result.output
    made: list[dict[str, object]] = json.loads(result.output)["tables"][-1]["rows"]
    return made


def shown(cells: Sequence[object]) -> list[str]:
    return [cell.lines()[0] for cell in cells if isinstance(cell, Figure)]


def test_talks_stand_by_day_and_agreements_by_what_came_of_them() -> None:
    (row,) = rows([acted()], "--talks")
    assert row["Not kept"] == {"value": pytest.approx(100 / 3), "samples": 3}
    figures = {key: value for key, value in row.items() if isinstance(value, float)}
    assert figures == {
        **{"Talks Day 1": 2.0, "Talks Day 2": 1.0, "People met": 3.0},
        **{"Agreements Made": 3.0, "Agreements Kept": 2.0, "Agreements Counted": 1.0},
    }


def test_who_agreed_and_did_not_do_it_is_listed_with_what_was_done_instead() -> None:
    told = [
        {key: row[key] for key in ("Person", "Agreed", "When", "Kept", "Instead")}
        for row in rows([acted()], "--no-shows")
    ]
    assert told == [
        {
            **{"Person": "Bob", "Agreed": "party, Cafe", "When": "2023-02-14 10:00-11:00"},
            **{"Kept": "no", "Instead": "party, Library"},
        },
        {
            **{"Person": "Cid", "Agreed": "party, Cafe", "When": "2023-02-14 12:00-13:00"},
            **{"Kept": "yes", "Instead": "-"},
        },
    ]


def test_the_levels_are_compared_over_the_tasks_that_both_have() -> None:
    fault = acted(sample="four")
    trials = [
        *(spoke(1.0, 1.0), spoke(0.5, 0.75, "two"), spoke(0.0, 0.5, "three", "help")),
        *(spoke(1.0, 1.0, "four"), spoke(1.0, 1.0, "language alone")),
        *(acted(0.4), acted(0.1, "two"), acted(1.0, "three", category="help"), acted(1.0, planning="ga")),
        *(acted(1.0, "action alone"), acted(1.0, agent="another")),
        fault.model_copy(update={"finish": Finish.fault(FinishReason.AGENT_ERROR, "gone")}),
    ]
    made = levels_table(trials, pairs_of(trials))
    assert [row.cells[:3] for row in made.rows] == [
        ("a", "GA + TDP", "Public activity"),
        ("a", "GA + TDP", "Asking for help"),
        ("a", "GA + TDP", "All tasks"),
    ]
    assert [shown(row.cells) for row in made.rows] == [
        ["75.0", "87.5", "25.0", "+50.0"],
        ["0.0", "50.0", "100.0", "-100.0"],
        ["50.0", "75.0", "50.0", "+0.0"],
    ]


@pytest.mark.parametrize(
    ("trials", "option", "told"),
    [
        ([spoke(1, 1)], "--talks", "r: no trial of stss at the action level has finished in them"),
        ([spoke(1, 1)], "--levels", "r: no agent has played a task at both levels; give the RUNs of both"),
        ([acted()], "--levels", "no agent has played a task at both levels"),
    ],
)
def test_what_a_table_needs_is_told(trials: list[FinishedTrial], option: str, told: str) -> None:
    result = table(trials, option)
    assert (result.exit_code, result.output.count("Error: ")) == (2, 1)
    assert told in result.output


def test_damaged_days_are_told() -> None:
    detail = acted().finish.detail | {"evidence": "damaged"}
    broken = acted().model_copy(update={"finish": acted().finish.model_copy(update={"detail": detail})})
    result = table([broken], "--no-shows")
    assert (result.exit_code, "a on days-tdp, one: the stored days of its finish are damaged" in result.output) == (
        2,
        True,
    )


@pytest.mark.shared
def test_the_talks_of_public_tasks_are_those_of_their_files() -> None:
    """The published statistic counts a performer's talks by the date in the stored conversations."""
    trials = asyncio.run(public_trials())
    days = {key_of(trial): unpack(str(trial.finish.detail["evidence"])) for trial in trials}
    early, late = 0, 0
    for trial in trials:
        me = trial.finish.detail["performer"]
        for line in days[key_of(trial)].event_log.conversations():
            written = json.loads(line)
            early += me in written["people"] and written["t"].startswith("2023-02-13")
            late += me in written["people"] and written["t"].startswith("2023-02-14")
    assert min(early, late) > 0
    (row,) = talks_table(trials, pairs_of(trials), days).rows
    assert [cell.value for cell in row.cells if isinstance(cell, Figure)][:2] == [early / 4, late / 4]
    missed = rows(trials, "--no-shows")
    assert 0 < len(missed) < sum(trial.finish.metrics["commitments_made"] for trial in trials)


async def public_trials() -> list[FinishedTrial]:
    """A performer at one place that repeats its goal, on four public tasks."""
    environment = Stss(data=SHARED_DATA / "stss", planning="ga")
    return [
        FinishedTrial(
            run="r",
            agent="a",
            task="days",
            sample=sample,
            epoch=0,
            finish=await environment.play(sample, PolicyAgent(environment.naive(sample))),
        )
        for sample in environment.samples()[:4]
    ]
