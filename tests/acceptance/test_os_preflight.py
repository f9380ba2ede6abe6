"""`proctor os preflight` over published samples and over made ones that can't be played."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from environments.operating_system.commands import operating_system
from tests.acceptance.test_os import DEV, IMAGE, sample

pytestmark = [pytest.mark.docker, pytest.mark.shared]

CHECKER = {"language": "python", "code": "import sys\nsys.exit(sys.argv[1].strip() != sys.argv[2].strip())"}
MADE = {
    "well": ("touch /srv/a", "ls /srv", CHECKER),
    "network": ("apt-get -y install npm\ntrue", "echo 1", CHECKER),
    "init": ("echo broken; exit 3", "echo 1", CHECKER),
    "racy": ("true", "date +%s%N", CHECKER),
    "example": ("true", "echo 1", {"code": "exit 1"}),
}
"""By what is wrong: init, example and the check after it."""


def preflight(*arguments: str) -> Result:
    return CliRunner().invoke(operating_system, ["preflight", "--image", IMAGE, *arguments])


def test_the_dev_split_can_be_played_but_for_its_known_defect() -> None:
    result = preflight("--data", str(DEV))
    listed = [line.split()[:2] for line in result.output.splitlines()[:-1]]
    assert listed == [["example", f"{sample(8)}:"]], result.output
    assert (result.exit_code, result.output.splitlines()[-1]) == (1, "26 samples, 1 example")


def test_made_samples_are_listed_with_what_is_wrong(tmp_path: Path) -> None:
    records = [
        {"description": "?", "create": {"init": init}, "evaluation": {"check": [None, check], "example": example}}
        for init, example, check in MADE.values()
    ]
    (tmp_path / "dev.json").write_text(json.dumps(records))
    result = preflight("--data", str(tmp_path / "dev.json"))
    listed = [line.split()[:2] for line in result.output.splitlines()[:-1]]
    assert listed == [[name, f"{sample(number)}:"] for number, name in enumerate(MADE) if name != "well"], result.output
    assert "status 3: broken" in result.output
    assert result.exit_code == 1


def test_the_shipped_samples_can_all_be_played() -> None:
    result = preflight()
    assert (result.exit_code, result.output) == (0, "19 samples, all can be played\n")
