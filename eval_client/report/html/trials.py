"""Whole trials for a report that was asked to show them; causes of faults stay out, since they name machines."""

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from eval_client.report.conversation import ConversationTurn, conversation
from eval_client.report.trajectory import Trajectory, read_trajectory
from eval_client.store.store import Store
from proctor.observability.redaction import redacted
from proctor.types import Message


class ShownMessage(NamedTuple):
    """A message as it is shown."""

    label: str
    text: str
    answer: bool


class ShownTurn(NamedTuple):
    """A turn: how dear it was, and its new messages."""

    title: str
    messages: tuple[ShownMessage, ...]
    stop: str


class ShownTrial(NamedTuple):
    """A trial as it is shown."""

    id: int
    title: str
    outcome: str
    attempts: tuple[str, ...]
    evidence: str
    turns: tuple[ShownTurn, ...]
    licence: str


def shown_trials(store: Store, ids: Sequence[int]) -> list[ShownTrial]:
    """The trials of the given ids. Raises StoreError where the run has no such trial, SQLAlchemyError."""
    return [_trial(read_trajectory(store, each)) for each in ids]


def _trial(trial: Trajectory) -> ShownTrial:
    finish = trial.finish
    score = "no score" if finish is None or finish.score is None else f"score {finish.score:.3f}"
    return ShownTrial(
        id=trial.trial,
        title=f"{trial.agent}, {trial.task}, {trial.sample}, epoch {trial.epoch}",
        outcome="not over yet" if finish is None else f"{score}, {finish.reason.value.replace('_', ' ')}",
        attempts=tuple(f"attempt {each.number}: {each.outcome or 'not ended'}" for each in trial.attempts),
        evidence="" if finish is None or finish.reason.is_fault else _evidence(finish.metrics, finish.detail),
        turns=tuple(_turn(each) for each in conversation(trial.turns)),
        licence="" if finish is None else str(finish.detail.get("licence", "")),
    )


def _evidence(metrics: object, detail: object) -> str:
    return redacted(json.dumps({"metrics": metrics, "detail": detail}, ensure_ascii=False, indent=2, sort_keys=True))


def _turn(turn: ConversationTurn) -> ShownTurn:
    tokens = f"{turn.prompt_tokens:,} tokens in, {turn.completion_tokens:,} out"
    earlier = f", {len(turn.earlier):,} earlier messages" if turn.earlier else ""
    messages = [shown for message in turn.messages for shown in _messages(str(message.role), message, answer=False)]
    if turn.action is not None:
        messages += _messages("answer", turn.action.message(), answer=True)
    stop = "" if turn.stop is None else turn.stop.value.replace("_", " ")
    return ShownTurn(f"{turn.title.capitalize()}: {tokens}{earlier}", tuple(messages), stop)


def _messages(label: str, message: Message, *, answer: bool) -> Iterator[ShownMessage]:
    if message.content or not message.tool_calls:
        yield ShownMessage(label, redacted(message.content), answer)
    for call in message.tool_calls:
        yield ShownMessage(f"calls {call.name}", redacted(call.arguments), answer)
