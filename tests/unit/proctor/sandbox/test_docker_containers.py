"""The options that a container is made with."""

from collections.abc import Iterator

import docker
import pytest

from proctor.sandbox.base import SandboxLimits
from proctor.sandbox.docker_containers import Containers, Network
from proctor.sandbox.docker_disk import Disk


@pytest.fixture
def client() -> Iterator[docker.DockerClient]:
    """Of an engine that is never asked."""
    made = docker.DockerClient(base_url="unix:///nowhere", version="1.41")
    yield made
    made.close()


@pytest.mark.parametrize(
    ("network", "runtime", "disk", "disabled"),
    [
        ("none", "runc", "auto", True),
        ("bridge", "runc", "auto", False),
        ("none", "runsc", "auto", False),
        ("none", None, "auto", False),
        ("none", "runc", "tmpfs", False),
    ],
)
def test_the_network_is_the_one_asked_for_and_not_set_up_only_where_runc_and_the_disk_need_none(
    client: docker.DockerClient, network: Network, runtime: str | None, disk: Disk, disabled: bool
) -> None:
    made = Containers(client, "image", SandboxLimits(), runtime=runtime, disk=disk, network=network)
    assert (made._host_options()["network_mode"], made._options()["network_disabled"]) == (network, disabled)


def test_in_memory_the_root_can_only_be_read(client: docker.DockerClient) -> None:
    options = Containers(client, "image", SandboxLimits(disk_mb=99), disk="tmpfs")._host_options()
    assert (options["read_only"], "size=99m" in options["tmpfs"]["/etc"]) == (True, True)
    assert "storage_opt" not in options
    assert options["network_mode"] == "none", "unless another one is asked for"
