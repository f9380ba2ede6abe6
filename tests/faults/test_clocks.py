"""The wall clock of a process jumps an hour ahead and back: nothing of ours decides by it."""

import itertools
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.proctor import Server
from tests.faults.parts.farm import farm
from tests.support import FAKETIME

HOUR_S = 3600


class Clock:
    """The wall clock of one process, off by so many seconds; its monotonic clock is left alone."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.environment = {
            "LD_PRELOAD": str(FAKETIME[0]),
            "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_NO_CACHE": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }
        self.set(0)

    def set(self, offset_s: int) -> None:
        """From now on."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{offset_s:+d}\n")
        new.replace(self._file)

    def reads(self) -> float:
        """The offset that a process with this clock sees."""
        asked = [sys.executable, "-c", "import time; print(time.time())"]
        environment = {**os.environ, **self.environment}
        return float(subprocess.run(asked, env=environment, capture_output=True, check=True).stdout) - time.time()


@pytest.mark.faketime
def test_clocks_that_jump_an_hour_ahead_and_back_end_no_lease_and_change_no_score(
    tmp_path: Path, agents: Server
) -> None:
    clocks = {name: Clock(tmp_path / f"clock-{name}") for name in ("controller", "worker", "client")}
    with farm(tmp_path, agents, turns=15) as parts:
        parts.start(environments={name: clock.environment for name, clock in clocks.items()})
        parts.slow(1.0)
        with parts.at_most(250):  # of 300 calls
            client = parts.begin(**clocks["client"].environment)
            for clock, offset_s in itertools.product(clocks.values(), (HOUR_S, -HOUR_S, 0)):
                parts.until_calls(6)
                clock.set(offset_s)
                assert clock.reads() == pytest.approx(offset_s, abs=30)
            assert client.poll() is None
        parts.link("agents").faults.clear()
        parts.completed(client)
        parts.verify()
        assert set(parts.attempts()) == {1}
