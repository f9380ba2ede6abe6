"""The three modes, session by session, without a model on the environment's side."""

import json
from pathlib import Path

import pytest

from environments.simulbench import dataset, prompt, shipped
from environments.simulbench.environment import STAGES, SimulBench
from environments.simulbench.records import PUBLISHED_LICENCE
from proctor.config.task import TaskDefinition
from proctor.conformance.check import check
from proctor.environment import Agent, ContextLimitExceeded
from proctor.published import Source, fingerprint, records_hash, records_of
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.summary import summarize
from proctor.types import Action, Finish, FinishReason, Observation
from tests.scripted_agent import Scripted
from tests.scripted_server import reply, scripted_server


def judges(mode: str, **fields: object) -> SimulBench:
    return SimulBench.model_validate({"mode": mode, **fields})


async def played(environment: SimulBench, agent: Agent, at: int = 0, seed: int = 0) -> Finish:
    async with environment.lifespan():
        return await play_to_finish(environment, environment.samples()[at], agent, seed)


@pytest.mark.parametrize("mode", STAGES)
async def test_every_mode_keeps_every_promise(mode: str) -> None:
    """But that what a judge says without meaning is a fault, since it is no score of those it judges."""
    broken = [result.name async for result in check(judges(mode)) if not result.ok]
    assert broken == ([] if mode in ("script", "live") else ["garbage ends with a score"])


@pytest.mark.parametrize("mode", ["extract", "generate"])
def test_a_mode_of_the_version_before_is_refused_with_the_modes_that_there_are(mode: str) -> None:
    definition = TaskDefinition(name="sim", environment="simulbench", parameters={"mode": mode})
    with pytest.raises(ValueError, match="mode: must be script, live or compare"):
        definition.build()


@pytest.mark.parametrize("mode", STAGES)
async def test_an_unknown_sample_is_named(mode: str) -> None:
    environment = judges(mode)
    async with environment.lifespan():
        finish = await play_to_finish(environment, "nowhere", Scripted("x"))
    assert "no sample 'nowhere'; ids look like" in str(finish.detail["cause"])
    with pytest.raises(ValueError, match="no sample 'nowhere'"):
        environment.reference("nowhere")


# script


async def test_an_answer_too_long_to_be_one_is_unreadable_and_kept_in_part() -> None:
    finish = await played(judges("compare"), Scripted("[[A]]" + "x" * 200_000))
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


# compare


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


async def test_how_often_an_agent_that_judges_was_not_understood_is_counted() -> None:
    environment = judges("compare")
    finish = await played(environment, Scripted("both", "[[B]]", "neither", "[[A]]"))
    assert finish.reason is FinishReason.COMPLETED
    assert summarize(environment, [finish]).metrics["not_understood"] == 2.0


# metrics over nothing


@pytest.mark.parametrize(
    ("mode", "names"),
    [
        ("script", {"rules_mean", "mean"}),
        ("live", {"rules_mean", "mean"}),
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


def test_a_model_that_is_the_judge_is_not_warned() -> None:
    assert judges("compare").caution_for_models() is None


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
        known = frozenset((fingerprint(prompt.read_judge(folder / "prompts.py").texts()),))
        monkeypatch.setattr("environments.simulbench.environment.PROMPT", Source(prompt.PROMPT.file, known))
    return environment.not_comparable_because()


def test_only_the_published_judge_over_published_scripts_is_comparable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    public(tmp_path)
    assert "other words than the published ones" in str(why(tmp_path))
    assert "its records are not those of SimulBench's data/simulbench_all.jsonl" in str(why(tmp_path, monkeypatch))
    found = {"these": records_hash(records_of(dataset.read(tmp_path / "all.jsonl")))}
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
