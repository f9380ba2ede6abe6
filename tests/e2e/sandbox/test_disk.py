"""What bounds the disk of a container: the storage driver, or memory in its place."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from proctor.environment import EnvironmentFault
from proctor.sandbox.base import SandboxLimits
from proctor.sandbox.docker_disk import WRITABLE, why_no_quota
from proctor.sandbox.docker_engine import DockerEngine
from tests.e2e.docker_engine import own_engine
from tests.pace import slowly

IMAGE = "proctor-os:latest"
LIMITS = SandboxLimits(disk_mb=16, memory_mb=256)
FILL = "for n in 1 2 3 4; do head -c 8000000 /dev/urandom > {place}/fill$n || exit 7; done"

pytestmark = pytest.mark.docker


def bounded_here() -> bool:
    """Whether the storage driver of the tests' engine has quotas."""
    with contextlib.closing(docker.from_env()) as client:
        return why_no_quota(client, IMAGE, SandboxLimits().disk_mb, {}) is None


@pytest.fixture
def btrfs(tmp_path: Path) -> Iterator[Path]:
    """A folder on btrfs, whose storage driver can bound a container."""
    if os.geteuid() != 0 or shutil.which("mkfs.btrfs") is None:
        pytest.skip("a file system with quotas needs root and btrfs-progs")
    image, folder = tmp_path / "disk", Path(tempfile.mkdtemp(prefix="proctor-btrfs-", dir="/tmp"))
    with image.open("wb") as file:
        file.truncate(4 << 30)
    subprocess.run(["mkfs.btrfs", "--quiet", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, folder], check=True)
    # Else the first container turns them on, and until the scan that follows is over nothing is kept to.
    subprocess.run(["btrfs", "quota", "enable", folder], check=True)
    subprocess.run(["btrfs", "quota", "rescan", "-w", folder], check=True)
    yield folder
    subprocess.run(["umount", "--recursive", folder], check=False)
    shutil.rmtree(folder, ignore_errors=True)


async def test_in_memory_no_place_holds_more_than_its_limit_and_nothing_is_missing() -> None:
    engine = DockerEngine(IMAGE, LIMITS, pool=0, disk="tmpfs")
    places = "etc home opt root srv tmp usr/local var"
    list_all = f"cd / && find {places} -printf '%p %m %U:%G %s %l\\n' | grep -v '^etc/host' | sort"
    async with engine.lifespan(), engine.sandbox() as box:
        for place in WRITABLE:
            assert (await box.run(["/bin/bash", "-c", f"touch {place}/new"])).status == 0, place
            filled = await box.run(["/bin/bash", "-c", FILL.format(place=place) + "; true"])
            assert (filled.status, b"No space left" in filled.output) == (7, True), place
            await box.run(["/bin/bash", "-c", f"rm -f {place}/fill* {place}/new"])
        assert (await box.run(["/bin/bash", "-c", "touch /usr/x"])).status != 0
        assert (await box.run(["/bin/bash", "-c", "touch /x"])).status != 0
        assert (await box.run(["/bin/bash", "-c", "useradd -m jack && su jack -c 'touch ~/x'"])).status == 0
    plain = DockerEngine(IMAGE, LIMITS, pool=0)
    async with engine.lifespan(), engine.sandbox() as box, plain.lifespan(), plain.sandbox() as usual:
        files = (await box.run(["/bin/bash", "-c", list_all])).output
        assert b"\netc/passwd 644 0:0 " in files
        assert not_comparable_because(files) == not_comparable_because(
            (await usual.run(["/bin/bash", "-c", list_all])).output
        )


def not_comparable_because(listing: bytes) -> list[bytes]:
    """Without sizes, which folders have of their file system; without `resolv.conf`, which is the engine's own; without
    the setgid bit of folders, which needs a capability that no sandbox has."""
    rows = [row.split(b" ") for row in listing.splitlines() if not row.startswith(b"etc/resolv.conf")]
    return [b" ".join((name, mode[-3:], owner)) for name, mode, owner, *_ in rows]


async def test_a_quota_that_can_not_be_had_is_an_error_with_its_fix() -> None:
    if bounded_here():
        pytest.skip("this engine's storage driver has quotas")
    said = "disk: quota: storage driver .*; move Docker's data root .* `disk: tmpfs`"
    with pytest.raises(EnvironmentFault, match=said):
        async with DockerEngine(IMAGE, LIMITS, disk="quota").lifespan():
            pass


async def test_a_quota_that_can_be_had_is_kept(btrfs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with own_engine("--storage-driver=btrfs", f"--data-root={btrfs}") as own:
        monkeypatch.setenv("DOCKER_HOST", own.host)
        assert bounded_here()
        assert own.containers() == 0
        # btrfs counts the image's own files too.
        limits = SandboxLimits(disk_mb=600, file_mb=2000)
        # To remove a full container takes long on a busy disk.
        monkeypatch.setattr("proctor.sandbox.docker_engine.CLOSE_S", slowly(60))
        engine = DockerEngine(IMAGE, limits, pool=0, disk="quota", call_limit_s=slowly(60))
        async with engine.lifespan(), engine.sandbox() as box:
            filled = await box.run(
                ["/bin/bash", "-c", "head -c 900000000 /dev/zero > /usr/local/fill"], limit_s=slowly(30)
            )
            assert (filled.status, b"quota exceeded" in filled.output) == (1, True)
