"""The invariants I1 to I7, checked offline: store rows, the recorded calls, and the ledger of the world."""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from eval_client.plan.plan import trial_seed
from eval_client.store.tables import attempt_table, metadata, trial_table, turn_table
from proctor.environment import Agent, Policy
from proctor.session.play import play_to_finish
from proctor.session.transcript import Transcript
from proctor.types import Action, FinishReason, Observation
from tests.faults.parts.proxy import Call
from tests.faults.parts.world import Ledger

Row = dict[str, Any]


@dataclass(frozen=True)
class Allowed:
    """What a fault may cost."""

    clients: int = 1
    """How often a client was started for the run."""
    attempts: int = 3
    paid_twice: int = 0
    """Model calls answered whole whose answer a dying client took with it."""
    asked_late: int = 0
    """Model calls of a client that has not yet found out that another one took over."""
    unscored: int = 0


class _Recorder(Agent):
    """Plays a policy and keeps what a journal would."""

    def __init__(self, policy: Policy) -> None:
        self._policy, self._transcript = policy, Transcript()
        self.turns: list[tuple[str, Action]] = []

    async def act(self, observation: Observation) -> Action:
        action = self._policy(observation.conversation, tuple(self._transcript.observe(observation)))
        self._transcript.answer(observation, action)
        self.turns.append((observation.digest(), action))
        return action


def rows_of(store: str, run: str, table: sa.Table) -> list[Row]:
    engine = sa.create_engine(store)
    assert table.metadata is metadata
    try:
        with engine.connect() as connection:
            return [dict(row) for row in connection.execute(sa.select(table).where(table.c.run == run)).mappings()]
    finally:
        engine.dispose()


async def check(
    world: Ledger, store: str, run: str, *, agents: Sequence[str], calls: Sequence[Call], allowed: Allowed
) -> None:
    """Assert I1, I2 and I4 to I7 of a run that is over; I3 is the farm's, which knows the servers."""
    trials = sorted(rows_of(store, run, trial_table), key=lambda row: int(row["id"]))
    attempts, turns = rows_of(store, run, attempt_table), rows_of(store, run, turn_table)
    planned = [(agent, sample) for agent in agents for sample in world.samples()]
    assert [(row["agent"], row["sample"]) for row in trials] == planned
    _final_rows(trials, attempts, allowed)
    for row in trials:
        if row["score"] is not None:
            await _as_undisturbed(world, row, [turn for turn in turns if turn["trial"] == row["id"]])
    _acknowledged(attempts, turns, calls)
    _paid(calls, allowed)
    _never_asked_again({row["session"]: trials[row["trial"]] for row in attempts}, calls, allowed)
    assert world.ledger is not None
    applied_once(world.ledger)
    _answered_alike(calls)


def _final_rows(trials: list[Row], attempts: list[Row], allowed: Allowed) -> None:
    """I1, I4: one final row, scored or with a cause, within the attempts allowed."""
    finished = Counter(row["trial"] for row in attempts if row["outcome"] == "finished" and row["cause"] is None)
    for row in trials:
        reason = FinishReason(row["reason"])
        assert reason.is_fault == (row["score"] is None), row
        assert bool(row["cause"]) == reason.is_fault, row
        assert finished[row["id"]] == (0 if reason.is_fault else 1), row
        mine = [attempt for attempt in attempts if attempt["trial"] == row["id"]]
        assert len(mine) == row["attempts"] <= allowed.attempts * allowed.clients, row
        assert len({attempt["session"] for attempt in mine}) == len(mine)
    unscored = [row for row in trials if row["score"] is None]
    assert len(unscored) <= allowed.unscored, unscored


async def _as_undisturbed(world: Ledger, row: Row, turns: list[Row]) -> None:
    """I6, I7: score, finish and transcript are those of a play in one process without any fault."""
    seed = trial_seed(0, row["task"], row["sample"], row["epoch"])
    policy = {"reference": world.reference, "naive": world.naive}[row["agent"]](row["sample"], seed)
    recorder = _Recorder(policy)
    still = world.model_copy(update={"ledger": None, "deadly": ""})
    finish = await play_to_finish(still, row["sample"], recorder, seed)
    assert json.loads(row["finish"]) == finish.model_dump(mode="json"), row
    assert (row["reason"], row["score"], row["turns"]) == (finish.reason, finish.score, len(recorder.turns)), row
    newest = max(turn["journal"] for turn in turns)
    kept = sorted((turn for turn in turns if turn["journal"] == newest), key=lambda turn: int(turn["turn"]))
    assert [(turn["turn"], turn["digest"], json.loads(turn["reply"])["action"]) for turn in kept] == [
        (number, digest, action.model_dump(mode="json")) for number, (digest, action) in enumerate(recorder.turns, 1)
    ]


def _acknowledged(attempts: list[Row], turns: list[Row], calls: Sequence[Call]) -> None:
    """I2: whatever was sent on to a session stands in the journal."""
    owner = {row["session"]: (row["trial"], row["journal"]) for row in attempts}
    kept = {(row["trial"], row["journal"], row["turn"]): json.loads(row["reply"]) for row in turns}
    for call in calls:
        if call.target.endswith("/turns"):
            asked = json.loads(call.request)
            key = (*owner[_session(call)], asked["turn"])
            assert kept.get(key) == asked["reply"], (key, asked)


def _paid(calls: Sequence[Call], allowed: Allowed) -> None:
    """I2: no model call is paid twice but for those in flight when a client died."""
    paid: Counter[tuple[str, ...]] = Counter()
    for call in calls:
        if call.link == "agents" and call.target.startswith("POST") and (call.outcome, call.status) == ("ok", 200):
            asked = json.loads(call.request)
            about = asked["metadata"]
            paid[asked["model"], about["task"], about["sample"], about["epoch"], about["turn"]] += 1
    again = {key: count for key, count in paid.items() if count > 1}
    assert sum(count - 1 for count in again.values()) <= allowed.paid_twice, again


def _never_asked_again(trial_of: Mapping[str, Row], calls: Sequence[Call], allowed: Allowed) -> None:
    """I2: once an answer was sent on, and so is in the journal, no client that knows of it asks a model again."""
    sent: set[tuple[object, ...]] = set()
    again: list[tuple[object, ...]] = []
    for call in calls:
        asked = json.loads(call.request) if call.request else {}
        if call.target.endswith("/turns"):
            trial = trial_of[_session(call)]
            sent.add((trial["agent"], trial["sample"], asked["turn"]))
        elif call.link == "agents" and "metadata" in asked:  # else for one token, of an endpoint that may be down
            key = (asked["model"], asked["metadata"]["sample"], int(asked["metadata"]["turn"]))
            if key in sent:
                again.append(key)
    assert len(again) <= allowed.asked_late, f"asked again: {again}"


def ledger_lines(ledger: Path) -> list[Row]:
    """What the world wrote, in order, over all workers."""
    return [json.loads(line) for line in ledger.read_text().splitlines()] if ledger.exists() else []


def applied_once(ledger: Path) -> None:
    """I5: every play applied turns 1, 2, 3, ... once, and a session was never played in two places at a time."""
    sessions: dict[str, list[Row]] = defaultdict(list)
    for line in ledger_lines(ledger):
        sessions[line["session"]].append(line)
    for lines in sessions.values():
        plays: dict[int, list[Row]] = defaultdict(list)
        for line in lines:
            if line["event"] == "turn":
                assert line["pid"] == list(plays)[-1], f"played in two places: {lines}"
            plays[line["pid"]].append(line)
        for play in plays.values():
            numbers = [line["turn"] for line in play if line["event"] == "turn"]
            assert numbers == list(range(1, len(numbers) + 1)), f"a turn was lost or applied twice: {play}"
            assert [line["event"] for line in play].count("begin") == 1, play
        answers = {(line["turn"], line["answer"]) for line in lines if line["event"] == "turn"}
        assert len(answers) == len({turn for turn, _ in answers}), f"a turn was applied with two answers: {lines}"


def _answered_alike(calls: Sequence[Call]) -> None:
    """I5: a repeated turn gets the stored step; another answer to an applied turn is never taken."""
    taken: dict[tuple[str, int], tuple[object, object]] = {}
    for call in calls:
        if call.target.endswith("/turns") and call.status == 200:
            asked = json.loads(call.request)
            said = (asked["reply"], json.loads(call.reply)["step"])
            assert taken.setdefault((_session(call), asked["turn"]), said) == said


def _session(call: Call) -> str:
    return call.target.split("/")[2]
