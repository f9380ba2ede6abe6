"""The environment os under gVisor: the runtime that a task names is the one its sandboxes get."""

from pathlib import Path

import pytest

from environments.base import PolicyAgent, play_to_finish
from environments.operating_system.environment import OperatingSystem
from environments.sandbox.docker_engine import DockerEngine
from tests.e2e.docker_engine import own_engine

pytestmark = [pytest.mark.docker, pytest.mark.runsc]

WRAPPER = '#!/bin/sh\nexec runsc --platform=ptrace --network=none "$@"\n'


async def test_a_sample_is_scored_in_a_sandbox_with_a_kernel_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapper = tmp_path / "runsc"
    wrapper.write_text(WRAPPER)
    wrapper.chmod(0o755)
    with own_engine(f"--add-runtime=runsc={wrapper}") as engine:
        monkeypatch.setenv("DOCKER_HOST", engine.host)
        environment = OperatingSystem(runtime="runsc", pool=0)
        async with environment.lifespan():
            sample = "own-operations-00002"
            finish = await play_to_finish(environment, sample, PolicyAgent(environment.reference(sample)))
        assert finish.score == 1.0, finish
        sandboxes = DockerEngine(environment.image, environment.limits, pool=0, runtime="runsc")
        async with sandboxes.lifespan(), sandboxes.sandbox() as sandbox:
            said = await sandbox.run(["dmesg"])
        assert "gVisor" in str(said)
