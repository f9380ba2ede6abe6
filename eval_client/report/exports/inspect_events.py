"""Pure: what was said in a trial as Inspect's messages and events (inspect-ai 0.3.285)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from pydantic import JsonValue

from eval_client.report.exports.trials import Json, Said, Spoken, arguments_object
from eval_client.report.pair_report import PairReport
from eval_client.store.tables import attempt_table
from eval_client.store.trials.trajectory import ConversationTurn, Trajectory
from eval_client.store.values import parsed
from proctor.types import FinishReason, Message, Tool, ToolCall

SOURCE = "proctor"
_TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")
_ASKED = (FinishReason.REFUSED, FinishReason.CONTEXT_LIMIT)
"""Why a trial stopped whose model was asked and gave no answer."""

Places = Mapping[tuple[object, ...], list[int]]
"""content of a message -> where the pool has it, in the order in which it was said"""


class Recorded:
    """The messages and events of a trial; the ids of both begin with the sample's.

    The input of a model's event is ranges of `pool`, so that no turn writes its whole history again. Events have the
    time at which they would have been without any waits: the journal keeps how long a turn took, not when.
    """

    def __init__(self, trial: Trajectory, told: Iterable[Spoken], uuid: str, model: str, started: str) -> None:
        self.pool: list[JsonValue] = []
        self._uuid, self._model = uuid, model
        self._started = parsed(attempt_table.c.started_at, datetime.fromisoformat, started)
        self._asked, self._answered = dict[int, float](), dict[int, float]()
        self.seconds = 0.0
        """How long the model and the environment worked."""
        for turn in trial.turns:
            self._asked[turn.turn] = self.seconds + (turn.world_seconds or 0.0)
            self.seconds = self._answered[turn.turn] = self._asked[turn.turn] + turn.model_seconds
        by_turn: list[tuple[int, Json]] = []
        self.conversations: dict[str, JsonValue] = {each.name: self._conversation(each, by_turn) for each in told}
        """name -> its messages, in the order in which the conversations began"""
        by_turn.sort(key=lambda each: each[0])
        self.events: list[JsonValue] = [{"uuid": f"{uuid}-e{at}", **event} for at, (_, event) in enumerate(by_turn)]

    def _conversation(self, one: Spoken, events: list[tuple[int, Json]]) -> list[JsonValue]:
        """Its messages, each once as it was first sent; adds its events with their turns."""
        places, names = defaultdict[tuple[object, ...], list[int]](list), dict[str, str]()
        calls: dict[str | None, tuple[ToolCall, int]] = {}
        said: list[JsonValue] = []
        new: list[int] = []
        turns = [*one.answers(), *filter(None, [one.stopped])]
        if self.pool and turns:
            events.append((turns[0].turn, self._begin(one.name, self._asked[turns[0].turn])))
        for each in one.said:
            said.append(made := message(each, names))
            if each.turn is not None:
                sent = self._input(each.turn, new, places)
                new = []
                events.append((each.turn.turn, self._model_event(each.turn, one.name, sent, made)))
                calls |= {call.id: (call, each.turn.turn) for call in each.message.tool_calls}
            place = self._pooled(made)
            places[_content(each.message)].append(place)
            if each.turn is None:
                new.append(place)
                if answered := calls.pop(each.message.tool_call_id, None):
                    events.append((answered[1], self._tool_event(*answered, made)))
        if one.stopped is not None and one.stopped.stop in _ASKED:
            sent = self._input(one.stopped, new, places)
            events.append((one.stopped.turn, self._model_event(one.stopped, one.name, sent, None)))
        return said

    def _pooled(self, made: Json) -> int:
        """Where the pool has a message from now on; gives it its id."""
        made["id"] = f"{self._uuid}-m{len(self.pool)}"
        self.pool.append(made)
        return len(self.pool) - 1

    def _input(self, turn: ConversationTurn, new: Sequence[int], places: Places) -> list[JsonValue]:
        """The turn's history as ranges of the pool, to which it adds what is sent again in other words.

        `new` are the places of its last messages.
        """
        history, counts, sent = (*turn.earlier, *turn.messages), Counter[tuple[object, ...]](), list[int]()
        for again in history[: len(history) - len(new)]:
            content = _content(again)
            if counts[content] == len(places[content]):
                places[content].append(self._pooled(message(Said(again), {})))
            sent.append(places[content][counts[content]])
            counts[content] += 1
        ranges: list[list[JsonValue]] = []
        for place in (*sent, *new):
            if ranges and ranges[-1][1] == place:
                ranges[-1][1] = place + 1
            else:
                ranges.append([place, place + 1])
        return [*ranges]

    def _event(self, kind: str, began: float, ended: float) -> Json:
        """What events of some length have; times in seconds of work since the trial began."""
        length: Json = {"completed": self._time(ended), "working_time": ended - began}
        return {"event": kind, "timestamp": self._time(began), "working_start": began, **length}

    def _begin(self, name: str, at: float) -> Json:
        """The beginning of a conversation beside the first one."""
        when: Json = {"timestamp": self._time(at), "working_start": at}
        return {"event": "info", "source": SOURCE, **when, "data": {"conversation": name}}

    def _time(self, seconds: float) -> str:
        return (self._started + timedelta(seconds=seconds)).isoformat()

    def _model_event(self, turn: ConversationTurn, name: str, sent: list[JsonValue], answer: Json | None) -> Json:
        """A turn; without an answer the model refused it, or its context was too long."""
        declined: Json = {"role": "assistant", "content": "", "id": f"{self._uuid}-declined-{turn.turn}"}
        refused: list[JsonValue] = [{"message": declined, "stop_reason": "content_filter"}]
        given: list[JsonValue] = [{"message": answer, "stop_reason": stop_reason(turn)}]
        return {
            **self._event("model", self._asked[turn.turn], self._answered[turn.turn]),
            "model": self._model,
            "input": [],
            "input_refs": sent,
            "tools": [_tool(tool) for tool in turn.tools],
            "tool_choice": "auto",
            "config": {},
            "output": {
                "model": turn.model or self._model,
                "choices": given if answer else refused if turn.stop is FinishReason.REFUSED else [],
                "usage": None if turn.metered is False else tokens(turn),
                "time": turn.model_seconds,
            },
            "retries": max(turn.tries - 1, 0),
            "error": turn.stop and turn.stop.value,
            "metadata": {"conversation": name, "turn": turn.turn},
        }

    def _tool_event(self, call: ToolCall, turn: int, result: Json) -> Json:
        """A call of a turn with the environment's answer."""
        answered, made = self._answered[turn], _call(call)
        return {
            **self._event("tool", answered, self._asked.get(turn + 1, answered)),
            "id": call.id,
            "function": call.name,
            "arguments": made["arguments"],
            "result": result["content"],
            "message_id": result["id"],
            "error": {"type": "parsing", "message": made["parse_error"]} if "parse_error" in made else None,
        }


def message(said: Said, names: dict[str, str]) -> Json:
    """A message; `names` keeps the function of each call, for the results after it."""
    told, turn = said.message, said.turn
    made: Json = {"role": told.role, "content": told.content}
    if turn and turn.action and turn.action.reasoning:
        reasoning: Json = {"type": "reasoning", "reasoning": turn.action.reasoning}
        made["content"] = [reasoning, {"type": "text", "text": told.content}]
    if told.role == "assistant":
        made["source"] = "generate" if turn is not None else "input"
    if told.tool_calls:
        names |= {call.id: call.name for call in told.tool_calls}
        made["tool_calls"] = [_call(call) for call in told.tool_calls]
    if told.tool_call_id is not None:
        made["tool_call_id"] = told.tool_call_id
        made["function"] = names.get(told.tool_call_id)
    return made


def stop_reason(turn: ConversationTurn) -> str:
    """Why an answer ended where it did."""
    if turn.finish_reason == "length":
        return "max_tokens"
    return "tool_calls" if turn.action and turn.action.tool_calls else "stop"


def tokens(of: Trajectory | PairReport | ConversationTurn) -> Json:
    """Tokens by Inspect's names: its input tokens leave the cached ones out."""
    cached = of.cached_tokens or 0
    return {
        "input_tokens": of.prompt_tokens - cached,
        "output_tokens": of.completion_tokens,
        "total_tokens": of.prompt_tokens + of.completion_tokens,
        "input_tokens_cache_read": cached,
        "reasoning_tokens": of.reasoning_tokens or 0,
    }


def _content(of: Message) -> tuple[object, ...]:
    """What is equal where a message is sent again, without what an endpoint demands back."""
    return of.role, of.content, tuple((call.id, call.name, call.arguments) for call in of.tool_calls), of.tool_call_id


def _call(call: ToolCall) -> Json:
    arguments = arguments_object(call.arguments)
    made: Json = {"id": call.id, "function": call.name, "type": "function", "arguments": arguments or {}}
    return made if arguments is not None else {**made, "parse_error": f"no JSON object: {call.arguments}"}


def _tool(tool: Tool) -> Json:
    parameters: Json = {"type": "object", **_fields(tool.parameters)}
    return {"name": tool.name, "description": tool.description, "parameters": parameters}


def _fields(schema: Json) -> Json:
    """The fields of an object's schema. Of what JSON Schema allows, only what Inspect's own schema can say."""
    fields, required = schema.get("properties"), schema.get("required")
    told: Json = {name: _field(each) for name, each in fields.items()} if isinstance(fields, dict) else {}
    return {"properties": told, "required": [name for name in told if isinstance(required, list) and name in required]}


def _field(schema: JsonValue) -> Json:
    if not isinstance(schema, dict):
        return {}
    kind, text, values = schema.get("type"), schema.get("description"), schema.get("enum")
    told: Json = {"type": kind} if kind in _TYPES else {}
    if isinstance(text, str):
        told["description"] = text
    if isinstance(values, list):
        told["enum"] = values
    if kind == "array":
        told["items"] = _field(schema.get("items"))
    return {**told, **_fields(schema)} if kind == "object" else told
