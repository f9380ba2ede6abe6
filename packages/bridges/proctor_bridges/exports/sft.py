"""Pure: the conversations of a trial as rows to train on, in OpenAI's shape of messages."""

from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import JsonValue

from eval_client.report.exports.trials import ExportedPair, Json, Said, arguments_object, spoken
from eval_client.store.trials.trajectory import Trajectory, conversation
from proctor.llm.dialects.chat import tool_json
from proctor.tools.histories import MALFORMED, sendable_arguments
from proctor.types import FinishReason, Message, ToolCall, Value

Arguments = Literal["text", "object"]


class RowChoice(Value):
    """Which trials become rows, and how."""

    min_score: float | None = None
    reasons: frozenset[FinishReason] = frozenset()
    """Empty: all but faults."""
    arguments: Arguments = "text"

    def takes(self, trial: Trajectory) -> bool:
        """Whether a trial that is over becomes rows."""
        finish = trial.finish
        if finish is None:
            return False
        asked = finish.reason in self.reasons if self.reasons else not finish.reason.is_fault
        return asked and (self.min_score is None or (finish.score is not None and finish.score >= self.min_score))


def rows(trial: Trajectory, pair: ExportedPair, choice: RowChoice) -> Iterator[Json]:
    """A row for each conversation in which the agent answered."""
    if trial.finish is None or not choice.takes(trial):
        return
    for each in spoken(conversation(trial.turns)):
        turns = each.answers()
        if not turns:
            continue
        said = _to_last_answer(each.said)
        row: Json = {
            "messages": [_message(one.message, choice.arguments) for one in said],
            "trainable": [one.turn is not None for one in said],
            "tools": [*map(tool_json, each.tools)],
            "score": trial.finish.score,
            "reason": trial.finish.reason.value,
            "task": trial.task,
            "sample": trial.sample,
            "epoch": trial.epoch,
            "agent": trial.agent,
            "model": pair.model,
            "conversation": each.name,
            "trial": trial.trial,
            "run": trial.run,
            "run_digest": pair.digest,
        }
        actions = [turn.action for turn in turns if turn.action is not None]
        if any(action.token_ids for action in actions):
            row["completion_token_ids"] = [[*action.token_ids] for action in actions]
        if any(action.logprobs for action in actions):
            row["logprobs"] = [[*action.logprobs] for action in actions]
        yield row


def _to_last_answer(said: Sequence[Said]) -> list[Said]:
    """The messages up to the agent's last answer and the results of its calls, empty where the trial ended with it."""
    last = max(at for at, each in enumerate(said) if each.turn is not None)
    results = {each.message.tool_call_id: each for each in said[last + 1 :] if each.message.role == "tool"}
    calls = said[last].message.tool_calls
    empty = (Said(Message(role="tool", content="", tool_call_id=call.id)) for call in calls)
    return [*said[: last + 1], *(results.get(each.message.tool_call_id, each) for each in empty)]


def _message(message: Message, arguments: Arguments) -> Json:
    made: Json = {"role": message.role, "content": message.content}
    if message.tool_calls:
        made["tool_calls"] = [_call(call, arguments) for call in message.tool_calls]
    if message.tool_call_id is not None:
        made["tool_call_id"] = message.tool_call_id
    return made


def _call(call: ToolCall, arguments: Arguments) -> Json:
    """A call; arguments that are no object are wrapped, as the endpoint saw them in the history."""
    text = sendable_arguments(call.arguments)
    read = arguments_object(text)
    given: JsonValue = text if arguments == "text" else {MALFORMED: text} if read is None else read
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": given}}
