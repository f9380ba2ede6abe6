"""The five modes, session by session, without a model on the environment's side."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from environments.simulbench import dataset, prompt, published, shipped
from environments.simulbench.environment import STAGES, SimulBench
from environments.simulbench.records import PUBLISHED_LICENCE
from proctor.conformance.check import check
from proctor.environment import Agent, ContextLimitExceeded
from proctor.published import Source, fingerprint, records_hash
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.summary import summarize
from proctor.types import Action, Finish, FinishReason, Observation
from tests.scripted_server import reply, scripted_server


class Scripted(Agent):
    """Gives its replies one after the other, the last one for ever; keeps what it was shown."""

    def __init__(self, *replies: str) -> None:
        self._replies = list(replies)
        self.seen: list[Observation] = []

    async def act(self, observation: Observation) -> Action:
        self.seen.append(observation)
        return Action(content=self._replies.pop(0) if len(self._replies) > 1 else self._replies[0])


def judges(mode: str, **fields: object) -> SimulBench:
    return SimulBench.model_validate({"mode": mode, **fields})


async def played(environment: SimulBench, agent: Agent, at: int = 0, seed: int = 0) -> Finish:
    async with environment.lifespan():
        return await play_to_finish(environment, environment.samples()[at], agent, seed)


@pytest.mark.parametrize("mode", STAGES)
async def test_every_mode_keeps_every_promise(mode: str) -> None:
    """But that what a judge or author says without meaning is a fault, since it is no score of those it judges."""
    broken = [result.name async for result in check(judges(mode)) if not result.ok]
    assert broken == ([] if mode in ("script", "live") else ["garbage ends with a score"])


def test_no_two_configurations_that_shape_a_trial_have_one_digest() -> None:
    configurations = [
        *(judges(mode) for mode in STAGES),
        judges("script", profile="compat"),
        judges("script", system=None),
        judges("script", ensure_ascii=True),
        judges("script", max_response_chars=10),
        judges("script", judge={"model": "a"}),
        judges("script", judge={"model": "b"}),
        judges("script", judge={"model": "b", "sampling": {"top_p": 1}}),
        judges("live", user={"model": "a"}),
        judges("compare", direction="random"),
        judges("generate", count=3),
    ]
    assert len({configuration.digest() for configuration in configurations}) == len(configurations)
    operational = {"model": "a", "base_url": "http://127.0.0.1:1", "concurrency": 1, "tokens": 5}
    assert judges("script", judge=operational).digest() == judges("script", judge={"model": "a"}).digest()


@pytest.mark.parametrize("mode", STAGES)
async def test_an_unknown_sample_is_named(mode: str) -> None:
    environment = judges(mode)
    async with environment.lifespan():
        finish = await play_to_finish(environment, "nowhere", Scripted("x"))
    assert "no sample 'nowhere'; ids look like" in str(finish.detail["cause"])
    with pytest.raises(ValueError, match="no sample 'nowhere'"):
        environment.reference("nowhere")


# script


async def test_a_script_is_one_call_with_the_system_line_and_the_history() -> None:
    agent = Scripted('"credit 170: waiting"')
    finish = await played(judges("script"), agent)
    (observation,) = agent.seen
    assert [message.role for message in observation.messages] == ["system", "user", "assistant", "user"]
    assert observation.messages[0].content == prompt.SYSTEM
    assert finish.detail["response"] == "credit 170: waiting"
    assert (finish.detail["place"], finish.detail["type"], finish.detail["judge"]) == (
        "firstchan",
        "stateful",
        "rules",
    )
    assert finish.score == (finish.metrics["rating"] - 1) / 9


async def test_without_a_system_line_there_is_none() -> None:
    agent = Scripted("x")
    await played(judges("script", system=None), agent)
    assert [message.role for message in agent.seen[0].messages] == ["user", "assistant", "user"]


async def test_an_answer_too_long_to_be_one_is_unreadable_and_kept_in_part() -> None:
    finish = await played(judges("extract"), Scripted("[[1]]" + "x" * 200_000))
    assert (finish.reason, finish.detail["cause"]) == (FinishReason.TASK_ERROR, "judge_unparsed")
    assert "100000 characters" in str(finish.detail["problem"])
    assert len(str(finish.detail["text"])) == 100_000


@pytest.mark.parametrize("mode", STAGES)
async def test_every_finish_says_its_mode_type_and_licence(mode: str) -> None:
    class Out(Agent):
        async def act(self, observation: Observation) -> Action:
            raise ContextLimitExceeded

    environment = judges(mode)
    reference = PolicyAgent(environment.reference(environment.samples()[0]))
    for finish in [await played(environment, agent) for agent in (reference, Scripted("no"), Out())]:
        assert finish.detail["simulbench"] == mode, finish
        assert finish.detail["type"] == "stateful"
        assert finish.detail["licence"] == shipped.OWN_LICENCE


# live


async def test_a_live_session_is_four_turns_with_requests_of_the_users_strategies() -> None:
    agent = Scripted("one", "two", "", "four")
    finish = await played(judges("live"), agent)
    assert [len(observation.messages) for observation in agent.seen] == [2, 1, 1, 1]
    messages = finish.detail["messages"]
    assert isinstance(messages, list)
    assert [line["content"] for line in messages if isinstance(line, dict) and line["role"] == "assistant"] == [
        "one",
        "two",
        "",
        "four",
    ]
    assert finish.detail["strategies"] == ["next_step", "next_step", "harder"]
    assert finish.reason is FinishReason.COMPLETED
    assert judges("live").summarize([finish]).metrics["strategy_next_step"] == 2.0


# extract


@pytest.mark.parametrize(
    ("replies", "turn", "scripts", "tries"),
    [(["[[0]]"], 0, 1, 1), (["[[1]]"], 1, 4, 1), (["well", "[[5]]", "[[4]]"], 4, 1, 3)],
)
async def test_a_turn_gives_scripts(replies: Sequence[str], turn: int, scripts: int, tries: int) -> None:
    agent = Scripted(*replies)
    finish = await played(judges("extract"), agent)
    assert (finish.detail["turn"], finish.metrics["scripts"], finish.detail["tries"]) == (turn, scripts, tries)
    assert len(agent.seen) == tries
    shown = agent.seen[0].messages[0].content.split("[The dialogue, as JSON]\n")[1].split("\n")[0]
    assert [line["turn"] for line in json.loads(shown)] == [1, 2, 3, 4]
    if tries == 3:
        assert "5 is not from 0 to 4" in agent.seen[2].messages[0].content


# compare


@pytest.mark.parametrize(
    ("forward", "backward", "outcome"),
    [
        ("[[B]]", "[[A]]", "win"),
        ("[[A]]", "[[B]]", "lose"),
        ("[[A]]", "[[A]]", "tie"),
        ("[[B]]", "[[B]]", "tie"),
        ("[[C]]", "[[C]]", "tie"),
        ("[[C]]", "[[A]]", "tie"),
        ("[[B]]", "[[C]]", "tie"),
    ],
)
async def test_a_win_or_loss_needs_both_orders(forward: str, backward: str, outcome: str) -> None:
    agent = Scripted(forward, backward)
    finish = await played(judges("compare"), agent)
    assert [name for name in ("win", "tie", "lose") if finish.metrics[name]] == [outcome]
    assert [observation.conversation for observation in agent.seen] == ["reference first", "candidate first"]
    texts = [observation.messages[0].content for observation in agent.seen]
    first, second = (text.split("[Response A, as JSON]\n")[1].split("\n")[0] for text in texts)
    assert f"[Response B, as JSON]\n{first}\n" in texts[1]
    assert f"[Response B, as JSON]\n{second}\n" in texts[0]


async def test_the_random_direction_is_one_order_by_the_seed() -> None:
    environment, orders = judges("compare", direction="random"), set()
    for seed in range(12):
        agents = [Scripted("[[A]]"), Scripted("[[A]]")]
        finishes = [await played(environment, agent, seed=seed) for agent in agents]
        assert finishes[0] == finishes[1]
        (order,) = {observation.conversation for agent in agents for observation in agent.seen}
        orders.add(order)
        assert finishes[0].metrics["lose" if order == "reference first" else "win"] == 1.0
    assert len(orders) == 2


async def test_verdicts_that_cant_be_read_are_counted_and_never_a_number() -> None:
    environment = judges("compare")
    unread = await played(environment, Scripted("both are fine"))
    assert (unread.reason, unread.score, unread.detail["cause"]) == (FinishReason.TASK_ERROR, None, "judge_unparsed")
    win, lose = [await played(environment, Scripted(*two)) for two in (("[[B]]", "[[A]]"), ("[[A]]", "[[B]]"))]
    summary = environment.summarize([win, win, lose, unread])
    metrics = summary.metrics
    assert (metrics["judge_unparsed"], metrics["n"], metrics["coverage"]) == (1.0, 3.0, 0.75)
    assert [metrics[name] for name in ("win", "tie", "lose")] == pytest.approx([200 / 3, 0, 100 / 3])
    assert metrics["difference"] == pytest.approx(100 / 3)
    assert any("75.0%" in note for note in summary.notes)


@pytest.mark.parametrize(
    ("mode", "replies", "bad"),
    [
        ("extract", ("the second", "[[9]]", "[[2]]"), 2.0),
        ("extract", ("[[2]]",), 0.0),
        ("generate", ("{}", '{"act": "Tide Table"}', ""), 2.0),
        ("compare", ("both", "[[B]]", "neither", "[[A]]"), 2.0),
    ],
)
async def test_how_often_an_agent_that_judges_or_writes_was_not_understood_is_counted(
    mode: str, replies: tuple[str, ...], bad: float
) -> None:
    environment = judges(mode)
    said = tuple(reply or written() for reply in replies)
    finish = await played(environment, Scripted(*said))
    assert finish.reason is FinishReason.COMPLETED
    assert summarize(environment, [finish]).metrics["not_understood"] == bad


# generate


def written(**changed: str) -> str:
    task = {"act": "Tide Table", "task_description": "x" * 40, "request_type": "next", "type": "stateful"}
    return json.dumps({**task, **changed})


@pytest.mark.parametrize(
    ("refused", "why"),
    [
        (written(act="LIFT"), "a task with this act is there already"),
        (written(type="stateless"), "type must be stateful"),
        (written(task_description="short"), "task_description: String should have at least 40"),
        (written(act=""), "act: String should have at least 1"),
        ("{}", "act: Field required"),
        ("a tide table", "no JSON"),
    ],
)
async def test_an_author_is_told_what_is_wrong_with_a_task(refused: str, why: str) -> None:
    agent = Scripted(refused, written())
    finish = await played(judges("generate"), agent)
    assert (finish.detail["act"], finish.detail["tries"], finish.score) == ("Tide Table", 2, 1.0)
    said = agent.seen[1].messages[0].content
    assert why in said


async def test_a_task_is_under_the_licences_of_all_the_tasks_that_may_be_its_examples(tmp_path: Path) -> None:
    own, *others = shipped.tasks()
    published = [task.model_dump_json(exclude={"licence"}) for task in others]
    file = tmp_path / "tasks.jsonl"
    file.write_text("\n".join([own.model_dump_json(), *published]))
    environment = judges("generate", data=file)
    finish = await played(environment, Scripted(written()))
    assert finish.detail["licence"] == f"{shipped.OWN_LICENCE}; {PUBLISHED_LICENCE}"
    assert any("CC BY-NC" in note for note in environment.summarize([finish]).notes)


async def test_examples_go_by_the_seed_and_doubles_are_counted() -> None:
    environment = judges("generate")
    agents = [Scripted(written()) for _ in range(3)]
    finishes = [await played(environment, agent, seed=seed) for agent, seed in zip(agents, (1, 1, 2), strict=True)]
    texts = [agent.seen[0].messages[0].content for agent in agents]
    assert texts[0] == texts[1] != texts[2]
    assert environment.summarize(finishes).metrics["distinct"] == pytest.approx(1 / 3)


async def test_authors_of_the_reference_write_200_tasks_and_none_twice() -> None:
    environment = judges("generate", count=200)
    async with environment.lifespan():
        finishes = await asyncio.gather(
            *(
                play_to_finish(environment, sample, PolicyAgent(environment.reference(sample)))
                for sample in environment.samples()
            )
        )
    assert environment.summarize(finishes).metrics["distinct"] == 1.0


# metrics over nothing


@pytest.mark.parametrize(
    ("mode", "names"),
    [
        ("script", {"rules_mean", "mean"}),
        ("live", {"rules_mean", "mean"}),
        ("extract", {"challenging", "scripts"}),
        ("generate", {"distinct"}),
        ("compare", {"difference", "win", "tie", "lose"}),
    ],
)
def test_a_metric_over_nothing_is_absent(mode: str, names: set[str]) -> None:
    fault = Finish.fault(FinishReason.TASK_ERROR, "gone")
    out = Finish(reason=FinishReason.CONTEXT_LIMIT, score=0.0)
    metrics = judges(mode).summarize([fault]).metrics
    assert not names & metrics.keys()
    assert (metrics["requested"], metrics["coverage"], metrics["n"]) == (1.0, 0.0, 0.0)
    assert "coverage" not in judges(mode).summarize([]).metrics
    left = summarize(judges(mode), [out, out]).metrics
    assert names & left.keys() == names & {"rules_mean"}, "what counts as 1 without a rating"


# what the judge by rules is good for


@pytest.mark.parametrize("mode", ["script", "live"])
def test_the_metric_of_the_rules_has_its_own_name_and_models_are_warned_of_them(mode: str) -> None:
    for judge, primary in ((None, "rules_mean"), ({"model": "m"}, "strict_mean")):
        environment = SimulBench.model_validate({"mode": mode, "judge": judge})
        out = environment.summarize([Finish(reason=FinishReason.CONTEXT_LIMIT, score=0.0)])
        assert (out.primary, out.metrics[primary]) == (primary, 1.0)
        assert {"rules_mean", "strict_mean"} & out.metrics.keys() == {primary}
        assert ("judge" in str(environment.caution_for_models())) == (judge is None)


@pytest.mark.parametrize("mode", ["extract", "generate", "compare"])
def test_a_model_that_is_the_judge_or_author_is_not_warned(mode: str) -> None:
    assert judges(mode).caution_for_models() is None


# what may be compared


PROMPTS = '''
"""Prompts like the published ones, in other words."""
EVAL_SYSTEM_RPOMPT = "Be a judge."
OTHER = [{1: 2}]
EVAL_PROMPT_SCORING = """Judge {SIMULATION}, as \\"[[n]]\\". {braces}
{DIALOGUE}
--
{RESPONSE}"""
'''


def public(folder: Path, lastonly: int = 225, firstchan: int = 93, subseqchan: int = 182) -> Path:
    """A file with as many scripts of each type as the public one."""
    one = shipped.scripts()[0].model_copy(update={"licence": PUBLISHED_LICENCE})
    history = shipped.dialogues()[0].messages
    turns = [(0, 7, "l")] * lastonly + [(1, 1, f"{n}") for n in range(firstchan)] + [(4, 7, "0")] * subseqchan
    changes = [
        {"id": str(n), "turn_num": turn, "dialogue_history": history[:length], "source_file_name": name}
        for n, (turn, length, name) in enumerate(turns)
    ]
    file = folder / "all.jsonl"
    file.write_text("".join(one.model_copy(update=change).model_dump_json() + "\n" for change in changes))
    return file


def why(folder: Path, monkeypatch: pytest.MonkeyPatch | None = None, **fields: object) -> str | None:
    """Why a run with a published judge, but for some fields, is not comparable."""
    (folder / "prompts.py").write_text(PROMPTS)
    usual = {
        "data": folder / "all.jsonl",
        "profile": "compat",
        "ensure_ascii": True,
        "prompts": folder / "prompts.py",
        "judge": {"model": "gpt-4"},
    }
    environment = SimulBench.model_validate({**usual, **fields})
    if monkeypatch is not None:
        known = frozenset((fingerprint(published.read_judge(folder / "prompts.py").texts()),))
        monkeypatch.setattr("environments.simulbench.environment.PROMPT", Source(published.PROMPT.file, known))
    return environment.not_comparable_because()


def test_only_the_published_judge_over_published_scripts_is_comparable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    public(tmp_path)
    assert "other words than the published ones" in str(why(tmp_path))
    assert "its records are not those of SimulBench's data/simulbench_all.jsonl" in str(why(tmp_path, monkeypatch))
    found = {"these": records_hash(dataset.raw(tmp_path / "all.jsonl"))}
    monkeypatch.setattr("environments.simulbench.environment.PUBLISHED", found)
    assert why(tmp_path, monkeypatch) is None
    for fields, reason in (
        ({"prompts": None}, "in Proctor's own words; give SimulBench's src/prompts.py as `prompts`"),
        ({"judge": {"model": "gpt-4-turbo"}}, "the judge is gpt-4-turbo; published ratings are those of gpt-4"),
        ({"judge": {"model": "gpt-4o-mini"}}, "the judge is gpt-4o-mini"),
        ({"judge": {"model": "gpt-4", "sampling": {"temperature": 0.3}}}, "had temperature 0 and max_tokens 1024"),
        ({"judge": {"model": "gpt-4", "sampling": {"max_tokens": 50}}}, "had temperature 0 and max_tokens 1024"),
        ({"ensure_ascii": False}, "ensure_ascii: true"),
        ({"system": "Be a terminal."}, "another system line"),
        ({"system": None}, "another system line"),
        ({"max_response_chars": 100}, "max_response_chars is 100, below the usual 32000"),
        ({"profile": "strict"}, "use compat"),
        ({"judge": None}, "goes by rules"),
        ({"data": None}, "Proctor's own"),
        ({"mode": "live"}, "'live' has no published"),
    ):
        assert reason in str(why(tmp_path, monkeypatch, **fields)), fields
    assert why(tmp_path, monkeypatch, system="Be a judge.") is None
    public(tmp_path, firstchan=94, subseqchan=181)
    assert "its records are not those of these; give" in str(why(tmp_path, monkeypatch))


def test_agents_of_published_scores_had_a_temperature_and_a_length() -> None:
    assert judges("script").published_sampling() == {"temperature": 0, "max_tokens": 1024}
    assert judges("compare").published_sampling() == {}


async def test_a_judge_may_be_asked_with_the_published_prompt(tmp_path: Path) -> None:
    (tmp_path / "prompts.py").write_text(PROMPTS)
    asked: list[bytes] = []
    choice = {"message": {"content": "Rating: [[7]]"}, "finish_reason": "stop"}
    async with scripted_server(reply(json.dumps({"choices": [choice]}).encode()), requests=asked) as url:
        judge = {"base_url": url, "model": "judge"}
        environment = judges("script", prompts=tmp_path / "prompts.py", judge=judge, cache=tmp_path / "cache")
        agent = Scripted('é "{DIALOGUE}"')
        finish = await played(environment, agent)
    assert agent.seen[0].messages[0].content == "Be a judge.", "agents are told what the published ones are"
    system, user = json.loads(asked[0])["messages"]
    assert system == {"role": "system", "content": "Be a judge."}
    first, _, response = user["content"].partition("\n--\n")
    head, _, dialogue = first.partition("\n")
    script = shipped.scripts()[0]
    assert head == f'Judge {script.act}, as "[[n]]". {{braces}}'
    assert [next(iter(line)) for line in json.loads(dialogue)] == ["user", "AI", "user"]
    assert dialogue.startswith('[\n  {\n    "user": ')
    assert response == '{\n  "AI": "é \\"{DIALOGUE}\\""\n}'
    assert finish.metrics["rating"] == 7.0
    assert any("the one that `prompts` names" in note for note in environment.summarize([finish]).notes)
    assert environment.digest() != judges("script", judge=judge).digest()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("EVAL_PROMPT_SCORING = 1", "EVAL_SYSTEM_RPOMPT: no text of this name; give SimulBench's src/prompts.py"),
        ("EVAL_SYSTEM_RPOMPT = 'a'", "EVAL_PROMPT_SCORING: no text of this name"),
        (PROMPTS.replace("{RESPONSE}", ""), "EVAL_PROMPT_SCORING: lacks {RESPONSE}"),
        ("EVAL = (", ":1: '(' was never closed; give the published file"),
        ("\0", "can't be read as Python|null bytes"),
        ("(" * 100_000, "too many nested parentheses|can't be read as Python"),
    ],
)
def test_a_file_of_prompts_that_cant_be_used_is_refused(text: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "prompts.py"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"prompts\.py.*") as refused:
        judges("script", prompts=file).samples()
    assert any(part in str(refused.value) for part in problem.split("|"))


def test_other_modes_have_no_judge_to_be_told_anything(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="prompts: the mode 'compare' has no judge beside the agent"):
        judges("compare", prompts=tmp_path / "prompts.py")


@pytest.mark.parametrize(
    ("setting", "most"),
    [
        ({}, 1),
        ({"mode": "live"}, 4),
        ({"mode": "extract"}, 3),
        ({"mode": "generate", "profile": "compat"}, 20),
        ({"mode": "compare"}, 6),
        ({"mode": "compare", "direction": "random", "profile": "compat"}, 20),
    ],
)
def test_the_most_turns_of_a_session_are_known_before_a_run(setting: dict[str, str], most: int) -> None:
    assert SimulBench.model_validate(setting).max_turns == most
