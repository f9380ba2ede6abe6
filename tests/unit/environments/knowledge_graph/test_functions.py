"""Protocol `tools`: what functions there are, and how a session with calls goes."""

import json
from collections.abc import Mapping, Sequence

import pytest
from pydantic import JsonValue

from environments.knowledge_graph import prompt
from environments.knowledge_graph.environment import KnowledgeGraph
from environments.knowledge_graph.functions import toolset
from environments.knowledge_graph.prompt import ROUNDS, before_calls
from environments.knowledge_graph.reply import FinalAnswer, NoAction, read
from environments.knowledge_graph.tools import Profile
from proctor.environment import Agent, ContextLimitExceeded
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.tools import OWN_FUNCTIONS
from proctor.types import Action, Finish, FinishReason
from tests.random_calls import fuzz
from tests.tool_calls import CallingAgent, Reply, calls, invalid_history, replying, sessions_in_text

PROFILES: Sequence[Profile] = ("compat", "strict")
RELATIONS = ("get_relations", {"variable": "Fenholm"})
HOP = ("get_neighbors", {"variable": "m.isle_006", "relation": "isles.island.lighthouses"})
COUNT = ("count", {"variable": "#0"})
FOUND = "Observation: variable #0, which are instances of isles.lighthouse"


def text(content: str) -> Action:
    return Action(content=content)


async def play(*replies: Reply, profile: Profile = "strict") -> tuple[Finish, CallingAgent]:
    agent = replying(*replies)
    return await play_with(agent, KnowledgeGraph(profile=profile, protocol="tools")), agent


async def play_with(agent: Agent, environment: KnowledgeGraph, sample: str = "isles-01") -> Finish:
    async with environment.lifespan():
        return await play_to_finish(environment, sample, agent)


def test_only_strict_has_a_function_for_the_answer() -> None:
    names = ["get_relations", "get_neighbors", "intersection", "get_attributes", "argmax", "argmin", "count"]
    assert [tool.name for tool in toolset("compat").tools()] == names
    assert [tool.name for tool in toolset("strict").tools()] == [*names, "answer"]


def test_every_function_reads_what_it_writes() -> None:
    lines = (
        *("get_relations(#0)", "get_neighbors(Fenholm, a.b)", "intersection(#0, #1)", "get_attributes(#0)"),
        *("argmax(#0, a.b)", "argmin(#0, a.b)", "count(#0)"),
    )
    for line, function in zip(lines, toolset("strict").functions, strict=False):
        arguments = function.write(read(f"Action: {line}"))
        assert arguments is not None
        assert function.read(arguments) == read(f"Action: {line}")
    answer = toolset("strict").functions[-1]
    assert answer.read({"variable": "#3"}) == answer.read({"variable": " 3"}) == FinalAnswer("3")
    assert answer.write(FinalAnswer("3")) == {"variable": "#3"}
    wrong = ("exit(#0)", "count(#0, #1)", "count(")
    for action in (NoAction(), *(read(f"Action: {line}") for line in wrong)):
        assert [function.write(action) for function in toolset("strict").functions] == [None] * 8


@pytest.mark.parametrize("profile", PROFILES)
def test_the_worked_example_is_one_that_endpoints_take_and_uses_no_variable_before_it_is_made(profile: Profile) -> None:
    system, *example = before_calls(profile)
    assert system.role == "system"
    assert ("function answer" in system.content) == (profile == "strict")
    assert invalid_history((system, *example)) is None
    made = 0
    for message in example:
        for call in message.tool_calls:
            assert call.name in system.content or call.name in {tool.name for tool in toolset("compat").tools()}
            used = [value for value in json.loads(call.arguments).values() if value.startswith("#")]
            assert all(int(value[1:]) < made for value in used)
        made += message.content.startswith("Observation: variable #")
    assert [len(message.tool_calls) for message in example if message.role == "assistant"] == [1] * 7 + [0]
    assert example[-1].content.endswith(f"\nFinal Answer: #{made - 1}")
    assert not any("Action:" in message.content for message in example)


async def test_a_session_begins_with_system_example_and_question_and_then_only_adds_results() -> None:
    finish, agent = await play(calls(RELATIONS), calls(HOP), text("It is #0.\nFinal Answer: #0"))
    environment = KnowledgeGraph()
    first = agent.seen[0].messages
    assert first == (*before_calls("strict"), prompt.question(environment._entry("isles-01")))
    assert [(m.role, m.tool_call_id, m.content) for m in agent.seen[2].messages] == [("tool", "call00009", FOUND)]
    assert all(seen.tools == toolset("strict").tools() and not seen.fresh for seen in agent.seen)
    assert (finish.reason, finish.metrics["rounds"], finish.metrics["calls"]) == (FinishReason.COMPLETED, 3.0, 2.0)
    assert (finish.metrics["executability"], finish.metrics["n_bad_format"]) == (1.0, 0.0)


async def test_the_calls_of_a_reply_are_executed_in_order_and_each_has_its_result() -> None:
    finish, agent = await play(calls(RELATIONS, HOP, COUNT, ("exit", {})), text("Final Answer: #1"))
    told = agent.told(1)
    assert told[0].startswith("Observation: [isles.island.")
    assert told[1:3] == [FOUND, "Observation: variable #1, which is a number"]
    assert "no function 'exit'" in told[3]
    assert (finish.reason, finish.metrics["n_bad_action"], finish.metrics["unknown_function"]) == (
        FinishReason.COMPLETED, 0.0, 1.0,
    )  # fmt: skip


async def test_in_strict_the_function_answer_ends_the_session_and_what_follows_it_is_not_executed() -> None:
    finish, agent = await play(calls(RELATIONS, HOP), calls(("answer", {"variable": "#0"}), COUNT))
    assert (finish.reason, finish.metrics["executability"], len(agent.seen)) == (FinishReason.COMPLETED, 1.0, 2)
    finish, agent = await play(calls(("answer", {"variable": "the first"})), calls(("answer", {"variable": 7})))
    assert "must be the number of a variable" in agent.told(1)[0]
    assert agent.told(2)[0].startswith("The variable id #7 is invalid")
    assert (finish.reason, finish.metrics["rounds"]) == (FinishReason.INVALID_ACTION, ROUNDS)
    finish, agent = await play(calls(("answer", {"variable": "#0"})), text("Final Answer: #9"), profile="compat")
    assert "no function 'answer'" in agent.told(1)[0]
    assert len(agent.seen) == 2


async def test_a_final_answer_that_names_no_variable_ends_compat_and_costs_strict_a_round() -> None:
    finish, agent = await play(calls(RELATIONS), text("Final Answer: #0"), calls(HOP), profile="compat")
    assert (finish.reason, finish.score, finish.metrics["n_bad_action"]) == (FinishReason.INVALID_ACTION, 0.0, 1.0)
    assert len(agent.seen) == 2
    finish, agent = await play(calls(RELATIONS), text("Final Answer: #0"), calls(HOP), text("Final Answer: #0"))
    assert agent.told(2) == ["The variable id #0 is invalid: there is no such variable. Please recheck the action."]
    assert agent.seen[2].messages[0].role == "user"
    assert (finish.reason, finish.metrics["executability"]) == (FinishReason.COMPLETED, 1.0)


async def test_other_forms_of_the_final_answer_are_treated_as_in_text() -> None:
    reasons = (FinishReason.TURN_LIMIT, FinishReason.COMPLETED)
    for profile, reason in zip(PROFILES, reasons, strict=True):
        finish, agent = await play(calls(RELATIONS, HOP), text("**Final Answer:** #0"), profile=profile)
        assert finish.reason is reason
        assert profile == "strict" or agent.told(2) == [prompt.ANSWER_FORM]


async def test_a_final_answer_beside_calls_is_not_read() -> None:
    replies = (calls(RELATIONS, HOP, content="Final Answer: #0"), text("Final Answer: #0\nObservation: #7"))
    finish, agent = await play(*replies)
    assert (finish.reason, len(agent.seen)) == (FinishReason.COMPLETED, 2)


@pytest.mark.parametrize(
    ("reply", "role", "told"),
    [
        (text("Action: get_relations(Fenholm)"), "user", "Your reply calls no function."),
        (text(""), "user", "Your reply calls no function."),
        (calls(("get_relations", '{"variable": "Fen')), "tool", "The arguments of get_relations can't be read"),
        (calls(("get_relations", {})), "tool", "variable is missing"),
        (calls(("get_neighbors", {"variable": "Fenholm"})), "tool", "relation is missing"),
        (calls(("get_everything", {})), "tool", "there is no function 'get_everything'"),
        (calls(("count", {"variable": "#0"})), "tool", "count(#0) cannot be executed as it is written."),
        (calls(("get_relations", {"variable": "variable #0"})), "tool", "get_relations(variable #0) cannot be"),
    ],
)
@pytest.mark.parametrize("profile", PROFILES)
async def test_what_cannot_be_executed_is_told_and_costs_a_round(
    reply: Action, role: str, told: str, profile: Profile
) -> None:
    finish, agent = await play(reply, calls(RELATIONS), calls(HOP), text("Final Answer: #0"), profile=profile)
    assert (agent.seen[1].messages[0].role, told in agent.told(1)[0]) == (role, True)
    assert (finish.reason, finish.metrics["rounds"]) == (FinishReason.COMPLETED, 4.0)
    assert finish.metrics["n_bad_format"] + finish.metrics["n_bad_action"] == 1.0


async def test_arguments_are_read_by_their_names_alone() -> None:
    for profile in PROFILES:
        _, agent = await play(calls(("get_relations", {"entity": "Fenholm"})), text("hm"), profile=profile)
        assert "variable is missing, there is no argument 'entity'" in agent.told(1)[0]
        given = {"why": "so", "variable": "Fenholm"}
        _, agent = await play(calls(("get_relations", given)), text("hm"), profile=profile)
        assert agent.told(1)[0].startswith("Observation: [")


@pytest.mark.parametrize(
    ("replies", "reason", "metrics"),
    [
        ([text("hm")], FinishReason.INVALID_FORMAT, {"no_call": ROUNDS, "n_bad_format": ROUNDS}),
        ([calls(("f", {}))], FinishReason.INVALID_ACTION, {"unknown_function": ROUNDS, "n_bad_action": ROUNDS}),
        ([calls(("count", "{"))], FinishReason.INVALID_FORMAT, {"bad_arguments": ROUNDS, "n_bad_format": ROUNDS}),
        ([calls(("count", {}))], FinishReason.INVALID_ACTION, {"bad_arguments": ROUNDS, "n_bad_format": ROUNDS}),
        ([calls(COUNT, COUNT)], FinishReason.INVALID_ACTION, {"calls": 2 * ROUNDS, "n_bad_action": ROUNDS}),
        ([calls(COUNT, RELATIONS)], FinishReason.TURN_LIMIT, {"n_bad_action": 0}),
        ([calls(RELATIONS), text("hm")], FinishReason.TURN_LIMIT, {"no_call": ROUNDS - 1}),
    ],
)
async def test_strict_says_why_a_session_at_its_limit_came_to_nothing(
    replies: list[Action], reason: FinishReason, metrics: Mapping[str, float]
) -> None:
    finish, agent = await play(*replies)
    assert (finish.reason, finish.score, len(agent.seen)) == (reason, 0.0, ROUNDS)
    assert {name: finish.metrics[name] for name in metrics} == metrics
    finish, _ = await play(*replies, profile="compat")
    assert (finish.reason, finish.score) == (FinishReason.TURN_LIMIT, 0.0)


async def test_an_agent_that_stops_has_no_answer() -> None:
    finish, _ = await play(calls(RELATIONS), ContextLimitExceeded())
    assert (finish.reason, finish.score, finish.metrics["calls"]) == (FinishReason.CONTEXT_LIMIT, 0.0, 1.0)


@pytest.mark.parametrize("profile", PROFILES)
async def test_the_policies_score_the_same_in_both_protocols_on_every_sample(profile: Profile) -> None:
    scores: dict[str, list[float | None]] = {"text": [], "tools": []}
    for protocol in ("text", "tools"):
        environment = KnowledgeGraph(profile=profile, protocol=protocol)
        async with environment.lifespan():
            for sample in environment.samples():
                for policy in (environment.reference(sample), environment.naive(sample), environment.random(sample)):
                    agent = PolicyAgent(policy) if protocol == "text" else CallingAgent(policy)
                    scores[protocol].append((await play_to_finish(environment, sample, agent)).score)
    assert scores["tools"] == scores["text"]
    assert scores["tools"][::3] == [1.0] * 21


def test_the_published_prompt_goes_with_text_alone() -> None:
    with pytest.raises(ValueError, match="remove it, or set protocol: text"):
        KnowledgeGraph(protocol="tools", prompts="task.py")


def test_scores_with_own_functions_compare_with_nothing_published() -> None:
    assert KnowledgeGraph(protocol="tools").not_comparable_because() == OWN_FUNCTIONS


@pytest.mark.parametrize(
    ("profile", "digest", "sessions"),
    [
        ("compat", "de59bad24dee69a88e8ede8a156ca849", "5b23116ebe333e5b"),
        ("strict", "c1bf4b62add802994bd853dea7d34945", "1a4082693a8e619a"),
    ],
)
async def test_text_is_as_it_was_before_there_were_functions(profile: Profile, digest: str, sessions: str) -> None:
    """A run of then goes on. The values change with the shipped samples, and where the revision is raised."""
    environment = KnowledgeGraph(profile=profile)
    assert environment.digest() == digest
    replies = [
        *("Action: get_relations(m.isle_006)\nObservation: x", "Final Answer: #9", "hm", "**Final Answer:** #3"),
        *("Action: get\\_relations(m.isle_006)", "Action: f(x) count(#0)", "Action: count("),
    ]
    assert await sessions_in_text(environment, environment.samples(), replies) == sessions


def test_the_digest_holds_instruction_example_and_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    digests = [KnowledgeGraph(profile=profile, protocol="tools").digest() for profile in PROFILES]
    texts: Sequence[JsonValue] = [message.model_dump(mode="json") for message in before_calls("strict")]
    assert '"example00"' in json.dumps(texts)
    monkeypatch.setattr(prompt, "before_calls", lambda profile: before_calls(profile)[:-1])
    digests.append(KnowledgeGraph(protocol="tools").digest())
    monkeypatch.undo()
    fewer = toolset("compat")
    monkeypatch.setattr("environments.knowledge_graph.environment.toolset", lambda profile: fewer)
    digests.append(KnowledgeGraph(protocol="tools").digest())
    assert len({*digests, KnowledgeGraph().digest()}) == 5


@pytest.mark.thorough
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("seed", range(60))
async def test_whatever_is_called_every_session_ends_in_time_with_a_score(profile: Profile, seed: int) -> None:
    environment = KnowledgeGraph(profile=profile, protocol="tools")
    samples = environment.samples()
    async with environment.lifespan():
        finish, turns = await fuzz(environment, samples[seed % len(samples)], seed)
    assert turns <= ROUNDS
    assert finish.metrics["n_bad_format"] + finish.metrics["n_bad_action"] <= finish.metrics["rounds"]
