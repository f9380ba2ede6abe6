"""What a run found out, and how it is shown."""

import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic import JsonValue

from eval_client.plan.plan import Plan
from eval_client.report.pair_report import RunReport
from eval_client.report.report import report
from eval_client.report.run_tables import matrix_table, pairs_table, report_tables, took
from eval_client.run.context import spent_so_far
from eval_client.store.connection import StoreError, connect, sqlite_url
from eval_client.store.journal import Cost, Journal
from eval_client.store.records import Manifest, TaskRecord, Trial, Turn
from eval_client.store.store import Store
from eval_client.store.tables import trial_table
from proctor.tables.command import rendered
from proctor.types import Action, Finish, FinishReason, Summary, Usage
from task_server.wire.messages import Act
from tests.support import unscored
from tests.unit.eval_client.report.pairs import pair

PLAN: dict[str, JsonValue] = {
    "agents": [
        {"name": "paid", "model": "m", "price": {"input": 2.0, "output": 10.0}},
        {"name": "free", "builtin": "naive"},
    ],
    "tasks": [{"name": "t", "environment": "ltp"}],
}
ENDS = [
    Finish(reason=FinishReason.COMPLETED, score=1.0),
    Finish(reason=FinishReason.TURN_LIMIT, score=0.5),
    Finish.fault(FinishReason.TASK_ERROR, "no room"),
]


async def played(
    folder: Path,
    ends: Sequence[Finish],
    cost: Cost,
    *,
    plan: Mapping[str, JsonValue] = PLAN,
    clusters: Sequence[str] = (),
    **task: Any,
) -> Store:
    """A run in whose first trials, which are of the plan's first agent, all this came out; of others none is played."""
    folder.mkdir(exist_ok=True)
    store = Store(connect(sqlite_url(folder)), "r")
    agents, cluster = [agent.name for agent in Plan.model_validate(plan).agents], dict(enumerate(clusters))
    trials = [
        Trial(id=n, agent=agent, task="t", sample=f"s{n % len(ends)}", epoch=0, cluster=cluster.get(n))
        for n, agent in enumerate(agent for agent in agents for _ in ends)
    ]
    tasks = {"t": TaskRecord(environment="ltp", digest="d", samples=len(ends), **task)}
    store.create(Manifest(version="1", plan_path="p", plan={**plan}, identity={}, tasks=tasks), trials)
    journal = Journal(store, store.take_over())
    for trial, end in zip(trials, ends, strict=False):
        await journal.begin(trial, 1, 0, f"{trial.id:032}")
        await journal.finish(trial, 1, "w", end, cost)
    await journal.close()
    return store


def alone(**agent: JsonValue) -> dict[str, JsonValue]:
    """The plan with this agent alone."""
    return {**PLAN, "agents": [agent]}


@pytest.fixture
async def store(tmp_path: Path) -> Store:
    """Two of three trials of `paid` are scored, none of `free` is played."""
    return await played(tmp_path, ENDS, Cost(4, Usage(1_000_000, 200_000), 6.0), comparable="it is small")


async def test_a_report_counts_what_was_scored_and_says_what_was_not(store: Store) -> None:
    made = report(store)
    assert [pair.agent for pair in made.pairs] == ["paid", "free"], "who has a score comes first"
    paid, free = made.pairs
    assert (paid.planned, paid.scored, paid.coverage) == (3, 2, 2 / 3)
    assert (paid.primary, paid.value, paid.metrics) == ("mean_score", 0.75, {"mean_score": 0.75})
    assert paid.standard_error == pytest.approx(0.25)
    assert paid.validity["completed"] == paid.validity["turn_limit"] == 0.5
    assert sum(paid.validity.values()) == 1
    assert paid.faults == {"no room": 1}
    assert paid.money == pytest.approx(3 * (2.0 + 2.0))
    assert (paid.turns, paid.prompt_tokens, paid.seconds) == (12, 3_000_000, 18.0)
    assert (free.value, free.standard_error, free.validity, free.faults, free.money) == (None, None, {}, {}, None)


async def test_the_report_says_where_thoughts_stood_in_scored_replies(store: Store) -> None:
    metrics = {"mean_score": 0.75, "thoughts": 3.0, "helper_thoughts": 1.0}
    store.write_summary("paid", "t", 2, Summary(primary="mean_score", metrics=metrics))
    text = rendered(report_tables([report(store)], full=True), "text", 200)
    assert "3 replies of paid and 1 of the task's own models on t held thoughts" in " ".join(text.split())


@pytest.mark.parametrize(("score", "shares", "declined"), [(0.0, (0.5, 0.5), 0), (None, (1.0, 0.0), 1)])
async def test_a_refused_input_is_no_fault_and_the_score_is_not_comparable(
    score: float | None, shares: tuple[float, float], declined: int, tmp_path: Path
) -> None:
    refused = Finish(reason=FinishReason.REFUSED, score=score, detail={"cause": "it was flagged"})
    store = await played(tmp_path, (ENDS[0], refused), Cost(1, Usage(1, 1), 1.0), plan=alone(name="paid", model="m"))
    (pair,) = report(store).pairs
    assert (pair.validity["completed"], pair.validity["refused"]) == shares
    assert (pair.scored, pair.declined, pair.faults) == (2 - declined, declined, {})
    assert pair.comparable == "1 input was declined by the endpoint"


async def test_the_environments_own_metrics_replace_the_mean_while_they_are_of_the_same_trials(store: Store) -> None:
    own = Summary(primary="found", metrics={"found": 0.9}, standard_error=0.01, notes=("small",))
    store.write_summary("paid", "t", 2, own)
    assert (report(store).pairs[0].primary, report(store).pairs[0].value) == ("found", 0.9)
    store.write_summary("paid", "t", 1, own)
    assert report(store).pairs[0].primary == "mean_score", "it is of an earlier state of the run"


async def test_what_was_cached_costs_its_own_price_and_stands_beside_what_was_thought(tmp_path: Path) -> None:
    price: JsonValue = {"input": 2.0, "output": 10.0, "cached_input": 0.5}
    plan = alone(name="paid", model="m", price=price)
    store = await played(tmp_path, [ENDS[0]] * 2, Cost(4, Usage(1_000_000, 200_000, 600_000, 70_000), 6.0), plan=plan)
    made = report(store)
    (paid,) = made.pairs
    assert (paid.cached_tokens, paid.reasoning_tokens) == (1_200_000, 140_000)
    assert paid.money == pytest.approx(2 * (0.4 * 2.0 + 0.6 * 0.5 + 0.2 * 10.0))
    costs = next(line for line in shown(made).splitlines() if "2,000,000" in line)
    assert costs.split()[3:8] == ["2,000,000", "1,200,000", "400,000", "140,000", "6.20"]


async def notes_of(folder: Path, endpoint: dict[str, JsonValue], epochs: int = 1, **agent: JsonValue) -> str:
    """The notes of an agent at such an endpoint."""
    plan = alone(name="paid", endpoint="e", **agent) | {"endpoints": [{"name": "e", **endpoint}], "epochs": epochs}
    store = await played(folder, ENDS[:1], Cost(1, Usage(1, 1), 1.0), plan=plan)
    return " ".join(report(store).pairs[0].notes)


@pytest.mark.parametrize(
    ("dialect", "sampling", "told"),
    [("messages", {}, True), ("messages", {"max_tokens": 9}, False), ("responses", {}, False)],
)
async def test_a_limit_of_tokens_that_the_dialect_needed_is_told(
    tmp_path: Path, dialect: str, sampling: dict[str, JsonValue], told: bool
) -> None:
    notes = await notes_of(tmp_path, {"dialect": dialect}, sampling=sampling)
    assert ("Answers of paid end at 4,096 tokens: dialect messages needs a limit, the plan has none." in notes) is told


@pytest.mark.parametrize(
    ("epochs", "agent", "told"),
    [
        (1, {"sampling": {"seed": 5}}, ""),
        (2, {"sampling": {}}, ""),
        (2, {"sampling": {"seed": 5}}, "sampling is 5 plus the epoch's number"),
        (2, {"sampling": {"seed": 5}, "seed_per_epoch": False}, "sampling is 5 in every epoch"),
    ],
)
async def test_the_seeds_of_epochs_are_told(
    tmp_path: Path, epochs: int, agent: dict[str, JsonValue], told: str
) -> None:
    notes = await notes_of(tmp_path, {}, epochs, **agent)
    assert (told in notes, "seed" in notes) == (True, bool(told))


async def test_a_certificate_that_was_not_verified_is_told_wherever_the_report_is_made(tmp_path: Path) -> None:
    endpoint: dict[str, JsonValue] = {"base_url": "https://model.example/v1", "tls": {"verify": False}}
    assert "The certificate of e was not verified" in await notes_of(tmp_path / "a", endpoint)
    assert "certificate" not in await notes_of(tmp_path / "b", {})


def shown(made: RunReport, *, full: bool = True) -> str:
    return rendered(report_tables([made], full=full), "text", 120)


async def test_a_report_is_shown_with_scores_notes_validity_costs_and_faults(store: Store) -> None:
    lines = shown(report(store)).splitlines()
    (paid, *_), (free, *_) = ([line for line in lines if line.startswith(f"{name} ")] for name in ("paid", "free"))
    assert lines[0] == "t (ltp): 2 of 6 planned trials are scored"
    assert paid.split() == ["paid", "0.750", "[0.000,", "1.000]", "2/3", "67%", "4.00", "12.00"]
    assert free.split() == ["free", "-", "0/3", "0%", "-", "-"]
    assert any(line == "  note: Not comparable with published scores: it is small" for line in lines)
    assert any(line == "  note: unscored: 1 of paid on t: no room" for line in lines)
    costs = next(line for line in lines if "3,000,000" in line)
    assert costs.split() == ["paid", "t", "12", "3,000,000", "0", "600,000", "0", "12.00", "6.00"]


async def test_answers_that_max_tokens_cut_are_counted_beside_the_validity(store: Store) -> None:
    before = store.pair_totals()
    assert [pair.cut_answers for pair in before] == [0, None], "of `free` no trial is over"
    trial = next(each for each in unscored(store) if each.agent == "free")
    journal = Journal(store, store.take_over())
    await journal.finish(trial, 1, "w", ENDS[0], Cost(2_000, Usage(10, 5), 1.0, cut_answers=1_500))
    await journal.close()
    made = report(store)
    assert {pair.agent: pair.cut_answers for pair in made.pairs} == {"paid": 0, "free": 1_500}
    text = shown(made)
    validity = text.partition("validity:")[2].splitlines()
    (free,) = [line.split() for line in validity if line.startswith("free ")][:1]
    assert free[-3:] == ["-", "1,500", "0"]
    assert "note: cut: 1,500 answers of free on t, in 2,000 turns; its max_tokens may be too low" in " ".join(
        text.split()
    )
    assert "answers of paid" not in text
    for form in ("csv", "markdown", "latex"):
        assert "1500" in rendered([pairs_table([made])], form).replace(",", "")
    with store.engine.begin() as connection:
        connection.execute(trial_table.update().where(trial_table.c.id == 0).values(cut_answers=None))
    assert [pair.cut_answers for pair in store.pair_totals()] == [None, 1_500], (
        "a trial of an earlier version can't tell"
    )


def test_all_tables_have_the_agents_in_one_order_whatever_they_scored() -> None:
    pairs = tuple(
        pair(agent=agent, task=task, value=value, metrics={"m": value})
        for task, values in {"t": (0.25, 0.75), "u": (0.75, 0.25)}.items()
        for agent, value in zip(("one", "two"), values, strict=True)
    )
    told = shown(RunReport(run="r", state="finished", version="1", pairs=pairs))
    assert re.findall(r"^one|^two", told, re.MULTILINE) == ["one", "two"] * 6
    assert re.findall(r"metric +(\w+) +(\w+)", told) == [("one", "two")] * 2


def test_a_run_in_one_table_has_a_row_for_each_task_and_a_column_for_each_agent() -> None:
    pairs = (
        pair(agent="one", task="t", value=0.5, standard_error=0.25, turns=3),
        pair(agent="two", task="t", planned=4, turns=4),
        pair(agent="two", task="u", primary="f1", value=None, scored=0, planned=2, prompt_tokens=1_000, turns=5),
    )
    made = RunReport(run="r", state="finished", version="1", pairs=pairs)
    told, header, _, *rows = rendered([matrix_table(pairs)], "text", 80).splitlines()
    assert told == "4 of 8 planned trials are scored"
    assert header.split() == ["task", "metric", "one", "two"]
    assert [row.split() for row in rows] == [["t", "m", "0.500", "±0.250", "0.500", "(50%)"], ["u", "f1", "-", "-"]]
    assert took(made, 61.2) == "4 trials scored, 12 turns in 61 s; 1,000 tokens"


def test_the_table_of_the_demo_fits_a_terminal_of_80_columns() -> None:
    best = {"card_game": 1.0, "mind2web": 100.0, "simulbench": 10.0, "db": 1.0}
    agents = {"reference": 1.0, "naive": 0.125, "random": 0.0}
    pairs = tuple(
        pair(agent=agent, task=task, primary="overall_cat_accuracy", value=share * most, standard_error=0.05)
        for task, most in best.items()
        for agent, share in agents.items()
    )
    table = rendered([matrix_table(pairs)], "text", 80)
    assert max(map(len, table.splitlines())) <= 80
    assert len(table.splitlines()) == 2 + len(best), "no row is wrapped"


def test_metrics_stand_side_by_side_counts_whole_and_absent_ones_as_a_dash() -> None:
    pairs = (
        pair(agent="one", metrics={"m": 0.5, "games": 12.0}),
        pair(agent="two", metrics={"m": 1.0, "games": 3.0, "rare": 0.25}),
        pair(agent="none", scored=0, value=None, metrics={"m": 0.0}),
    )
    lines = shown(RunReport(run="r", state="finished", version="1", pairs=pairs)).splitlines()
    rows = {line.split()[0]: line.split()[1:] for line in lines if line.startswith(("m ", "games", "rare"))}
    assert rows == {"m": ["0.500", "1.000", "-"], "games": ["12", "3", "-"], "rare": ["-", "0.250", "-"]}
    assert "games" not in shown(RunReport(run="r", state="s", version="1", pairs=pairs), full=False)


def test_what_comes_from_outside_is_no_markup() -> None:
    made = pair(agent="[red]a", task="[b]t", faults={"[link=x]gone": 1}, notes=("[i]note",), scored=1)
    text = shown(RunReport(run="r", state="s", version="1", pairs=(made,)))
    for said in ("[red]a", "[b]t", "[link=x]gone", "[i]note"):
        assert said in text


async def test_samples_that_share_a_world_count_as_one_for_the_error(tmp_path: Path) -> None:
    """Four samples of two worlds tell less than four of their own."""
    ends = [Finish(reason=FinishReason.COMPLETED, score=score) for score in (1.0, 1.0, 0.0, 0.0)]
    errors = []
    for clusters in ((), ("w", "w", "v", "v")):
        plan, folder = alone(name="paid", model="m"), tmp_path / str(len(clusters))
        store = await played(folder, ends, Cost(1, Usage(0, 0), 1.0), plan=plan, clusters=clusters)
        errors.append(report(store).pairs[0].standard_error)
    assert errors == [pytest.approx(0.2887, abs=1e-4), pytest.approx(0.5)]


def test_costs_have_a_total_and_small_sums_are_not_rounded_away() -> None:
    pairs = (
        pair(agent="a", turns=2, prompt_tokens=10, completion_tokens=3, money=0.005),
        pair(agent="b", turns=3, prompt_tokens=20, completion_tokens=4, money=0.0001234),
        pair(agent="c", turns=4, prompt_tokens=30, completion_tokens=5),
    )
    made = RunReport(run="r", state="s", version="1", pairs=pairs, price_list="prices: of a list")
    lines = shown(made).splitlines()
    (first,) = (line.split() for line in lines if line.startswith("a ") and "0.005" in line)
    (total,) = (line.split() for line in lines if line.startswith("total"))
    assert "0.005" in first
    assert total == ["total", "9", "60", "-", "12", "-", "0.005123", "-"]
    assert "money is without c: no price is known" in "\n".join(lines)
    assert "prices: of a list" in "\n".join(lines)
    assert "total" not in shown(RunReport(run="r", state="s", version="1", pairs=pairs[:1]))


@pytest.mark.parametrize("twice", ['"score": 0.5, "score": 1.0', '"score": 1.0, "metrics": {"m": 1, "\\u006d": 2}'])
def test_a_store_with_a_score_or_a_metric_twice_can_not_be_read(store: Store, twice: str) -> None:
    finish = f'{{"reason": "completed", {twice}}}'
    with store.engine.begin() as connection:
        connection.execute(sa.update(trial_table).where(trial_table.c.score.is_not(None)).values(finish=finish))
    with pytest.raises(StoreError, match="proctor_trial"):
        list(itertools.chain(store.finishes("free", "t"), store.finishes("paid", "t")))


@pytest.mark.parametrize("kept", ["null", "NaN", "Infinity", '"many"'])
def test_a_store_with_a_metric_that_is_no_number_can_be_reported_without_it(store: Store, kept: str) -> None:
    finish = f'{{"reason": "completed", "score": 1.0, "metrics": {{"odd": {kept}, "fine": 2}}, "detail": {{}}}}'
    with store.engine.begin() as connection:
        connection.execute(sa.update(trial_table).where(trial_table.c.score.is_not(None)).values(finish=finish))
    assert report(store).pairs
    read = [each for agent in ("free", "paid") for _, _, each in store.finishes(agent, "t") if each.score is not None]
    assert read
    assert all(each.metrics == {"fine": 2.0} for each in read)


def test_estimated_tokens_are_told_once_for_each_agent() -> None:
    pairs = (
        pair(agent="a", prompt_tokens=900, completion_tokens=100, estimated_tokens=40),
        pair(agent="b", prompt_tokens=900, completion_tokens=100),
        pair(agent="a", task="other", prompt_tokens=1_000, completion_tokens=0, estimated_tokens=1_000),
    )
    text = shown(RunReport(run="r", state="s", version="1", pairs=pairs))
    told = [line.strip() for line in text.splitlines() if "estimated" in line]
    task = pairs[0].task
    assert told == [f"note: 1,040 of 2,000 tokens of a on {task}, other are estimated: no endpoint reported them"]


async def test_what_is_paid_in_trials_that_are_not_over_has_a_row_and_one_sum(store: Store) -> None:
    journal = Journal(store, store.take_over())
    trial = next(each for each in unscored(store) if each.agent == "free")
    await journal.begin(trial, 1, 0, "f" * 32)
    observation = '{"messages":[]}'
    act = Act(action=Action(content="x"))
    await journal.turn(
        trial, 0, Turn(turn=1, digest="d", observation=observation, reply=act, prompt_tokens=700, completion_tokens=70)
    )
    await journal.close()
    made = report(store)
    open_cost = made.pairs[1].unfinished
    assert open_cost is not None
    assert (open_cost.prompt_tokens, open_cost.completion_tokens) == (700, 70)
    costs = shown(made).partition("costs of the finished trials, and of those under way or given back")[2].splitlines()
    (row,) = (line.split() for line in costs if "unfinished" in line)
    assert row == ["free", "t,", "unfinished", "-", "700", "0", "70", "0", "-", "-"]
    (total,) = (line.split() for line in costs if line.startswith("total"))
    assert total[2:5] == ["3,000,700", "0", "600,070"]
    spent = spent_so_far(Plan.model_validate(store.manifest().plan), store, store.pair_totals())
    assert (spent.tokens.prompt_tokens, spent.tokens.completion_tokens) == (3_000_700, 600_070)


@pytest.mark.parametrize(("builtin", "tokens"), [("naive", "0"), (None, "-")])
async def test_what_an_agent_costs_is_unknown_where_nothing_tells_it(
    tmp_path: Path, builtin: str | None, tokens: str
) -> None:
    agent: dict[str, JsonValue] = {"builtin": builtin} if builtin else {"endpoint": "http://127.0.0.1:1/v1"}
    store = await played(tmp_path, ENDS[:1], Cost(4, Usage(0, 0), 6.0), plan=alone(name="a", **agent))
    costs = shown(report(store)).partition("costs of the finished trials")[2].splitlines()
    (row,) = (line.split() for line in costs if line.startswith("a "))
    assert row[2:7] == ["4", tokens, tokens, tokens, tokens]
