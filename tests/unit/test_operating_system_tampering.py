"""Which changed paths may shadow what judges an agent."""

import pytest

from environments.operating_system.environment import OperatingSystem
from environments.operating_system.tampering import suspects
from environments.sandbox import Change
from environments.sandbox.base import ENVIRONMENT

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
    ],
)
def test_a_path_is_suspect(path: str, change: Change, suspect: bool) -> None:
    assert suspects({path: change}) == ([path] if suspect else [])


def test_folders_are_left_out_where_something_in_them_changed() -> None:
    changes = {"/usr": CHANGED, "/usr/bin": CHANGED, "/usr/bin/new": ADDED, "/usr/lib": CHANGED}
    assert suspects({**changes, "/usr/lib/x.so": ADDED}) == ["/usr/bin/new", "/usr/lib/x.so"]


@pytest.mark.parametrize("fields", [{"engine": "namespace"}, {"disk": "tmpfs"}])
def test_strict_needs_an_engine_that_sees_changes(fields: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="profile: strict needs engine: docker and a disk other than tmpfs"):
        OperatingSystem.model_validate({"profile": "strict", **fields})
