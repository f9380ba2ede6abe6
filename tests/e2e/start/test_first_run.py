"""docs/tutorial/first-run.md, word by word: its plan, its commands and what they print."""

import re
import shlex
import signal
from pathlib import Path

from tests.e2e.proctor import begin, completed, exits, scored
from tests.pace import until
from tests.support import ROOT

PAGE = (ROOT / "docs" / "tutorial" / "first-run.md").read_text(encoding="utf-8")
PLAN = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[0]
SHOWN = [
    (command, [line for line in output.splitlines() if line])
    for block in re.findall(r"^```console\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    for command, output in re.findall(r"^\$ proctor (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
]


def interrupted(command: str, folder: Path) -> None:
    """Start a run, and press Ctrl-C once while it plays."""
    process = begin(*shlex.split(command), cwd=folder)
    until(lambda: scored(folder, "whole") > 0)
    process.send_signal(signal.SIGINT)
    completed(process, 130, within_s=120)


def test_the_tutorial_word_by_word(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    assert len(SHOWN) == 9
    for command, output in SHOWN:
        if output == ["^C"]:
            interrupted(command, tmp_path)
            continue
        done = exits(0, *shlex.split(command), cwd=tmp_path)
        missing = [part for line in output for part in line.split("...") if part not in done.stdout]
        assert missing == [], f"{command}\n{done.stdout}"
    assert (tmp_path / "results.html").stat().st_size > 10_000
