"""The environment os under gVisor: the runtime that a task names is the one its sandboxes get."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from environments.operating_system.environment import OperatingSystem
from proctor.environment import EnvironmentFault
from proctor.sandbox.docker_engine import DockerEngine
from proctor.session.play import PolicyAgent, play_to_finish
from tests.e2e.docker_engine import own_engine

pytestmark = [pytest.mark.docker, pytest.mark.runsc]

WRAPPER = '#!/bin/sh\nexec runsc --platform=ptrace --network=none "$@"\n'


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An engine that knows the runtime, and DOCKER_HOST naming it."""
    wrapper = tmp_path / "runsc"
    wrapper.write_text(WRAPPER)
    wrapper.chmod(0o755)
    with own_engine(f"--add-runtime=runsc={wrapper}") as engine:
        monkeypatch.setenv("DOCKER_HOST", engine.host)
        yield


@pytest.mark.usefixtures("engine")
async def test_the_runtime_gives_a_kernel_of_its_own_and_one_too_old_for_the_samples_is_refused() -> None:
    environment = OperatingSystem(runtime="runsc", pool=0)
    sandboxes = DockerEngine(environment.image, environment.limits, pool=0, runtime="runsc")
    async with sandboxes.lifespan(), sandboxes.sandbox() as sandbox:
        assert b"gVisor" in (await sandbox.run(["dmesg"])).output
        has_statx = (await sandbox.run(["stat", "/"])).status == 0
    if has_statx:
        sample = "own-operations-00002"
        async with environment.lifespan():
            finish = await play_to_finish(environment, sample, PolicyAgent(environment.reference(sample)))
        assert finish.score == 1.0, finish
    else:  # Debian 12's
        with pytest.raises(EnvironmentFault, match=r"'runsc'.*cannot statx.*newer"):
            async with environment.lifespan():
                pass
