"""Pure: a conversation of a trial as a trajectory of ATIF 1.7, the format of Harbor (harbor 0.25.0)."""

from collections.abc import Sequence

from pydantic import JsonValue

from eval_client.report.exports.trials import ExportedPair, Json, Said, Spoken, arguments_object, cause_of, spoken
from eval_client.store.trials.trajectory import ConversationTurn, Trajectory, conversation
from proctor.llm.dialects.chat import tool_json
from proctor.types import Finish, Message, ToolCall

VERSION = "ATIF-v1.7"


def trajectories(trial: Trajectory, pair: ExportedPair) -> dict[str, Json]:
    """conversation -> its trajectory, for a trial that is over. A trial without a turn has one, which tells why."""
    told = spoken(conversation(trial.turns)) or [Spoken("main")]
    return {each.name: _trajectory(each, trial, pair) for each in told}


def _trajectory(each: Spoken, trial: Trajectory, pair: ExportedPair) -> Json:
    session = f"{trial.run}/{trial.trial}"
    outcome = _outcome(trial.finish)
    nothing: Json = {"step_id": 1, "source": "system", "message": f"No turn was played: {outcome.get('cause', '-')}"}
    steps: list[JsonValue] = [*_steps(each.said)] or [nothing]
    agent: Json = {"name": pair.result.agent, "version": pair.version, "model_name": pair.model}
    if each.tools:
        agent["tool_definitions"] = [*map(tool_json, each.tools)]
    return {
        "schema_version": VERSION,
        "session_id": session,
        "trajectory_id": f"{session}/{each.name}",
        "agent": agent,
        "steps": steps,
        "final_metrics": {**_totals(each.answers()), "total_steps": len(steps)},
        "extra": {
            "proctor": {
                **pair.provenance(),
                "task": trial.task,
                "sample": trial.sample,
                "epoch": trial.epoch,
                "conversation": each.name,
                **outcome,
            }
        },
    }


def _totals(turns: Sequence[ConversationTurn]) -> Json:
    """The tokens of turns; nothing where those of one are unknown."""
    if any(turn.metered is False for turn in turns):
        return {}
    return {
        "total_prompt_tokens": sum(turn.prompt_tokens for turn in turns),
        "total_completion_tokens": sum(turn.completion_tokens for turn in turns),
        "total_cached_tokens": sum(turn.cached_tokens for turn in turns),
    }


def _outcome(finish: Finish | None) -> Json:
    """Reason, score and metrics; a fault has its cause instead of a score."""
    if finish is None:
        return {}
    if finish.score is None:
        return {"reason": finish.reason.value, "cause": cause_of(finish)}
    return {"reason": finish.reason.value, "score": finish.score, "metrics": {**finish.metrics}}


def _steps(said: Sequence[Said]) -> list[Json]:
    steps: list[Json] = []
    results: dict[str, list[JsonValue]] = {}
    for each in said:
        message = each.message
        if message.role == "tool" and message.tool_call_id in results:
            results[message.tool_call_id].append({"source_call_id": message.tool_call_id, "content": message.content})
            continue
        step = _step(message, each.turn)
        if message.tool_calls:
            answers: list[JsonValue] = []
            step["observation"] = {"results": answers}
            results |= {call.id: answers for call in message.tool_calls}
        steps.append({"step_id": len(steps) + 1, **step})
    return [_without_empty_observation(step) for step in steps]


def _without_empty_observation(step: Json) -> Json:
    return {name: value for name, value in step.items() if value != {"results": []}}


def _step(message: Message, turn: ConversationTurn | None) -> Json:
    if message.role == "tool":
        return {"source": "user", "message": message.content, "extra": {"tool_call_id": message.tool_call_id}}
    if message.role != "assistant":
        return {"source": message.role, "message": message.content}
    step: Json = {"source": "agent", "message": message.content}
    if message.tool_calls:
        step["tool_calls"] = [_call(call) for call in message.tool_calls]
    if turn is None or turn.action is None:
        return {**step, "llm_call_count": 0, "is_copied_context": True}
    if turn.model:
        step["model_name"] = turn.model
    if turn.action.reasoning:
        step["reasoning_content"] = turn.action.reasoning
    metrics: Json = {}
    if turn.metered is not False:
        step["llm_call_count"] = 1
        metrics["prompt_tokens"] = turn.prompt_tokens
        metrics["completion_tokens"] = turn.completion_tokens
        metrics["cached_tokens"] = turn.cached_tokens
    if turn.action.token_ids:
        metrics["completion_token_ids"] = [*turn.action.token_ids]
    if turn.action.logprobs:
        metrics["logprobs"] = [*turn.action.logprobs]
    return {**step, "metrics": metrics} if metrics else step


def _call(call: ToolCall) -> Json:
    arguments = arguments_object(call.arguments)
    made: Json = {"tool_call_id": call.id, "function_name": call.name, "arguments": arguments or {}}
    return made if arguments is not None else {**made, "extra": {"arguments": call.arguments}}
