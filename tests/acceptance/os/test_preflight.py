"""`proctor os preflight` over published samples and over made ones that can't be played.

What concerns no container is tested in namespaces, for less CPU.
"""

import contextlib
import functools
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
from click.testing import CliRunner, Result

from environments.operating_system.commands import operating_system
from environments.operating_system.preflight import has_way_out
from proctor.sandbox.base import SandboxLimits
from proctor.sandbox.docker_engine import DockerEngine
from tests.acceptance.os.test_acceptance import DEV, IMAGE, dev, sample

pytestmark = [pytest.mark.docker, pytest.mark.shared]

CHECKER = {"language": "python", "code": "import sys\nsys.exit(sys.argv[1].strip() != sys.argv[2].strip())"}
HAS_WAY_OUT = "grep -q eth /proc/net/route"
MADE = {
    "well": ("touch /srv/a", "ls /srv", CHECKER),
    "well-with-clock": ("true", "date +%s%N", {"code": "true"}),
    "well-loopback": ("ping -c 1 localhost; curl http://127.0.0.1:1/; true", "echo 1", CHECKER),
    "network": (f"curl http://files.invalid/ -o /srv/x\n{HAS_WAY_OUT}", "echo 1", CHECKER),
    "init": ("ping -c 1 localhost; echo broken; exit 3", "echo 1", CHECKER),
    "init-never": ("echo broken; exit 3", "echo 1", CHECKER),
    "example": ("true", "echo 1", {"code": "exit 1"}),
    "example-with-clock": ("true", "date +%s%N", CHECKER),
    "example-counts-processes": ("sleep 60 &", "#!/bin/bash\n\nps -A | wc -l", CHECKER),
    "example-counts-own-shell": ("true", "n=$(ps -e | wc -l)\nu=$(who | wc -l)\necho $((n + u))", CHECKER),
}
"""By what is wrong, up to the first hyphen: init, example and the check after it."""


def preflight(*arguments: str) -> Result:
    return CliRunner().invoke(operating_system, ["preflight", "--image", IMAGE, *arguments])


@functools.cache
def of_the_dev_split() -> Result:
    """Played at the first call."""
    return preflight("--data", str(DEV))


def listed(result: Result) -> list[list[str]]:
    """Problem and sample of each line but the last."""
    return [line.split()[:2] for line in result.output.splitlines()[:-1]]


def write(folder: Path, *samples: tuple[str, str, Any]) -> str:
    records = [
        {"description": "?", "create": {"init": init}, "evaluation": {"check": [None, check], "example": example}}
        for init, example, check in samples
    ]
    (folder / "dev.json").write_text(json.dumps(records))
    return str(folder / "dev.json")


@pytest.fixture
def network() -> Iterator[str]:
    """A bridge with a default route, beside Docker's own, which the engine of tests does not have."""
    with contextlib.closing(docker.from_env()) as client:
        made = client.networks.create("proctor-preflight", driver="bridge")
        try:
            yield "proctor-preflight"
        finally:
            made.remove()


@pytest.fixture
async def bridge(network: str) -> AsyncIterator[DockerEngine]:
    engine = DockerEngine(IMAGE, SandboxLimits(), pool=0, network=network)
    async with engine.lifespan():
        yield engine


def test_the_dev_split_can_be_played_but_for_its_known_defect() -> None:
    result = of_the_dev_split()
    assert listed(result) == [["example", f"{sample(8)}:"]], result.output
    assert (result.exit_code, result.output.splitlines()[-1]) == (1, "26 samples, 1 example")


def test_03_the_examples_of_the_dev_split_pass_the_check_pipeline() -> None:
    """Line 3 of the acceptance list: of 21 at least 20, each of which preflight plays twice."""
    checked = {f"{record.id}:" for record in dev().dataset.records.values() if record.kind == "check"}
    assert len(checked - {each for _, each in listed(of_the_dev_split())}) >= 20


def test_made_samples_are_listed_with_what_is_wrong(tmp_path: Path) -> None:
    result = preflight("--data", write(tmp_path, *MADE.values()))
    wanted = [(name.partition("-")[0], sample(number)) for number, name in enumerate(MADE)]
    assert listed(result) == [[name, f"{each}:"] for name, each in wanted if name != "well"], result.output
    assert "status 3: broken" in result.output
    assert result.exit_code == 1


RESOLVE = {"language": "python", "code": "import socket; socket.getaddrinfo('files.invalid', 80)"}


def test_what_says_that_it_misses_a_network_or_might_is_listed_and_named_once(tmp_path: Path) -> None:
    """A script in another language, whose output tells; and set-up that hides its failure, without an example."""
    hidden = {"description": "?", "create": {"init": "apt-get install -y tree; true"}, "evaluation": {"match": "1"}}
    told = {"description": "?", "create": {"init": RESOLVE}, "evaluation": {"match": "1"}}
    harmless = {"description": "?", "create": {"init": "curl http://localhost/; true"}, "evaluation": {"match": "1"}}
    (tmp_path / "dev.json").write_text(json.dumps([hidden, told, harmless]))
    result = preflight("--data", str(tmp_path / "dev.json"), "--engine", "namespace")
    assert listed(result) == [["network", f"{sample(0)}:"], ["network", f"{sample(1)}:"]], result.output
    assert [line.count(sample(number)) for number, line in enumerate(result.output.splitlines()[:2])] == [1, 1]


def test_a_sample_that_passes_once_and_fails_once_is_racy(tmp_path: Path) -> None:
    chance = ("true", "echo 1", {"code": "test $((RANDOM % 2)) = 0"})
    result = preflight("--data", write(tmp_path, *[chance] * 40), "--engine", "namespace")
    assert {problem for problem, _ in listed(result)} <= {"racy", "example"}, result.output
    assert "it passes once and fails once: " in result.output, "a quarter of them, of 40 samples"


async def test_a_network_is_needed_where_one_helps_and_not_where_none_does(
    tmp_path: Path, bridge: DockerEngine
) -> None:
    """Where none helps, scripts that call another host may lack one that this machine has no way to."""
    samples = (
        (HAS_WAY_OUT, "echo 1", CHECKER),
        ("true", HAS_WAY_OUT, {"code": HAS_WAY_OUT}),
        ("curl http://files.invalid/; exit 3", "echo 1", CHECKER),
        ("exit 3", "echo 1", CHECKER),
    )
    environment = dev(data=write(tmp_path, *samples), scripts=None)
    lightly = environment.model_copy(update={"engine": "namespace"})
    alone = DockerEngine(IMAGE, SandboxLimits(), pool=0)
    async with environment.lifespan(), lightly.lifespan(), alone.lifespan():
        assert not await has_way_out(alone)
        assert await has_way_out(bridge)
        found = [await environment.preflight(each, bridge) for each in environment.samples()]
        unknown = [await lightly.preflight(each) for each in environment.samples()]
    assert [each and each.problem for each in found] == ["network", "network", "network", "init"]
    assert [each and each.problem for each in unknown] == ["init", "example", "network", "init"], "by what they call"


async def test_an_engine_without_a_bridge_has_no_way_out() -> None:
    gone = DockerEngine(IMAGE, SandboxLimits(), pool=0, network="no-such-network")
    async with gone.lifespan():
        assert not await has_way_out(gone)


def test_the_shipped_samples_can_all_be_played() -> None:
    result = preflight("--engine", "namespace")
    assert (result.exit_code, result.output) == (0, "19 samples, all can be played\n")
