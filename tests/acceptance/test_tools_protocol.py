"""Function calling, over all environments that offer functions: lines of its acceptance list under their numbers.

Line 4 is `tests/conformance`, line 22 `tests/faults/test_fuzz_calls.py`.
"""

import pytest
from pydantic import JsonValue, ValidationError

from eval_client.plan import differences
from proctor import registry
from proctor.config.task import TaskDefinition
from proctor.environment import PolicyAgent, play_to_finish
from proctor.types import Action, FinishReason
from tests.tool_calls import CallingAgent, call, replying
from tests.tool_environments import ENGINES, Fields, configurations, environment_in, has_protocols

CONFIGURATIONS = configurations()
EACH = pytest.mark.parametrize(
    ("name", "fields"), [pytest.param(*case, id="-".join([case[0], *case[1].values()])) for case in CONFIGURATIONS]
)
REFUSING = {"simulbench"}


@pytest.mark.parametrize("name", [name for name in registry.names() if has_protocols(name)])
def test_01_each_builds_with_protocol_tools_but_those_whose_reply_is_the_product(name: str) -> None:
    if name in REFUSING:
        with pytest.raises(ValidationError, match=r"protocol: .* no functions"):
            environment_in(name, "tools", {})
    else:
        assert environment_in(name, "tools", ENGINES.get(name, {})).digest()
        assert environment_in(name, "text", ENGINES.get(name, {})) == registry.load(name)(**ENGINES.get(name, {}))


@EACH
async def test_03_the_reference_scores_the_same_in_both_protocols_on_every_sample(name: str, fields: Fields) -> None:
    text, tools = environment_in(name, "text", fields), environment_in(name, "tools", fields)
    async with text.lifespan(), tools.lifespan():
        for sample in text.samples():
            written, called = text.reference(sample), tools.reference(sample)
            assert written is not None
            assert called is not None
            one = await play_to_finish(text, sample, PolicyAgent(written))
            other = await play_to_finish(tools, sample, CallingAgent(called))
            assert (other.reason, other.score) == (one.reason, one.score), (sample, other.detail)
            assert one.score is not None, (sample, one.detail)


@EACH
def test_05_digest_and_shape_differ_and_a_changed_plan_is_told_by_that_word(name: str, fields: Fields) -> None:
    assert environment_in(name, "text", fields).digest() != environment_in(name, "tools", fields).digest()

    def shape(protocol: str) -> dict[str, JsonValue]:
        parameters: dict[str, JsonValue] = {**fields, "protocol": protocol}
        return TaskDefinition(name=name, environment=name, parameters=parameters).shape()

    assert differences(shape("text"), shape("tools")) == ["parameters.protocol: 'text' -> 'tools'"]


@pytest.mark.parametrize(
    ("reply", "metric", "reason"),
    [
        (Action(content="hm"), "no_call", FinishReason.INVALID_FORMAT),
        (call("no_such_function"), "unknown_function", FinishReason.INVALID_ACTION),
    ],
    ids=["no_call", "unknown_function"],
)
@pytest.mark.parametrize("name", sorted({name for name, fields in CONFIGURATIONS if fields.get("profile") == "strict"}))
async def test_20_a_session_without_a_readable_call_ends_as_invalid(
    name: str, reply: Action, metric: str, reason: FinishReason
) -> None:
    environment = environment_in(name, "tools", ENGINES.get(name, {}) | {"profile": "strict"})
    agent = replying(reply)
    async with environment.lifespan():
        finish = await play_to_finish(environment, environment.samples()[0], agent)
    assert (finish.reason, finish.score) == (reason, 0), finish.detail
    assert finish.metrics[metric] == len(agent.seen)
