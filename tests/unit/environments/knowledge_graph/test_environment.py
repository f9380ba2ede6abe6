"""The environment as configured, its sessions and its scores."""

from pathlib import Path

import pytest

from environments.knowledge_graph.environment import SAMPLES, KnowledgeGraph
from proctor.environment import Agent
from proctor.session.play import play_to_finish
from proctor.types import Finish
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
