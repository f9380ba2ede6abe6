import shutil
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from environments.knowledge_graph.environment import SAMPLES, KnowledgeGraph
from environments.knowledge_graph.prompt import question
from proctor.environment import Agent, AgentStopped, ContextLimitExceeded
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.types import Action, Finish, FinishReason, Observation

QUESTIONS, QUADS = SAMPLES / "questions.json", SAMPLES / "graph.nq"
OWN = {"data": QUESTIONS, "graph": QUADS, "named_graph": "urn:proctor:isles"}


class Scripted(Agent):
    """Gives its replies one after the other, the last one for ever; raises those that are errors."""

    def __init__(self, *replies: str | Exception) -> None:
        self._replies = list(replies)
        self.told: list[str] = []

    async def act(self, observation: Observation) -> Action:
        self.told.append(observation.messages[-1].content)
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        if isinstance(reply, Exception):
            raise reply
        return Action(content=reply)


async def play(environment: KnowledgeGraph, agent: Agent, index: int = 0) -> Finish:
    async with environment.lifespan():
        return await play_to_finish(environment, environment.samples()[index], agent)


@pytest.mark.parametrize("profile", ["compat", "strict"])
async def test_the_policies_stand_in_their_order_on_the_shipped_samples(profile: str) -> None:
    environment = KnowledgeGraph(profile=profile)
    means = {}
    async with environment.lifespan():
        for name in ("reference", "naive", "random"):
            agents = [(sample, PolicyAgent(getattr(environment, name)(sample))) for sample in environment.samples()]
            finishes = [await play_to_finish(environment, sample, agent) for sample, agent in agents]
            means[name] = environment.summarize(finishes).metrics["F1"]
    assert means["reference"] == 1.0
    assert 0 < means["random"] < means["naive"] < 0.5


async def test_a_score_names_its_graph_with_its_distractors() -> None:
    environment = KnowledgeGraph(**OWN, world="small", distractors=3)
    finish = await play(environment, Scripted("Final Answer: #0"))
    assert finish.detail["graph"] == "small, 3 distractors"
    assert "the graph small, 3 distractors" in environment.summarize([finish]).notes[0]


async def test_lists_can_be_cut_and_what_is_not_shown_can_be_used() -> None:
    ship = "m.isle_024"
    hop = f"Action: get_neighbors({ship}, isles.ship.captain)"
    agent = Scripted(f"Action: get_relations({ship})", hop, "Final Answer: #0")
    finish = await play(KnowledgeGraph(max_relations_shown=1), agent)
    assert agent.told[1] == "Observation: [isles.ship.built_by] (3 more are not shown)"
    assert finish.metrics["executability"] == 1.0


@pytest.mark.parametrize("error", [ContextLimitExceeded(), AgentStopped(FinishReason.TURN_LIMIT)])
async def test_an_agent_that_stops_has_no_answer(error: AgentStopped) -> None:
    finish = await play(KnowledgeGraph(), Scripted("Action: get_relations(m.isle_006)", error))
    assert (finish.reason, finish.score, finish.metrics["rounds"]) == (error.reason, 0.0, 1.0)


@pytest.mark.parametrize(
    ("replies", "reason"),
    [
        (["hm", "Final Answer: #9"] * 7 + ["hm"], FinishReason.INVALID_FORMAT),
        (["Final Answer: #9", "hm"] * 7 + ["Final Answer: #9"], FinishReason.INVALID_ACTION),
        (["Action: get_relations(m.isle_006)"] + ["hm"] * 14, FinishReason.TURN_LIMIT),
    ],
)
async def test_strict_tells_agents_apart_of_which_no_reply_was_of_use(replies: list[str], reason: FinishReason) -> None:
    assert (await play(KnowledgeGraph(), Scripted(*replies))).reason is reason
    assert (await play(KnowledgeGraph(profile="compat"), Scripted(*replies))).reason is FinishReason.TURN_LIMIT


async def test_the_last_round_may_answer() -> None:
    replies = ["Action: get_relations(m.isle_006)", "Action: get_neighbors(m.isle_006, isles.island.lighthouses)"]
    finish = await play(KnowledgeGraph(), Scripted(*replies, *["hm"] * 12, "Final Answer: #0"))
    assert (finish.reason, finish.metrics["executability"]) == (FinishReason.COMPLETED, 1.0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"data": QUESTIONS}, "graph: questions need a graph"),
        ({"graph": QUADS}, "data: the shipped samples go with their own graph"),
        (OWN | {"endpoint": "http://localhost/sparql"}, "remove one of the two"),
        ({"data": QUESTIONS, "endpoint": "http://localhost/sparql"}, "world: scores must name their graph"),
        ({"data": QUESTIONS, "endpoint": "http://me:secret@localhost/sparql", "world": "x"}, "endpoint"),
        ({"data": QUESTIONS, "endpoint": "http://x/", "world": "x", "distractors": 1}, "distractors"),
        (OWN | {"named_graph": "urn:a> { ?s ?p ?o } #"}, "named_graph"),
        ({"profile": "errata"}, "profile"),
    ],
)
def test_fields_that_do_not_fit_together_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        KnowledgeGraph(**fields)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "Proctor's own"),
        (OWN, "the graph is synthetic-mini"),
        (OWN | {"world": "freebase"}, "'strict' corrects"),
        (OWN | {"world": "freebase", "profile": "compat", "max_relations_shown": 9}, "max_relations_shown"),
        (OWN | {"world": "freebase", "profile": "compat", "distractors": 1}, "distractors"),
        (OWN | {"world": "freebase", "profile": "compat", "max_rows": 99}, "max_rows"),
    ],
)
def test_scores_that_compare_with_nothing_published_say_why(fields: dict[str, Any], reason: str) -> None:
    assert reason in str(KnowledgeGraph(**fields).not_comparable_because())


def test_the_digest_changes_with_data_and_configuration_and_not_with_places(tmp_path: Path) -> None:
    here = KnowledgeGraph(**OWN, ontology=SAMPLES / "ontology")
    (tmp_path / QUESTIONS.name).write_bytes(QUESTIONS.read_bytes())
    moved = KnowledgeGraph(**OWN | {"data": tmp_path / QUESTIONS.name}, ontology=SAMPLES / "ontology")
    assert moved.digest() == here.digest()
    changed = [
        KnowledgeGraph(**OWN, **{name: value}).digest() for name, value in (("profile", "compat"), ("distractors", 1))
    ]
    (tmp_path / QUESTIONS.name).write_bytes(QUESTIONS.read_bytes() + b"\n")
    edited = KnowledgeGraph(**OWN | {"data": tmp_path / QUESTIONS.name}, ontology=SAMPLES / "ontology")
    assert len({here.digest(), edited.digest(), *changed}) == 4


async def test_a_missing_ontology_is_a_fault_that_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"vocab\.json: can't be read"):
        await play(KnowledgeGraph(**OWN, ontology=tmp_path), Scripted("hm"))


def test_an_unknown_sample_is_refused() -> None:
    with pytest.raises(ValueError, match="no sample 'nobody'"):
        KnowledgeGraph().reference("nobody")


def test_policies_are_functions_of_the_transcript() -> None:
    environment = KnowledgeGraph()
    for sample in environment.samples():
        start = (question(environment._entry(sample)),) * 13
        for policy in (environment.naive, environment.random):
            assert policy(sample, 1)("main", start) == policy(sample, 1)("main", start)


def with_data(folder: Path, **files: str) -> KnowledgeGraph:
    """The shipped questions with an ontology and a graph of one's own, of which `files` are other than shipped."""
    shutil.copytree(SAMPLES, folder, dirs_exist_ok=True)
    for name, text in files.items():
        (folder / {"vocabulary": "ontology/vocab.json", "graph": "graph.nq"}[name]).write_text(text)
    return KnowledgeGraph(data=folder / QUESTIONS.name, graph=folder / "graph.nq")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"graph": "no quads\n"}, "graph.nq: .*line 1.*; give N-Quads"),
        ({"graph": ""}, "graph.nq: holds no statements; give N-Quads"),
        ({"vocabulary": "{"}, "vocab.json: Invalid JSON.*; write an object with the lists relations, "),
        ({"vocabulary": '{"relations": 1}'}, "vocab.json: relations: .*; write an object with the lists"),
    ],
)
def test_broken_files_are_refused_before_anything_is_played(
    files: dict[str, str], message: str, tmp_path: Path
) -> None:
    assert with_data(tmp_path / "sound").samples()
    with pytest.raises(ValueError, match=message):
        with_data(tmp_path / "broken", **files).samples()


def test_a_folder_that_is_no_store_is_refused(tmp_path: Path) -> None:
    sound = with_data(tmp_path)
    with pytest.raises(ValueError, match="the folder holds no store"):
        sound.model_copy(update={"graph": tmp_path / "ontology"}).samples()
