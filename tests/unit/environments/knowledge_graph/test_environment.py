"""The environment as configured, and its policies, which read the transcript alone."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from environments.knowledge_graph import policies, prompt
from environments.knowledge_graph.dataset import QuestionEntry
from environments.knowledge_graph.environment import SAMPLES, KnowledgeGraph
from proctor.environment import Agent
from proctor.session.play import play_to_finish
from proctor.types import Finish, Message
from tests.scripted_agent import Scripted

QUESTIONS, QUADS = SAMPLES / "questions.json", SAMPLES / "graph.nq"
OWN = {"data": QUESTIONS, "graph": QUADS, "named_graph": "urn:proctor:isles"}


async def play(environment: KnowledgeGraph, agent: Agent, index: int = 0) -> Finish:
    async with environment.lifespan():
        return await play_to_finish(environment, environment.samples()[index], agent)


async def test_a_missing_ontology_is_a_fault_that_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"vocab\.json: can't be read"):
        await play(KnowledgeGraph(**OWN, ontology=tmp_path), Scripted("hm"))


def test_an_unknown_sample_is_refused() -> None:
    with pytest.raises(ValueError, match="no sample 'nobody'"):
        KnowledgeGraph().reference("nobody")


ENTRY = QuestionEntry(
    id="q",
    source="own",
    question="which ships of the yard carry salt?",
    entities={"Bell & Sons": "m.1", "salt": "m.2"},
    actions=("get_relations(m.1)", "get_neighbors(m.1,isles.yard.ships)", "count(#0)"),
    answers=(("m.3", None),),
)


def said(policy: str, turns: Sequence[tuple[str, str]] = (), seed: int = 1) -> str:
    """The last line of a policy's reply after turns of reply and observation, for tables."""
    makers = {
        "reference": policies.reference(ENTRY),
        "naive": policies.naive(ENTRY),
        "random": policies.chance(ENTRY, seed),
    }
    told = ((Message(role="assistant", content=a), Message(role="user", content=b)) for a, b in turns)
    transcript = (*prompt.BEFORE, prompt.question(ENTRY), *(message for turn in told for message in turn))
    return makers[policy]("main", transcript).content.split("\n")[-1]


def test_the_random_policy_is_well_formed_and_varies_with_its_seed() -> None:
    listed = ("Action: get_relations(m.1)", "Observation: [isles.yard.cats, isles.yard.ships]")
    lines = {said("random", [listed], seed) for seed in range(20)}
    assert lines == {f"Action: get_neighbors(m.1,isles.yard.{name})" for name in ("cats", "ships")}
