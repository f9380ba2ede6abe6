"""What the environment says of itself without a sandbox."""

import json
from pathlib import Path

import pytest

from environments.operating_system.environment import OperatingSystem
from proctor.environment import Agent
from proctor.types import Action, Observation


class Nobody(Agent):
    """An agent that is never asked."""

    async def act(self, observation: Observation) -> Action:
        raise AssertionError("asked")


def own(folder: Path, answer: str = "1") -> OperatingSystem:
    folder.mkdir(exist_ok=True)
    (folder / "dev.json").write_text(json.dumps([{"description": "Why?", "evaluation": {"match": answer}}]))
    return OperatingSystem(data=folder / "dev.json")


def test_the_shipped_samples_have_every_kind_of_script() -> None:
    records = OperatingSystem().dataset.records.values()
    assert len(records) >= 16
    assert {record.kind for record in records} == {"match", "check"}
    assert any(record.start for record in records)
    languages = {script.language for record in records for script in (*record.init, *record.checks) if script}
    assert languages == {"bash", "python"}
    assert any(None not in record.checks for record in records if record.checks)
    assert OperatingSystem().dataset.warnings == ()


def test_the_digest_follows_what_shapes_a_trial_and_not_where_it_lies(tmp_path: Path) -> None:
    digest = own(tmp_path / "a").digest()
    assert own(tmp_path / "b").digest() == digest
    assert own(tmp_path / "a", answer="2").digest() != digest
    here = tmp_path / "b/dev.json"
    assert OperatingSystem(data=here, command_limit_s=5).digest() != digest
    assert OperatingSystem(data=here, pool=5).digest() == digest
    assert OperatingSystem(data=here, network="bridge").digest() != digest


def test_only_the_published_data_on_docker_are_comparable(tmp_path: Path) -> None:
    published = own(tmp_path)
    assert "Proctor's own words" in str(published.not_comparable_because())
    assert "shipped" in str(OperatingSystem().not_comparable_because())
    assert "errata" in str(published.model_copy(update={"profile": "errata"}).not_comparable_because())
    assert "set on_init_error: fail" in str(
        published.model_copy(update={"on_init_error": "continue"}).not_comparable_because()
    )
    assert "'strict'" in str(published.model_copy(update={"profile": "strict"}).not_comparable_because())
    namespace = published.model_copy(update={"engine": "namespace"})
    assert "namespace" in str(namespace.not_comparable_because())
    assert (published.trusted_agents_only(), namespace.trusted_agents_only()) == (False, True)


def test_an_unknown_sample_is_told_with_what_ids_look_like(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no sample 'x'; ids look like dev-dev-00000"):
        own(tmp_path).reference("x")


async def test_playing_needs_the_lifespan(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="lifespan"):
        await own(tmp_path).play("dev-dev-00000", Nobody())
