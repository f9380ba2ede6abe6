"""Disks that machines share: how they are known, and that their locks are tried before a run is written there."""

import fcntl
import re
from pathlib import Path

import pytest

from eval_client import shared_disk
from eval_client.shared_disk import FileSystem, distrust, file_system, journal_mode

MOUNTS = """\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
40 21 0:40 / /home rw shared:2 - nfs4 server:/home rw,vers=4.2
41 40 8:2 / /home/me/local\\040disk rw - xfs /dev/sdb rw
42 21 0:41 / /scratch rw - lustre mds@o2ib:/scratch rw
43 21 0:42 / /scratch rw - tmpfs tmpfs rw
broken line
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/", "ext4"),
        ("/homestead/me", "ext4"),
        ("/home", "nfs4"),
        ("/home/me/runs", "nfs4"),
        ("/home/me/local disk/runs", "xfs"),
        ("/scratch/me", "tmpfs"),
    ],
)
def test_the_file_system_of_a_folder_is_that_of_the_nearest_mount(folder: str, kind: str) -> None:
    assert file_system(Path(folder), MOUNTS).kind == kind
    assert file_system(Path(folder), "") == FileSystem(None)


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_disk, "file_system", lambda inside: FileSystem("nfs4"))


@pytest.mark.usefixtures("shared")
def test_a_shared_disk_whose_locks_hold_is_trusted_and_has_no_write_ahead_log(tmp_path: Path) -> None:
    assert distrust(tmp_path) is None
    assert list(tmp_path.iterdir()) == []
    assert journal_mode(str(tmp_path / "run.sqlite")) == "TRUNCATE"


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("lock", ["lockf", "flock"])
@pytest.mark.parametrize("fault", ["refused", "given twice"])
def test_a_shared_disk_whose_locks_fail_is_refused(
    lock: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_file: object, _how: int) -> None:
        if fault == "refused":
            raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, lock, failing)  # a disk that does this can't be had here
    said = "No locks available" if fault == "refused" else "two processes were given the same lock"
    why = distrust(tmp_path)
    assert why is not None
    assert re.search(rf"machines share \(nfs4\), and .*{said}", why)


@pytest.mark.usefixtures("shared")
def test_locks_are_tried_on_another_machine_by_the_command_that_reaches_it(tmp_path: Path) -> None:
    assert distrust(tmp_path, ["env"]) is None
    assert "two machines were given the same lock (lockf)" in str(distrust(tmp_path, ["true"]))
    assert str(distrust(tmp_path, ["sh", "-c", "echo no such node >&2; exit 1"])).endswith("(lockf): no such node")


def test_locks_that_only_this_machine_sees_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for option in ("nolock", "local_lock=all", "localflock"):
        mounts = f"40 21 0:40 / {tmp_path} rw shared:2 - nfs server:/home rw,{option},vers=3\n"
        monkeypatch.setattr(shared_disk, "file_system", lambda inside, mounts=mounts: file_system(inside, mounts))
        assert f"it is mounted with {option}" in str(distrust(tmp_path))
    monkeypatch.undo()
    assert distrust(tmp_path) is None
    assert journal_mode(str(tmp_path / "run.sqlite")) == "WAL"
