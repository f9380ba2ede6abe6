"""The spans of a trial by function calls, from the client to the worker, in an exporter in memory."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

import httpx
import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from eval_client.trial.traces import Traces
from proctor.llm.config import ChatConfig
from proctor.llm.model import ChatModel, Completion
from proctor.observability import tracing
from proctor.observability.tracing import Recorder
from proctor.types import Message, Tool
from tests.support import via
from tests.tools_environment import Doors
from tests.unit.eval_client.trial.test_episode import TRIAL, EpisodeParts

CANARY = "canary-of-the-model"


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    kept = InMemorySpanExporter()
    recorder = Recorder("client", SimpleSpanProcessor(kept))
    monkeypatch.setattr(tracing, "recorders", [recorder])
    yield kept
    recorder.close()


class Endpoint:
    """A model that opens the right door, and then calls a function of no name that was offered."""

    def __init__(self) -> None:
        config = ChatConfig(model="m", base_url="https://api.deepseek.com/v1", sampling={"temperature": 0, "stop": "x"})
        client = httpx.AsyncClient(transport=httpx.MockTransport(self._answer))
        self._model = ChatModel(config, via(client))

    async def __call__(
        self, messages: Sequence[Message], tools: Sequence[Tool], metadata: Mapping[str, str]
    ) -> Completion:
        return await self._model.complete(messages, tools, metadata)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        messages = json.loads(request.content)["messages"]
        door, turn = messages[-1]["content"].rstrip(".").split()[-1], len(messages) // 2
        function = {"name": "open_door" if turn == 1 else CANARY, "arguments": json.dumps({"door": door, "x": CANARY})}
        message = {"content": CANARY, "tool_calls": [{"id": f"c{turn}", "function": function}]}
        choice = {"message": message, "finish_reason": "tool_calls"}
        usage = {"prompt_tokens": 7, "completion_tokens": 3}
        return httpx.Response(200, json={"model": "m-2026", "choices": [choice], "usage": usage})


@pytest.fixture
async def parts() -> AsyncIterator[EpisodeParts]:
    made = EpisodeParts(Doors(turns=2, count=4))
    yield made
    await made.server.sessions.end_all()


async def played(parts: EpisodeParts) -> None:
    """A trial played to its end, from the span of the trial to that of the worker's calls."""
    trial, kept = TRIAL.model_copy(update={"sample": "s3"}), Traces("r")
    kept.enter(trial, "0" * 32)
    end = await parts.episode(Endpoint(), trial=trial).play()
    assert end.finish is not None
    kept.settled(trial, end.finish)


def by_name(spans: Sequence[ReadableSpan]) -> dict[str, ReadableSpan]:
    return {span.name: span for span in spans}


def parents(spans: Sequence[ReadableSpan], span: ReadableSpan) -> list[str]:
    """The names from a span up to the root."""
    ids = {each.context.span_id: each for each in spans if each.context is not None}
    above = ids.get(span.parent.span_id) if span.parent is not None else None
    return [span.name, *(parents(spans, above) if above is not None else [])]


async def test_a_trial_has_a_span_of_each_operation_joined_up_to_its_root(
    parts: EpisodeParts, exporter: InMemorySpanExporter
) -> None:
    await played(parts)
    spans = exporter.get_finished_spans()
    named = by_name(spans)
    assert len({span.context.trace_id for span in spans if span.context is not None}) == 1
    assert parents(spans, named["chat m"]) == ["chat m", "turn", "invoke_agent a", "trial"]
    assert parents(spans, named["execute_tool open_door"])[:2] == ["execute_tool open_door", "environment step"]
    assert parents(spans, named["execute_tool open_door"])[-2:] == ["invoke_agent a", "trial"]
    assert named["chat m"].attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "deepseek",
        "gen_ai.request.model": "m",
        "gen_ai.request.temperature": 0,
        "gen_ai.request.stop_sequences": ("x",),
        "gen_ai.response.model": "m-2026",
        "gen_ai.response.finish_reasons": ("tool_calls",),
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 3,
        "tries": 1,
    }
    assert named["invoke_agent a"].attributes == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "a",
        "gen_ai.conversation.id": "0" * 32,
        "number": 0,
    }
    assert named["execute_tool open_door"].attributes == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "open_door",
        "gen_ai.tool.call.id": "c1",
    }
    (event,) = named["trial"].events
    assert (event.name, event.attributes) == (
        "gen_ai.evaluation.result",
        {
            "gen_ai.evaluation.name": "t",
            "gen_ai.evaluation.score.value": 0.5,
            "gen_ai.evaluation.score.label": "completed",
        },
    )


async def test_spans_hold_no_content_and_no_name_that_the_model_made_up(
    parts: EpisodeParts, exporter: InMemorySpanExporter
) -> None:
    await played(parts)
    spans = exporter.get_finished_spans()
    assert "execute_tool unknown" in by_name(spans)
    told = "".join(span.to_json() for span in spans)
    for hidden in (CANARY, "first door", "You walk"):
        assert hidden not in told
