"""Pure: a trial as a sample of Inspect's log format, version 2, and a pair as the log's header (inspect-ai 0.3.285)."""

from collections.abc import Iterable, Sequence
from urllib.parse import quote

from eval_client.report.exports.inspect_events import SOURCE as SCORER
from eval_client.report.exports.inspect_events import Recorded, message, stop_reason, tokens
from eval_client.report.exports.trials import ExportedPair, Json, Said, Spoken, cause_of, spoken
from eval_client.report.pair_report import PairReport
from eval_client.store.trials.trajectory import Trajectory, conversation
from proctor.digest import digest_of
from proctor.environment import MEAN_SCORE
from proctor.types import WORDS, FinishReason

VERSION = 2
SUMMARY_CHARS = 1000
"""Of a text in a summary, as Inspect cuts its own."""
_KEPT = " !#$&'()+,-;=@[]^{}~"
"""Characters that need no escape in the name of a file in a zip."""
_SUMMARY = (
    *("id", "epoch", "target", "scores", "model_usage", "started_at", "completed_at"),
    *("total_time", "working_time", "turn_count"),
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
    told, uuid = spoken(conversation(trial.turns)), sample_id(f"{pair.run}-{trial.trial}")
    started = trial.attempts[0].started_at if trial.attempts else pair.created_at
    recorded = Recorded(trial, told, uuid, model_of(pair), started)
    first, *further = recorded.conversations.items() or [("main", [])]
    metadata: Json = {"sample": trial.sample, "trial": trial.trial, "attempts": len(trial.attempts)}
    if further:
        metadata["conversations"] = dict(further)
    words = {} if trial.finish is None else {name: str(trial.finish.detail.get(name, "")) for name in WORDS}
    first_input = next((each.content for each in told[0].messages() if each.role == "user"), "") if told else ""
    made: Json = {
        "id": sample_id(trial.sample),
        "epoch": trial.epoch + 1,
        "input": words.get("asked") or first_input,
        "target": words.get("expected", ""),
        "messages": first[1],
        "output": _output(trial, told, pair),
        "metadata": metadata,
        "events": recorded.events,
        "events_data": {"messages": recorded.pool, "calls": []},
        "model_usage": {model_of(pair): tokens(trial)} if is_metered(trial) else {},
        "started_at": started,
        "completed_at": trial.ended_at,
        "total_time": trial.seconds,
        "working_time": min(recorded.seconds, trial.seconds),
        "turn_count": trial.answers,
        "uuid": uuid,
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
    own = digest_of([pair.run, result.agent, result.task])
    return {
        "version": VERSION,
        "eval": {
            "eval_id": own,
            "run_id": pair.run,
            "created": pair.created_at,
            "task": result.task,
            "task_id": own,
            "task_version": 0,
            "dataset": {"name": result.task, "samples": len(ids), "sample_ids": [*ids]},
            "solver": result.agent,
            "model": model_of(pair),
            "model_args": {**pair.sampling, "proctor_model": pair.model},
            "config": {"epochs": epochs},
            "metadata": pair.provenance(),
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
            "model_usage": {model_of(pair): tokens(result)} if metered else {},
        },
    }


def _outcome(trial: Trajectory, pair: ExportedPair) -> Json:
    finish = trial.finish
    if finish is None or finish.score is None:
        cause = cause_of(finish) if finish else "not over"
        return {"error": {"message": cause, "traceback": "", "traceback_ansi": ""}}
    answer = finish.detail.get("answered", finish.detail.get("answer"))
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
    stop = stop_reason(answered)
    if trial.finish is not None and trial.finish.reason is FinishReason.CONTEXT_LIMIT:
        stop = "model_length"
    if refused:
        stop = "content_filter"
    last = message(Said(answered.action.message(), answered), {})
    return {"model": answered.model or pair.model, "choices": [{"message": last, "stop_reason": stop}]}


def _metrics(result: PairReport) -> dict[str, float]:
    """The environment's metrics, the mean score, and the standard error of the primary metric, if there are scores."""
    if result.mean_score is None:
        return {}
    metrics = {**result.metrics, MEAN_SCORE if "mean" in result.metrics else "mean": result.mean_score}
    if result.standard_error is not None:
        metrics["stderr" if result.primary == MEAN_SCORE else f"stderr_{result.primary}"] = result.standard_error
    return metrics
