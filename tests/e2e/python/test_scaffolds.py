"""Agents that are functions around a model: their calls are asked, counted, kept and ended as those of a model."""

import json
from functools import partial
from pathlib import Path

import pytest

from proctor import Action, Message, PlanError, evaluate, open_run
from proctor.agent_function import Ask
from tests.e2e.proctor import TOKEN, begin, exits, server
from tests.e2e.scripted import GOOD, ScriptedEndpoint, listening, reply
from tests.pace import until

EXAMPLES = Path(__file__).parents[3] / "examples/own_files"
WORLD = '''\
from proctor import Environment, Finish, FinishReason, Message, Observation

class Twice(Environment):
    """Two questions; the score is how many answers are `yes`."""

    def samples(self):
        return ["a", "b"]

    async def play(self, sample, agent, seed=0):
        score = 0.0
        for turn in (1, 2):
            asked = Message(role="user", content=f"question {turn} of {sample}")
            score += (await agent.act(Observation(messages=(asked,)))).content.strip() == "yes"
        return Finish(reason=FinishReason.COMPLETED, score=score / 2)
'''
AGENT = """\
import asyncio
import time
from proctor import ContextLimitExceeded, Message

SURE = Message(role="user", content="Are you sure?")

async def thrice(messages, tools, model):
    first = await model(messages)
    again = [*messages, first.message(), SURE]
    second, third = await asyncio.gather(*(model(again, temperature=0.5) for _ in range(2)))
    return f"{third.content}"

def plain(messages, tools, model, catches=False):
    try:
        return model(messages).content
    except Exception as error:
        if not catches:
            raise
        return "yes"

async def together(messages, tools, model):
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(model(messages, top_k=number)) for number in range(2)]
    return asked[0].result().content

async def impatient(messages, tools, model):
    try:
        return (await asyncio.wait_for(model(messages), 0.5)).content
    except TimeoutError:
        return "yes"

async def changes(messages, tools, model):
    messages.append((await model(messages)).message())
    return "yes"

async def stubborn(messages, tools, model):
    while True:
        try:
            return (await model(messages)).content
        except Exception:
            await asyncio.sleep(0.01)

def plainly_stubborn(messages, tools, model):
    while True:
        try:
            return model(messages).content
        except Exception:
            time.sleep(0.01)

async def elsewhere(messages, tools, model):
    return (await asyncio.to_thread(lambda: asyncio.run(model(messages)))).content

async def deaf(messages, tools, model):
    try:
        return (await model(messages)).content
    except BaseException:
        return "yes"

async def late(messages, tools, model, behind=set()):
    async def afterwards():
        await asyncio.sleep(0.1)
        await model(messages, top_k=9)
    behind.add(asyncio.create_task(afterwards()))
    await asyncio.sleep(0.2 if len(behind) > 1 else 0)
    return (await model(messages)).content

async def pretends(messages, tools, model):
    try:
        return (await model(messages)).content
    except BaseException:
        raise ContextLimitExceeded

def none(messages, tools):
    return "yes"
"""


def said(text: str, **fields: object) -> bytes:
    """A good reply with this text."""
    whole = json.loads(GOOD) | fields
    whole["choices"][0]["message"]["content"] = text
    return reply(200, json.dumps(whole).encode())


def refused(code: str, message: str) -> bytes:
    return reply(400, json.dumps({"error": {"code": code, "message": message}}).encode())


def write(folder: Path, url: str | list[str], agent: str, fields: str = "endpoint: e, model: m") -> None:
    (folder / "twice.py").write_text(WORLD)
    (folder / "agent.py").write_text(AGENT)
    endpoint = json.dumps({"name": "e", "base_url": url, "api_key_env": "KEY", "patience_s": 600})
    lines = ["tasks: [{name: twice, environment: ./twice.py}]", f"endpoints: [{endpoint}]"]
    lines.append(f"agents: [{{name: a, function: './agent.py:{agent}', concurrency: 1, {fields}}}]")
    (folder / "plan.yaml").write_text("\n".join(lines) + "\n")


def run(folder: Path, code: int = 0, *options: str) -> Path:
    exits(code, "run", "plan.yaml", "--name", "r", "-q", *options, cwd=folder, KEY="token-of-the-tests")
    return folder / "runs" / "r"


def test_each_call_is_asked_as_the_plan_and_the_function_say_and_counted(
    endpoint: ScriptedEndpoint, tmp_path: Path
) -> None:
    endpoint.rule = lambda request: said("yes")
    priced = "sampling: {top_p: 0.9}, price: {input: 1000, output: 10000}"
    write(tmp_path, endpoint.url, "thrice", f"endpoint: e, model: m, {priced}")
    result = open_run(str(run(tmp_path, 0, "--set", "limits.run.money=1000")))
    assert [trial.score for trial in result.trials()] == [1.0, 1.0]
    asked = [(one["model"], one.get("temperature"), one["top_p"], len(one["messages"])) for one in endpoint.requests]
    assert asked[:6] == [*[("m", t, 0.9, n) for t, n in ((None, 1), (0.5, 3), (0.5, 3))], *asked[3:6]]
    assert [n for *_, n in asked] == [1, 3, 3, 3, 5, 5] * 2
    assert "metadata" not in endpoint.requests[0]
    turns = list(result.turns())
    assert [(turn.prompt_tokens, turn.completion_tokens) for turn in turns] == [(300, 30)] * 4
    shown = exits(0, "show", "r:0", "--markdown", cwd=tmp_path).stdout
    told = [line.rpartition(" · ")[0] for line in shown.splitlines() if line.startswith("after ")]
    first, tokens = "after 1 message of the conversation", "100 in, 10 out"
    assert told[:3] == [f"{first} · {tokens}", *[f"{first} · temperature 0.5 · {tokens}"] * 2]
    assert shown.count("Are you sure?") == 4
    exits(0, "report", "runs/r", "--html", "r.html", cwd=tmp_path)
    assert "agent.py:thrice around m" in (tmp_path / "r.html").read_text()
    assert "2.40" in exits(0, "report", str(tmp_path / "runs" / "r"), cwd=tmp_path).stdout, "4 turns of 0.6"


LIMIT = refused("context_length_exceeded", "maximum context length is 100 tokens")
FILTER = refused("content_filter", "flagged")
BAD = refused("invalid_request_error", "no such field")


@pytest.mark.parametrize(
    ("bad", "catches", "end"),
    [
        (reply(429, b"{}", "Retry-After: 0"), "false", ("completed", 1.0)),
        (LIMIT, "false", ("context_limit", 0.0)),
        (LIMIT, "true", ("completed", 1.0)),
        (FILTER, "false", ("refused", 0.0)),
        (BAD, "true", ("agent_error", None)),
    ],
    ids=["throttled", "full", "full, caught", "refused", "rejected, caught"],
)
def test_what_a_call_comes_to_the_trial_comes_to(
    bad: bytes, catches: str, end: tuple[str, float | None], endpoint: ScriptedEndpoint, tmp_path: Path
) -> None:
    def rule(request: dict[str, object]) -> bytes:
        later = "question 2" in json.dumps(request)
        return bad if later and (bad[9:12] != b"429" or len(endpoint.requests) == 2) else said("yes")

    endpoint.rule = rule
    write(tmp_path, endpoint.url, "plain", f"endpoint: e, model: m, parameters: {{catches: {catches}}}")
    options = ("--limit", "1", "--set", "limits.attempts=1")
    trials = list(open_run(str(run(tmp_path, 2 if end[1] is None else 0, *options))).trials())
    assert [(trial.finish and str(trial.finish.reason), trial.score) for trial in trials] == [end]


def test_a_full_context_ends_a_trial_from_within_a_group_of_tasks(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    endpoint.rule = partial(later, LIMIT)
    write(tmp_path, endpoint.url, "together")
    (trial,) = open_run(str(run(tmp_path, 0, "--limit", "1"))).trials()
    assert (trial.finish and str(trial.finish.reason), trial.score) == ("context_limit", 0.0)


def test_what_a_function_answers_since_its_model_was_slow_is_no_answer(
    endpoint: ScriptedEndpoint, tmp_path: Path
) -> None:
    endpoint.always = True
    write(tmp_path, endpoint.url, "impatient")
    (trial,) = open_run(str(run(tmp_path, 2, "--limit", "1", "--set", "limits.attempts=1"))).trials()
    assert trial.score is None
    assert trial.finish is not None
    assert "broke off a call to its model" in str(trial.finish.detail["cause"])


@pytest.mark.parametrize(
    ("function", "said_of_it"),
    [
        ("changes", "'tuple' object has no attribute 'append'"),
        ("stubborn", "no such field"),
        ("plainly_stubborn", "no such field"),
        ("elsewhere", "`model` is asked by the function itself"),
        ("pretends", "no such field"),
    ],
)
def test_what_a_function_makes_of_its_model_is_a_fault_of_its_trial_alone(
    function: str, said_of_it: str, endpoint: ScriptedEndpoint, tmp_path: Path
) -> None:
    endpoint.rule = lambda request: said("yes") if function in ("changes", "elsewhere") else BAD
    write(tmp_path, endpoint.url, function)
    (trial,) = open_run(str(run(tmp_path, 2, "--limit", "1", "--set", "limits.attempts=1"))).trials()
    assert trial.finish is not None
    assert (trial.score, str(trial.finish.reason)) == (None, "agent_error")
    assert said_of_it in str(trial.finish.detail["cause"])


def test_a_function_that_catches_everything_has_no_more_time_than_others(
    endpoint: ScriptedEndpoint, tmp_path: Path
) -> None:
    endpoint.always = True
    write(tmp_path, endpoint.url, "deaf")
    options = ("--limit", "1", "--set", "limits.attempts=1", "--set", "limits.trial.seconds=1")
    (trial,) = open_run(str(run(tmp_path, 2, *options))).trials()
    assert trial.finish is not None
    assert "limits.trial.seconds" in str(trial.finish.detail["cause"])


def test_a_call_after_its_turn_is_not_made(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    endpoint.rule = lambda request: said("yes")
    write(tmp_path, endpoint.url, "late")
    (trial,) = open_run(str(run(tmp_path, 0, "--limit", "1"))).trials()
    assert (trial.score, trial.prompt_tokens) == (1.0, 300)
    assert [request.get("top_k") for request in endpoint.requests] == [None, 9, None]


def test_a_function_that_always_raises_is_not_paid_for_again_and_again(
    endpoint: ScriptedEndpoint, tmp_path: Path
) -> None:
    endpoint.rule = lambda request: said("yes")
    write(tmp_path, endpoint.url, "changes")
    plan = (tmp_path / "plan.yaml").read_text()
    (tmp_path / "plan.yaml").write_text(f"{plan}epochs: 20\n")
    told = exits(2, "run", "plan.yaml", "--name", "r", "-q", cwd=tmp_path, KEY="token-of-the-tests").stderr
    assert "like 8 turns in a row" in told
    assert len(endpoint.requests) < 20


def test_calls_of_a_turn_in_whose_middle_the_client_is_killed_are_not_paid_again(
    endpoint: ScriptedEndpoint, tmp_path: Path
) -> None:
    def rule(request: dict[str, object]) -> bytes | None:
        endpoint.always = len(endpoint.requests) == 6  # the last call of the second turn is never answered
        return None if endpoint.always is True else said("yes")

    endpoint.rule = rule
    write(tmp_path, endpoint.url, "thrice")
    client = begin("run", "plan.yaml", "--name", "r", "-q", "--limit", "1", cwd=tmp_path, KEY="token-of-the-tests")
    until(lambda: len(endpoint.requests) == 6)
    client.kill()
    client.communicate()
    costs = json.loads(exits(0, "report", "runs/r", "--json", cwd=tmp_path).stdout)
    assert costs["pairs"][0]["unfinished"]["prompt_tokens"] == 500
    endpoint.rule, endpoint.always = lambda request: said("yes"), False
    exits(0, "resume", "runs/r", "-q", cwd=tmp_path, KEY="token-of-the-tests")
    assert len(endpoint.requests) == 7, "the call that was in flight alone is asked again"
    result = open_run(str(tmp_path / "runs" / "r"))
    assert [(trial.score, trial.prompt_tokens) for trial in result.trials()] == [(1.0, 600)]


async def asks_twice(messages: list[Message], tools: object, model: Ask, again: str) -> Action:
    draft = await model(messages)
    return await model([*messages, draft.message(), Message(role="user", content=again)])


def test_a_function_given_in_python_has_its_model_too(
    endpoint: ScriptedEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.rule = lambda request: said("yes" if "Sure?" in json.dumps(request) else "no")
    write(tmp_path, endpoint.url, "thrice")
    monkeypatch.setenv("OPENAI_API_KEY", "token-of-the-tests")
    twice = {"name": "a", "function": asks_twice, "parameters": {"again": "Sure?"}}
    agent = {**twice, "endpoint": endpoint.url, "model": "m"}
    task = {"twice": {"environment": f"{tmp_path}/twice.py"}}
    result = evaluate(agents=[agent], tasks=task, name="p", folder=tmp_path)
    assert [(trial.score, trial.prompt_tokens) for trial in result.trials()] == [(1.0, 400)] * 2
    with pytest.raises(PlanError, match="name the `endpoint` and the `model`"):
        evaluate(agents=[twice], tasks=task, name="q", folder=tmp_path)


def test_a_scaffold_goes_on_at_another_server_where_one_is_gone(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    other = ScriptedEndpoint()
    with listening(other):
        endpoint.rule = lambda request: said("yes", usage=None)
        other.rule = lambda request: reply(503, b"{}") if len(other.requests) > 4 else said("yes", usage=None)
        write(tmp_path, [endpoint.url, other.url], "thrice")
        result = open_run(str(run(tmp_path)))
        costs = json.loads(exits(0, "report", "runs/r", "--json", cwd=tmp_path).stdout)["replicas"]
    assert [trial.score for trial in result.trials()] == [1.0, 1.0]
    assert all(trial.prompt_tokens for trial in result.trials()), "estimated, as no server told its usage"
    assert sum(each["calls"] for each in costs) == 12, "each call is that of the server that answered it"


RUNS = (("full", "plain", LIMIT, 0), ("rejected", "plain", BAD, 2), ("group", "together", LIMIT, 0))


def later(bad: bytes, request: dict[str, object]) -> bytes:
    """What an endpoint says that fails in the second turn."""
    return bad if "question 2" in json.dumps(request) else said("yes")


def test_on_an_agent_server_a_function_has_the_servers_model(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    write(tmp_path, "http://127.0.0.1:9/v1", "plain")
    chat = f"chat: {{base_url: '{endpoint.url}', model: m, api_key_env: KEY}}"
    catches = "kind: function, function: './agent.py:plain', parameters: {catches: true}"
    agents = f"agents: [{{name: thrice, kind: function, function: './agent.py:thrice', {chat}}}"
    group = f"{{name: together, kind: function, function: './agent.py:together', {chat}}}"
    (tmp_path / "agents.yaml").write_text(f"{agents}, {{name: plain, {catches}, {chat}}}, {group}]\n")
    endpoint.rule = lambda request: said("yes")
    with server("agents", "--config", "agents.yaml", cwd=tmp_path, KEY="key-behind-the-server") as running:
        plan = (
            f"tasks: [{{name: twice, environment: ./twice.py}}]\nagents: [{{name: NAME, endpoint: '{running.url}'}}]\n"
        )
        (tmp_path / "plan.yaml").write_text(plan.replace("NAME", "thrice"))
        options = ("-q", "--limit", "1", "--set", "limits.attempts=1")
        exits(0, "run", "plan.yaml", "--name", "whole", *options, cwd=tmp_path, OPENAI_API_KEY=TOKEN)
        for name, agent, bad, code in RUNS:
            (tmp_path / "plan.yaml").write_text(plan.replace("NAME", agent))
            endpoint.rule = partial(later, bad)
            exits(code, "run", "plan.yaml", "--name", name, *options, cwd=tmp_path, OPENAI_API_KEY=TOKEN)
    runs = [open_run(str(tmp_path / "runs" / name)) for name in ("whole", "full", "rejected", "group")]
    trials = [(trial.score, trial.prompt_tokens) for run in runs for trial in run.trials()]
    assert trials == [(1.0, 600), (1.0, 100), (None, 100), (0.0, 200)]
    assert {line for line in endpoint.headers if "key-behind" not in line} == set()


def test_the_agent_of_the_examples_asks_twice(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    endpoint.rule = lambda request: said("yes" if len(request["messages"]) > 2 else "no")
    write(tmp_path, endpoint.url, "answer")
    (tmp_path / "agent.py").write_bytes((EXAMPLES / "second_thoughts.py").read_bytes())
    result = open_run(str(run(tmp_path, 0, "--limit", "1")))
    assert [turn.action and turn.action.content for turn in result.turns()] == ["yes", "yes"]
    assert [(len(one["messages"]), one.get("temperature")) for one in endpoint.requests[:2]] == [(1, None), (3, 0)]


@pytest.mark.parametrize(
    ("function", "fields", "problem"),
    [
        ("none", "endpoint: e, model: m", "agents.a.endpoint: its function takes no `model`"),
        ("plain", "", "agents.a: its function takes `model`; name the `endpoint` and the `model`"),
        ("plain", "endpoint: e", "agents.a.model: missing; a function that asks a model has both"),
        ("plain", "model: m", "agents.a.endpoint: missing; a function that asks a model has both"),
    ],
)
def test_a_function_and_its_model_are_named_together(function: str, fields: str, problem: str, tmp_path: Path) -> None:
    write(tmp_path, "http://127.0.0.1:9/v1", function, fields)
    told = exits(2, "run", "plan.yaml", "-q", cwd=tmp_path, KEY="token-of-the-tests").stderr
    assert problem in told
    assert "Traceback" not in told
