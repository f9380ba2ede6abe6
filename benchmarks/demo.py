"""CPU of a whole `proctor demo`, with all of its processes, as a multiple of `python -c "import pydantic"`.

The imports are measured before and after each demo; a figure is the median of the ratios.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence

from benchmarks.measure import Figure, figure, main, median
from benchmarks.world import CLI

ROUNDS = 3
AT_MOST = 100.0


def measure(quick: bool) -> Iterator[Figure]:
    """A demo of one sample of each environment, and the demo as it is."""
    import_pydantic = [sys.executable, "-c", "import pydantic"]
    _cpu_s(import_pydantic)
    for name, options, budget in (("one sample each", ["--limit", "1"], None), ("as it is", [], AT_MOST)):
        ratios = []
        for _ in range(1 if quick else ROUNDS):
            unit = _cpu_s(import_pydantic)
            used = _cpu_s([*CLI, "demo", *options])
            ratios.append(2 * used / (unit + _cpu_s(import_pydantic)))
        yield figure(f"proctor demo, {name}", median(ratios), "import pydantic", at_most=budget)


def _cpu_s(command: Sequence[str]) -> float:
    """CPU seconds of a process and of all of its own, which end before it does."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit code {process.returncode}")
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main(measure, __doc__)
