"""The paper's experiments: verdicts by subset, the easiest and hardest tasks, without the scripts that all solve."""

import asyncio
from collections.abc import Sequence
from statistics import mean

import pytest
from click.testing import CliRunner, Result

from environments.simulbench import dataset, harvest
from environments.simulbench.commands import simulbench
from environments.simulbench.environment import SimulBench
from environments.simulbench.records import Dialogue, Script
from environments.simulbench.tables.paper import ratings_table, subset_verdicts_table
from environments.simulbench.tables.solved import without_solved
from environments.simulbench.tables.tasks import tasks_table
from proctor.plugins import FinishedTrial, RecordedRun
from proctor.session.play import PolicyAgent
from proctor.tables.table import Figure
from proctor.types import Finish, FinishReason
from tests.support import SHARED_DATA
from tests.unit.environments.given_run import GivenRun, pairs_of

FAULT = Finish.fault(FinishReason.TASK_ERROR, "judge_unparsed")


def trial(sample: str, finish: Finish, agent: str = "a", task: str = "t", epoch: int = 0) -> FinishedTrial:
    return FinishedTrial(run="r", agent=agent, task=task, sample=sample, epoch=epoch, finish=finish)


def rated(rating: float, act: str = "Lift", kind: str = "stateful", place: str = "firstchan") -> Finish:
    detail = {"simulbench": "script", "act": act, "type": kind, "place": place}
    finish = {"reason": "completed", "score": 0.5, "metrics": {"rating": rating}, "detail": detail}
    return Finish.model_validate(finish)


def compared(outcome: str, place: str = "firstchan", kind: str = "stateful") -> Finish:
    metrics = {name: float(name == outcome) for name in ("win", "tie", "lose")}
    detail = {"simulbench": "compare", "candidate": "new", "reference": "old", "place": place, "type": kind}
    return Finish.model_validate({"reason": "completed", "score": 0.5, "metrics": metrics, "detail": detail})


def shown(table_row: Sequence[object]) -> list[str]:
    return [cell.lines()[0] for cell in table_row if isinstance(cell, Figure)]


def test_wins_ties_and_losses_stand_by_subset_and_add_up_to_table_1() -> None:
    first = [compared(each) for each in ["win"] * 40 + ["tie"] * 33 + ["lose"] * 20]
    later = [compared(each, "subseqchan", "stateless") for each in ["win"] * 71 + ["tie"] * 65 + ["lose"] * 46]
    trials = [trial(str(number), finish) for number, finish in enumerate(first + later)]
    table = subset_verdicts_table(trials, pairs_of(trials))
    rows = {str(row.cells[3]): row.cells for row in table.rows}
    assert list(rows) == ["First Chan", "Subseq Chan", "Stateful", "Hard", "All"]
    assert shown(rows["First Chan"]) == ["43.01", "35.48", "21.51", "21.51"]
    assert shown(rows["Stateful"]) == shown(rows["First Chan"])
    assert shown(rows["Hard"]) == shown(rows["All"]) == ["40.36", "35.64", "24.00", "16.36"]
    assert isinstance(difference := rows["All"][-1], Figure)
    assert difference.samples == 275


def test_a_task_ranks_by_the_mean_over_agents_each_of_which_weighs_the_same() -> None:
    trials = [
        *(trial(sample, rated(10.0, "Lift")) for sample in ("1", "2")),
        trial("1", rated(4.0, "Lift"), "b"),
        trial("2", FAULT, "b"),
        *(trial("3", rated(rating, "Chess", "stateless"), agent) for agent, rating in (("a", 9.0), ("b", 6.0))),
        *(trial("4", rated(1.0, "Poet"), agent) for agent in "ab"),
    ]
    table = tasks_table(trials, pairs_of(trials), 1)
    assert table.title == "SimulBench: easiest and hardest of 3 tasks: 7 of 8 planned trials are scored"
    assert [row.cells[:3] for row in table.rows] == [("Chess", "stateless", 1), ("Poet", "stateful", 3)]
    everything = tasks_table(trials, pairs_of(trials), 2).rows
    assert [shown(row.cells) for row in everything] == [
        ["7.50", "6.00", "9.00"],
        ["7.00", "4.00", "10.00"],
        ["1.00", "1.00", "1.00"],
    ]
    assert [row.rule for row in everything] == [False] * 3


def test_a_script_is_dropped_where_every_agent_solved_it_in_every_epoch_and_its_pairs_too() -> None:
    trials = [
        *(trial(sample, rated(9.0)) for sample in ("both", "one", "fault", "again")),
        trial("again", rated(5.0), epoch=1),
        trial("both", rated(9.5), "b"),
        trial("one", rated(8.9), "b"),
        trial("fault", FAULT, "b"),
        trial("again", rated(10.0), "b"),
        *(trial(sample, compared("win"), "judge", "c") for sample in ("both", "both~1", "one")),
    ]
    left = without_solved(trials, pairs_of(trials), 9)
    assert left.note == "Left out: 1 of 4 scripts, for which every agent was rated at least 9."
    assert {each.sample for each in left.trials} == {"one", "fault", "again"}
    assert [pair.planned for pair in left.pairs] == [4, 3, 1]
    means = [shown(row.cells)[-1] for row in ratings_table(left.trials, left.pairs).rows]
    assert means == ["9.45", "8.00"]


@pytest.mark.parametrize(
    ("trials", "said"),
    [
        ([trial("1", compared("win"))], "no RUN of the mode `script` has ratings"),
        ([trial("1", rated(9)), trial("1", rated(9, "Chess"), "b")], "is of two tasks, 'Lift' and 'Chess'"),
        ([trial("1", rated(9))], "for all 1 scripts; raise the rating"),
        ([trial("1", rated(2)), trial("2", compared("win"), "j", "c")], "a script '2', which no RUN has played"),
    ],
)
def test_what_cannot_be_dropped_is_told(trials: list[FinishedTrial], said: str) -> None:
    result = run(trials, "table", "r", "--drop-solved=9")
    assert (result.exit_code, result.output.count("Error: ")) == (2, 1)
    assert said in result.output


@pytest.mark.parametrize(("option", "mode"), [("--by-subset", "compare"), ("--extremes=2", "script")])
def test_a_table_without_a_run_for_it_is_told(option: str, mode: str) -> None:
    trials = [trial("1", compared("win") if mode == "script" else rated(2))]
    result = run(trials, "table", "r", option)
    assert (result.exit_code, f"no finished trial of the mode `{mode}`" in result.output) == (2, True)


@pytest.mark.shared
def test_the_public_scripts_rank_and_drop_as_a_hand_computation_over_their_trials_says() -> None:
    trials = asyncio.run(public_trials())
    means: dict[str, list[float]] = {}
    for act in {str(each.finish.detail["act"]) for each in trials}:
        of_act = [each for each in trials if each.finish.detail["act"] == act]
        means[act] = [mean(each.finish.metrics["rating"] for each in of_act if each.agent == name) for name in AGENTS]
    ranked = sorted(means, key=lambda act: (-mean(means[act]), act))
    rows = tasks_table(trials, pairs_of(trials), 3).rows
    assert len(ranked) == 13
    assert [row.cells[0] for row in rows] == ranked[:3] + ranked[-3:]
    solved = {
        sample
        for sample in {each.sample for each in trials}
        if all(each.finish.metrics["rating"] >= 3 for each in trials if each.sample == sample)
    }
    left = without_solved(trials, pairs_of(trials), 3)
    assert 0 < len(solved) < 60
    assert {each.sample for each in left.trials} == {each.sample for each in trials} - solved
    hard = [each for each in left.trials if each.agent == "naive" and each.finish.detail["place"] != "lastonly"]
    table = ratings_table(left.trials, left.pairs)
    (naive,) = [row.cells for row in table.rows if row.cells[0] == "naive"]
    assert isinstance(figure := naive[-2], Figure)
    assert (figure.value, figure.samples) == (mean(each.finish.metrics["rating"] for each in hard), len(hard))


async def test_three_dialogues_of_a_task_are_three_epochs_and_each_script_of_them_weighs_the_same() -> None:
    """The published names: the model's name without a number, then with -1 and -2."""
    environment = SimulBench(mode="live")
    task = "001#Lift"
    async with environment.lifespan():
        live = [
            trial(task, await environment.play(task, PolicyAgent(environment.random(task, epoch)), epoch), epoch=epoch)
            for epoch in range(3)
        ]
    dialogues = [each for each in harvest.dialogues(live).records if isinstance(each, Dialogue)]
    assert [each.source_file_name for each in dialogues] == ["a.json", "a-1.json", "a-2.json"]
    assert len({each.messages for each in dialogues}) == 3
    turns = dict(zip((each.id for each in dialogues), (2, 0, 4), strict=True))
    found = [
        trial(name, Finish.model_validate({"reason": "completed", "score": 1.0, "detail": {"turn": turn}}))
        for name, turn in turns.items()
    ]
    scripts = [each for each in harvest.scripts(found, dialogues).records if isinstance(each, Script)]
    places = [*dataset.places(scripts).values()]
    assert places == ["firstchan", "subseqchan", "subseqchan", "lastonly", "firstchan"]
    trials = [
        trial(script.id, rated(rating, script.act, script.type, place))
        for script, place, rating in zip(scripts, places, (2.0, 4.0, 6.0, 9.0, 10.0), strict=True)
    ]
    (row,) = ratings_table(trials, pairs_of(trials)).rows
    assert shown(row.cells) == ["9.00", "6.00", "5.00", "-", "6.00", "5.50", "6.20"]


AGENTS = ("reference", "naive", "random")


async def public_trials() -> list[FinishedTrial]:
    """The built-in agents on the public scripts, rated by rules."""
    environment = SimulBench(data=SHARED_DATA / "simulbench" / "simulbench_dev.jsonl")
    async with environment.lifespan():
        return [
            trial(sample, await environment.play(sample, PolicyAgent(getattr(environment, name)(sample))), name)
            for name in AGENTS
            for sample in environment.samples()
        ]


def run(trials: list[FinishedTrial], *arguments: str) -> Result:
    def open_run(_: str) -> RecordedRun:
        return GivenRun(trials)

    return CliRunner().invoke(simulbench, arguments, obj=open_run)
