"""Function calling, over all environments that offer functions: lines of its acceptance list under their numbers.

Line 22 is `tests/faults/test_fuzz_calls.py`, and line 4 of the default profiles `tests/conformance`. `os` plays in
namespaces, which its profile strict can't; `db` in SQLite.
"""

import json
from collections.abc import Callable

import pytest
from pydantic import JsonValue, ValidationError

from eval_client.plan.plan import differences
from proctor import registry
from proctor.config.task import TaskDefinition
from proctor.conformance.check import check
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.types import Action, FinishReason
from tests.support import SHARED_DATA
from tests.tool_calls import (
    ENGINES,
    CallingAgent,
    Fields,
    call,
    configurations,
    environment_in,
    has_protocols,
    replying,
)

WORLDS = ("alfworld", "card_game", "db", "kg", "ltp", "mind2web", "os", "stss", "webshop")
PUBLISHED = ("alfworld", "db", "kg", "os", "webshop")
"""Those whose functions AgentBench FC published; `kg` adds one in profile strict."""
WRITTEN_OTHERWISE = {("db", "answer"), ("os", "answer")}
"""Of a session's detail, what the same session holds in other words in the other protocol."""
REFERENCE_LOSES = {("card_game", "paper")}
"""(world, profile) where a game can't be won by the reference, so that `check` fails in both protocols."""
REFERENCE_IS_NOT_PERFECT = {"mind2web", "stss"}
"""Worlds whose reference does not solve every shipped sample."""
DRAWS_OTHERWISE = {"os", "stss"}
"""Worlds whose random policy draws other actions in the other protocol."""
CONFIGURATIONS = configurations()


def each(wanted: Callable[[str, str], bool]) -> pytest.MarkDecorator:
    """A test of the worlds and profiles that are wanted, each in its configuration."""
    cases = [
        pytest.param(name, fields, id="-".join([name, *fields.values()]))
        for name, fields in CONFIGURATIONS
        if wanted(name, fields["profile"])
    ]
    return pytest.mark.parametrize(("name", "fields"), cases)


@pytest.mark.parametrize("name", WORLDS)
def test_01_each_builds_with_protocol_tools(name: str) -> None:
    fields = ENGINES.get(name, {})
    assert environment_in(name, "tools", fields).digest()
    assert environment_in(name, "text", fields) == registry.load(name)(**fields)


def test_01_only_simulbench_refuses() -> None:
    assert {name for name, _ in CONFIGURATIONS} == set(WORLDS)
    assert {name for name in registry.names() if has_protocols(name)} == {*WORLDS, "simulbench"}
    with pytest.raises(ValidationError, match=r"protocol: .* no functions"):
        environment_in("simulbench", "tools", {})


@pytest.mark.shared
@each(lambda name, profile: name in PUBLISHED and (name, profile) != ("kg", "strict"))
async def test_02_functions_and_rounds_are_the_published_ones(name: str, fields: Fields) -> None:
    published = json.loads((SHARED_DATA / "interop" / "fc" / "tools.json").read_text(encoding="utf-8"))[name]
    environment, agent = environment_in(name, "tools", fields), replying(Action(content="hm"))
    async with environment.lifespan():
        await play_to_finish(environment, environment.samples()[0], agent)
    declared = [_without_descriptions(tool.model_dump()) for tool in agent.seen[0].tools]
    assert declared == [_without_descriptions(tool["function"]) for tool in published["tools"]]
    assert len(agent.seen) == environment.max_turns == published["rounds"]


def _without_descriptions(value: object) -> object:
    if not isinstance(value, dict):
        return value
    return {key: _without_descriptions(each) for key, each in value.items() if key != "description"}


@pytest.mark.parametrize("share", [10, pytest.param(1, marks=pytest.mark.thorough)])
@each(lambda _name, _profile: True)
async def test_03_the_policies_score_the_same_in_both_protocols(name: str, fields: Fields, share: int) -> None:
    """The reference on one sample of `share`; the others on some, where both protocols have as many turns."""
    text, tools = environment_in(name, "text", fields), environment_in(name, "tools", fields)
    assert text.samples() == tools.samples()
    some = text.samples()[:: len(text.samples()) // 10 + 1] if text.max_turns == tools.max_turns else ()
    async with text.lifespan(), tools.lifespan():
        drawn = () if name in DRAWS_OTHERWISE else some
        for kind, samples in (("reference", text.samples()[::share]), ("naive", some), ("random", drawn)):
            for sample in samples:
                written, called = (getattr(environment, kind)(sample, 1) for environment in (text, tools))
                one = await play_to_finish(text, sample, PolicyAgent(written), 1)
                other = await play_to_finish(tools, sample, CallingAgent(called), 1)
                case = (kind, sample)
                assert one.score is not None, (case, one.detail)
                assert kind != "reference" or one.score == 1.0 or _may_lose(name, fields), (case, one.detail)
                assert (other.reason, other.score) == (one.reason, one.score), (case, other.detail)
                assert one.metrics.items() <= other.metrics.items(), case
                same = [field for field in one.detail if (name, field) not in WRITTEN_OTHERWISE]
                assert [one.detail[field] for field in same] == [other.detail[field] for field in same], case


def _may_lose(name: str, fields: Fields) -> bool:
    return name in REFERENCE_IS_NOT_PERFECT or (name, fields["profile"]) in REFERENCE_LOSES


def _is_default(name: str, profile: str) -> bool:
    return bool(registry.load(name).model_fields["profile"].default == profile)


@pytest.mark.thorough
@each(lambda name, profile: not _is_default(name, profile) and (name, profile) not in REFERENCE_LOSES)
async def test_04_check_passes_in_both_protocols(name: str, fields: Fields) -> None:
    results = [result async for result in check(environment_in(name, "tools", fields), samples=1)]
    assert [f"{result.name}: {result.detail}" for result in results if result.state != "ok"] == []
    for protocol in ("text", "tools"):
        assert len([result for result in results if result.name.startswith(f"{protocol}: ")]) >= 10


@each(lambda _name, _profile: True)
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
@each(lambda _name, profile: profile != "compat")
async def test_20_a_session_without_a_readable_call_ends_as_invalid(
    name: str, fields: Fields, reply: Action, metric: str, reason: FinishReason
) -> None:
    environment, agent = environment_in(name, "tools", fields), replying(reply)
    async with environment.lifespan():
        finish = await play_to_finish(environment, environment.samples()[0], agent)
    assert (finish.reason, finish.score) == (reason, 0), finish.detail
    assert finish.metrics[metric] == len(agent.seen)
    if reply.content and environment.bad_replies:
        assert finish.metrics[environment.bad_replies] == len(agent.seen)
