"""The environment as configured, its sessions and its scores."""

import shutil
from pathlib import Path

import pytest

from environments.knowledge_graph.environment import SAMPLES, KnowledgeGraph
from proctor.environment import Agent
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.types import Finish
from tests.scripted_agent import Scripted

QUESTIONS, QUADS = SAMPLES / "questions.json", SAMPLES / "graph.nq"
OWN = {"data": QUESTIONS, "graph": QUADS, "named_graph": "urn:proctor:isles"}


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
