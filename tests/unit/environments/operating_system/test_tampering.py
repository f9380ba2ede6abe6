"""Which changed paths may shadow what judges an agent."""

from pathlib import PurePosixPath as Path
from typing import Any

import pytest

from environments.operating_system.dataset import SampleRecord, ShellScript, load
from environments.operating_system.environment import SAMPLES, OperatingSystem
from environments.operating_system.tampering import named_by_checks, suspects
from proctor.sandbox.base import ENVIRONMENT, Change

ADDED, CHANGED, DELETED = Change.ADDED, Change.CHANGED, Change.DELETED
HOME = ENVIRONMENT["HOME"]


@pytest.mark.parametrize(
    ("path", "change", "suspect"),
    [
        ("/usr/bin/python3.11", CHANGED, True),
        ("/usr/bin/find", DELETED, True),
        ("/usr/local/bin/calc", ADDED, True),
        ("/bin", CHANGED, True),
        ("/usr/lib/x86_64-linux-gnu/libc.so.6", CHANGED, True),
        ("/usr/lib/x86_64-linux-gnu/libevil.so", ADDED, True),
        ("/usr/lib/systemd/system/x.service", ADDED, False),
        ("/usr/lib/locale/locale-archive", CHANGED, False),
        ("/usr/lib/python3.11/sitecustomize.py", ADDED, True),
        ("/usr/local/lib/python3.11/dist-packages/x.pth", ADDED, True),
        ("/usr/lib/python3.11/__pycache__/re.cpython-311.pyc", ADDED, False),
        ("/etc/python3.11/sitecustomize.py", CHANGED, True),
        ("/etc/ld.so.preload", ADDED, True),
        ("/etc/alternatives/awk", CHANGED, True),
        ("/etc/alternatives/new", ADDED, False),
        ("/etc/passwd", CHANGED, False),
        (HOME + "/.local/lib/python3.11/site-packages/usercustomize.py", ADDED, True),
        ("/json.py", ADDED, True),
        ("/json/__init__.py", ADDED, True),
        ("/app.py", ADDED, False),
        (HOME + "/json.py", ADDED, False),
        ("/usr/pyvenv.cfg", ADDED, True),
        ("/usr/stock.log", ADDED, False),
        ("/home/a/bin/ls", ADDED, False),
        ("/home", DELETED, False),
        ("/srv/data", DELETED, False),
    ],
)
def test_a_path_is_suspect(path: str, change: Change, suspect: bool) -> None:
    assert suspects({path: change}) == ([path] if suspect else [])


WATCHED = [
    *("/usr/bin/python3.11", "/bin/sh", "/usr/local/bin/x", "/lib/x86_64-linux-gnu/libc.so.6", "/usr/local/lib/x.so"),
    *("/etc/alternatives/awk", "/etc/perl/x.pm", "/usr/include/stdio.h", "/usr/share/perl/5.36/x.pm"),
    *(HOME + "/.local/lib/python3.11/site-packages/usercustomize.py", "/usr/lib64/ld-linux-x86-64.so.2"),
]


@pytest.mark.parametrize("change", [CHANGED, DELETED])
@pytest.mark.parametrize("path", sorted({str(path) for each in WATCHED for path in (Path(each), *Path(each).parents)}))
def test_a_watched_path_and_all_that_it_lies_in_is_suspect(path: str, change: Change) -> None:
    assert suspects({path: change}) == [path]


def test_a_folder_that_is_another_now_is_suspect_although_there_is_something_new_in_it() -> None:
    assert suspects({"/usr/lib": Change.FOLDER, "/usr/lib/x": ADDED}) == ["/usr/lib", "/usr/lib/x"]
    assert suspects({"/opt/app": CHANGED, "/opt": Change.FOLDER}) == []


def test_folders_are_left_out_where_something_in_them_changed() -> None:
    changes = {"/usr": CHANGED, "/usr/bin": CHANGED, "/usr/bin/new": ADDED, "/usr/lib": CHANGED}
    assert suspects({**changes, "/usr/lib/x.so": ADDED}) == ["/usr/bin/new", "/usr/lib/x.so"]


CHECK = ShellScript(code="set -e; /opt/app/verify --all | grep -q '^ok$'; test -f ~/done; cat $HOME/x/y */z")


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({}, {"/opt/app/verify"}),
        ({"example": None}, set()),
        ({"example": ShellScript(code="echo ok > /opt/app/verify")}, set()),
        ({"example": ShellScript(code="cd /opt/app && ./repair")}, set()),
        ({"example": ShellScript(code="chmod -x /opt/app/*")}, set()),
        ({"example": ShellScript(code="find / -name verify -delete")}, set()),
        ({"example": ShellScript(code="touch /opt/application")}, {"/opt/app/verify"}),
        ({"description": "Repair /opt/app/verify."}, set()),
        ({"init": (ShellScript(code="install -m 755 /dev/stdin '/opt/app/verify'"),)}, set()),
        ({"start": ShellScript(code="PATH=/opt/app:$PATH")}, set()),
        ({"checks": (None,)}, set()),
    ],
)
def test_only_what_the_checks_alone_name_is_watched(fields: dict[str, Any], named: set[str]) -> None:
    usual = {"id": "x", "description": "Do it.", "checks": (CHECK,), "example": ShellScript(code="touch ~/done")}
    assert named_by_checks(SampleRecord.model_validate({**usual, **fields})) == named


def test_no_shipped_sample_has_its_work_watched() -> None:
    """What the examples of these samples change is named by them; the rest are programs of the system."""
    records = load(SAMPLES, None, "own").records.values()
    assert {path for record in records for path in named_by_checks(record) if path.startswith("/srv")} == set()


@pytest.mark.parametrize("fields", [{"engine": "namespace"}, {"disk": "tmpfs"}])
def test_strict_needs_an_engine_that_sees_changes(fields: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="profile: strict needs engine: docker and a disk other than tmpfs"):
        OperatingSystem.model_validate({"profile": "strict", **fields})
