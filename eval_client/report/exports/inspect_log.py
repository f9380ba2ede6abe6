"""Pure: a trial as a sample of Inspect's log format, version 2, and a pair as the log's header (inspect-ai 0.3.285)."""

from collections.abc import Iterable, Sequence
from urllib.parse import quote

from pydantic import JsonValue

from eval_client.report.exports.trials import ExportedPair, Json, Said, Spoken, arguments_object, spoken
from eval_client.report.pair_report import PairReport
from eval_client.store.trials.trajectory import Trajectory, conversation
from proctor.environment import MEAN_SCORE
from proctor.types import FinishReason, ToolCall

VERSION = 2
SCORER = "proctor"
SUMMARY_CHARS = 1000
"""Of a text in a summary, as Inspect cuts its own."""
_KEPT = " !#$&'()+,-;=@[]^{}~"
"""Characters that need no escape in the name of a file in a zip."""
_SUMMARY = (
    *("id", "epoch", "target", "scores", "model_usage", "started_at", "completed_at"),
    *("total_time", "working_time"),
)


def sample_id(sample: str) -> str:
    """A sample's id that can stand in a file's name: other characters as `%2F`; equal only where the ids are."""
    safe = quote(sample, safe=_KEPT)
    return "%2E" + safe[1:] if safe.startswith(".") else safe


def model_of(pair: ExportedPair) -> str:
    """The model's name, after that of its endpoint."""
    return f"{pair.endpoint}/{pair.model}"


def is_metered(trial: Trajectory) -> bool:
    """Whether the trial's tokens are known: not where a command or an endpoint reported none."""
    return all(turn.metered is not False for turn in trial.turns)


def sample(trial: Trajectory, pair: ExportedPair) -> Json:
    """A trial that is over. A fault is an error without scores."""
    told = spoken(conversation(trial.turns))
    first, further = (told[0] if told else Spoken("main")), told[1:]
    metadata: Json = {"sample": trial.sample, "trial": trial.trial, "attempts": len(trial.attempts)}
    if further:
        metadata["conversations"] = {each.name: _messages(each.said) for each in further}
    started = trial.attempts[0].started_at if trial.attempts else pair.created_at
    worked = sum(turn.model_seconds + (turn.world_seconds or 0.0) for turn in trial.turns)
    made: Json = {
        "id": sample_id(trial.sample),
        "epoch": trial.epoch + 1,
        "input": next((each.content for each in first.messages() if each.role == "user"), ""),
        "target": "",
        "messages": _messages(first.said),
        "output": _output(trial, told, pair),
        "metadata": metadata,
        "events": [
            {
                "event": "info",
                "source": SCORER,
                "timestamp": started,
                "working_start": 0,
                "data": {"conversation": each.name, "messages": _messages(each.said)},
            }
            for each in further
        ],
        "model_usage": {model_of(pair): _tokens(trial)} if is_metered(trial) else {},
        "started_at": started,
        "completed_at": trial.ended_at,
        "total_time": trial.seconds,
        "working_time": min(worked, trial.seconds),
        "uuid": f"{pair.run}/{trial.trial}",
    }
    return made | _outcome(trial, pair)


def summary(made: Json) -> Json:
    """What a list of samples shows of a sample."""
    kept: Json = {name: made[name] for name in _SUMMARY if name in made}
    error, limit, messages = made.get("error"), made.get("limit"), made["messages"]
    return {
        **kept,
        "input": str(made["input"])[:SUMMARY_CHARS],
        "uuid": made["uuid"],
        "completed": error is None,
        "message_count": len(messages) if isinstance(messages, list) else 0,
        **({"error": error["message"]} if isinstance(error, dict) else {}),
        **({"limit": limit["type"]} if isinstance(limit, dict) else {}),
    }


def start(pair: ExportedPair, samples: Iterable[str], epochs: int) -> Json:
    """The log's beginning: what is evaluated. `samples` are the ids of those that are over."""
    result, ids = pair.result, [sample_id(each) for each in samples]
    metadata = pair.provenance()
    return {
        "version": VERSION,
        "eval": {
            "eval_id": f"{pair.run}/{result.agent}/{result.task}",
            "run_id": pair.run,
            "created": pair.created_at,
            "task": result.task,
            "task_id": pair.task_digest,
            "task_version": 0,
            "dataset": {"name": result.task, "samples": len(ids), "sample_ids": [*ids]},
            "solver": result.agent,
            "model": model_of(pair),
            "model_args": pair.sampling,
            "config": {"epochs": epochs},
            "metadata": metadata,
        },
        "plan": {"name": result.agent, "steps": []},
    }


def header(pair: ExportedPair, begun: Json, completed_at: str, *, metered: bool) -> Json:
    """The whole log but its samples. `started` while trials are owed. `metered`: the tokens of all trials are known."""
    result = pair.result
    scores: Json = {
        "name": SCORER,
        "scorer": SCORER,
        "scored_samples": result.scored,
        "unscored_samples": result.unscored,
        "metrics": {name: {"name": name, "value": value} for name, value in _metrics(result).items()},
        "metadata": {"primary": result.primary, "validity": {**result.validity}, "notes": [*result.notes]},
    }
    return {
        **begun,
        "status": "success" if result.ended >= result.planned else "started",
        "results": {"total_samples": result.planned, "completed_samples": result.scored, "scores": [scores]},
        "stats": {
            "started_at": pair.created_at,
            "completed_at": completed_at,
            "model_usage": {model_of(pair): _tokens(result)} if metered else {},
        },
    }


def _outcome(trial: Trajectory, pair: ExportedPair) -> Json:
    finish = trial.finish
    if finish is None or finish.score is None:
        cause = str(finish.detail.get("cause") or finish.reason) if finish else "not over"
        return {"error": {"message": cause, "traceback": "", "traceback_ansi": ""}}
    answer = finish.detail.get("answer")
    score: Json = {
        "value": finish.score,
        "answer": None if answer is None else str(answer),
        "explanation": finish.reason.value,
        "metadata": {**finish.metrics},
    }
    made: Json = {"scores": {SCORER: score}}
    if finish.reason is FinishReason.TURN_LIMIT:
        made["limit"] = {"type": "turn", "limit": pair.turn_limit or trial.answers, "reason": finish.reason.value}
    if finish.reason is FinishReason.CONTEXT_LIMIT:
        sent = max((turn.prompt_tokens + turn.completion_tokens for turn in trial.turns), default=0)
        made["limit"] = {"type": "context", "limit": sent, "reason": finish.reason.value}
    return made


def _output(trial: Trajectory, told: Sequence[Spoken], pair: ExportedPair) -> Json:
    """The agent's last answer in the trial."""
    answered = max((turn for each in told for turn in each.answers()), key=lambda turn: turn.turn, default=None)
    refused = trial.finish is not None and trial.finish.reason is FinishReason.REFUSED
    if answered is None or answered.action is None:
        declined: Json = {"message": {"role": "assistant", "content": ""}, "stop_reason": "content_filter"}
        return {"model": model_of(pair), "choices": [declined] if refused else []}
    stop = "tool_calls" if answered.action.tool_calls else "stop"
    if answered.finish_reason == "length":
        stop = "max_tokens"
    if trial.finish is not None and trial.finish.reason is FinishReason.CONTEXT_LIMIT:
        stop = "model_length"
    if refused:
        stop = "content_filter"
    message = _message(Said(answered.action.message(), answered), {})
    return {"model": answered.model or pair.model, "choices": [{"message": message, "stop_reason": stop}]}


def _messages(said: Iterable[Said]) -> list[JsonValue]:
    names: dict[str, str] = {}
    return [_message(each, names) for each in said]


def _message(said: Said, names: dict[str, str]) -> Json:
    """A message; `names` keeps the function of each call, for the results after it."""
    message, turn = said.message, said.turn
    made: Json = {"role": message.role, "content": message.content}
    if turn and turn.action and turn.action.reasoning:
        reasoning: Json = {"type": "reasoning", "reasoning": turn.action.reasoning}
        made["content"] = [reasoning, {"type": "text", "text": message.content}]
    if message.role == "assistant":
        made["source"] = "generate" if turn is not None else "input"
    if message.tool_calls:
        names |= {call.id: call.name for call in message.tool_calls}
        made["tool_calls"] = [_call(call) for call in message.tool_calls]
    if message.tool_call_id is not None:
        made["tool_call_id"] = message.tool_call_id
        made["function"] = names.get(message.tool_call_id)
    return made


def _call(call: ToolCall) -> Json:
    arguments = arguments_object(call.arguments)
    made: Json = {"id": call.id, "function": call.name, "type": "function", "arguments": arguments or {}}
    return made if arguments is not None else {**made, "parse_error": f"no JSON object: {call.arguments}"}


def _metrics(result: PairReport) -> dict[str, float]:
    """The environment's metrics, the mean score, and the standard error of the primary metric, if there are scores."""
    if result.mean_score is None:
        return {}
    metrics = {**result.metrics, MEAN_SCORE if "mean" in result.metrics else "mean": result.mean_score}
    if result.standard_error is not None:
        metrics["stderr" if result.primary == MEAN_SCORE else f"stderr_{result.primary}"] = result.standard_error
    return metrics


def _tokens(of: Trajectory | PairReport) -> Json:
    """Tokens by Inspect's names: its input tokens leave the cached ones out."""
    cached = of.cached_tokens or 0
    return {
        "input_tokens": of.prompt_tokens - cached,
        "output_tokens": of.completion_tokens,
        "total_tokens": of.prompt_tokens + of.completion_tokens,
        "input_tokens_cache_read": cached,
        "reasoning_tokens": of.reasoning_tokens or 0,
    }
