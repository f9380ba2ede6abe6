"""Runs to look at; the one that budgets are for has 10 agents by 10 tasks by 1,000 samples, two turns each."""

import json
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

from benchmarks.echo import QUESTION
from eval_client.core.statistics.single import clustered_mean
from eval_client.plan.plan import Plan
from eval_client.store.connection import connect, sqlite_url
from eval_client.store.planned_trials import PlannedTrials
from eval_client.store.records import Manifest, TaskRecord, Trial
from eval_client.store.store import Store
from proctor.types import Action, Finish, FinishReason, Message, Observation, Summary
from task_server.wire.messages import Act

RUN = "bench"
AGENTS = [f"agent-{n}" for n in range(50)]
FINISH_BYTES = 1_200
TURNS, LONG_TURNS = 2, 50
LONG_TRIAL = 77
"""The trial that has LONG_TURNS."""
FAULTS = 0.01
"""The share of trials without a score."""
ENDS = (FinishReason.COMPLETED, FinishReason.COMPLETED, FinishReason.TURN_LIMIT, FinishReason.INVALID_FORMAT)
SUMS = (
    "SELECT agent, task, reason, count(*), sum(score), sum(turns), sum(prompt_tokens), sum(completion_tokens) "
    "FROM proctor_trial NOT INDEXED GROUP BY agent, task, reason"
)
"""The unit of the budgets. It reads no index, so that one more does not move them."""


def fill(folder: Path, run: str, *, agents: int = 10, tasks: int = 10, samples: int) -> Store:
    """A run that was interrupted after its last trial, before the tasks' own metrics were made."""
    (folder / run).mkdir()
    store = Store(connect(sqlite_url(folder / run)), run)
    playing = [{"name": name, "model": "m", "endpoint": "http://127.0.0.1:1/v1"} for name in AGENTS[:agents]]
    played = [f"task-{n}" for n in range(tasks)]
    plan = Plan.model_validate({"agents": playing, "tasks": [{"name": name, "environment": "ltp"} for name in played]})
    names = {name: name for name in (f"std-{n:04}" for n in range(samples))}
    trials = list(PlannedTrials(plan, dict.fromkeys(played, names)))
    store.create(
        Manifest(
            version=version("proctor"),
            plan_path="plan.yaml",
            plan=plan.model_dump(mode="json"),
            identity=plan.identity(),
            tasks=dict.fromkeys(played, TaskRecord(environment="ltp", digest="d", samples=samples)),
        ),
        trials,
    )
    store.set_state("interrupted")
    store.engine.dispose()
    with closing(sqlite3.connect(folder / run / "run.sqlite")) as database:
        database.execute("PRAGMA synchronous=OFF")
        _play(database, run, trials)
        database.commit()
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return store


def summarize(store: Store) -> None:
    """Store the tasks' own metrics of all pairs, as at a run's end."""
    pairs = store.pair_totals()
    means = store.sample_means()
    for pair in pairs:
        found = means[pair.agent, pair.task]
        mean = clustered_mean(found.means, found.clusters)
        metrics = {"mean_score": mean.mean, "strict": mean.mean / 2}
        summary = Summary(primary="mean_score", metrics=metrics, standard_error=mean.standard_error)
        store.write_summary(pair.agent, pair.task, pair.scored, summary)
    store.set_state("incomplete")
    store.engine.dispose()


def _play(database: sqlite3.Connection, run: str, trials: list[Trial]) -> None:
    chance = random.Random(0)
    database.executemany(
        "UPDATE proctor_trial SET attempts=1, holder=-1, reason=?, score=?, cause=?, finish=?, turns=?, "
        "prompt_tokens=?, completion_tokens=?, seconds=?, ended_at=? WHERE run=? AND id=?",
        ((*_final(chance, trial.id), run, trial.id) for trial in trials),
    )
    database.executemany(
        "INSERT INTO proctor_attempt (run, trial, number, journal, session, outcome, worker, started_at, ended_at) "
        "VALUES (?, ?, 1, 0, ?, 'finished', 'worker', ?, ?)",
        ((run, trial.id, f"{trial.id:032x}", _moment(trial.id), _moment(trial.id)) for trial in trials),
    )
    database.executemany(
        "INSERT INTO proctor_turn (run, trial, journal, turn, digest, observation, reply, prompt_tokens, "
        "completion_tokens, model_seconds, tries, world_seconds, stop, model, metered, ended_at) "
        "VALUES (?, ?, 0, ?, ?, ?, ?, 120, 60, 0.5, 1, 0.1, 'stop', 'm', 1, ?)",
        (row for trial in trials for row in _turns(run, trial.id)),
    )


def _final(chance: random.Random, trial: int) -> tuple[object, ...]:
    if chance.random() < FAULTS:
        finish, cause = (
            Finish.fault(FinishReason.TASK_ERROR, "worker: connection refused"),
            "worker: connection refused",
        )
    else:
        score = round(chance.random(), 3)
        finish, cause = Finish(reason=chance.choice(ENDS), score=score, metrics={"strict": 0.5}), None
    room = FINISH_BYTES - len(finish.model_dump_json()) - len(json.dumps({"evidence": ""}))
    finish = finish.model_copy(update={"detail": {**finish.detail, "evidence": "e" * room}})
    counts = (TURNS, chance.randrange(200, 9_000), chance.randrange(20, 900), chance.random() * 9)
    text = finish.model_dump_json()
    return finish.reason.value, finish.score, cause, text, *counts, _moment(trial)


def _turns(run: str, trial: int) -> Iterator[tuple[object, ...]]:
    for turn in range(1, (LONG_TURNS if trial == LONG_TRIAL else TURNS) + 1):
        yield (run, trial, turn, _DIGEST, _OBSERVATION, _REPLY, _moment(trial))


def _moment(trial: int) -> str:
    hours, seconds = divmod(trial // 10, 3_600)
    return f"2026-11-20T{hours:02}:{seconds // 60:02}:{seconds % 60:02}+00:00"


_ASKED = Observation(messages=(Message(role="user", content=QUESTION),))
_OBSERVATION, _DIGEST = _ASKED.model_dump_json(), _ASKED.digest()
_REPLY = Act(action=Action(content="I say: so be it, and so it is. " * 8)).model_dump_json()
