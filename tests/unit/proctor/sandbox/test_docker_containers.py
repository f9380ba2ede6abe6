"""The options that a container is made with."""

import docker
import pytest

from proctor.sandbox.base import SandboxLimits
from proctor.sandbox.docker_containers import Containers, Network
from proctor.sandbox.docker_disk import Disk


@pytest.mark.parametrize("network", ["none", "bridge"])
def test_the_network_is_the_one_that_is_asked_for(network: Network) -> None:
    client = docker.DockerClient(base_url="unix:///nowhere", version="1.41")
    assert Containers(client, "image", SandboxLimits())._host_options()["network_mode"] == "none"
    options = Containers(client, "image", SandboxLimits(), network=network)._host_options()
    assert options["network_mode"] == network
    client.close()


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
def test_docker_sets_up_no_network_only_where_runc_and_the_disk_need_none(
    network: Network, runtime: str | None, disk: Disk, disabled: bool
) -> None:
    client = docker.DockerClient(base_url="unix:///nowhere", version="1.41")
    made = Containers(client, "image", SandboxLimits(), runtime=runtime, disk=disk, network=network)
    assert made._options()["network_disabled"] is disabled
    client.close()


def test_in_memory_the_root_can_only_be_read() -> None:
    client = docker.DockerClient(base_url="unix:///nowhere", version="1.41")
    options = Containers(client, "image", SandboxLimits(disk_mb=99), disk="tmpfs")._host_options()
    assert (options["read_only"], "size=99m" in options["tmpfs"]["/etc"]) == (True, True)
    assert "storage_opt" not in options
    client.close()
