"""ALFWorld: CPU of loading a game and of a step, and memory over 1,000 games, beside TextWorld's where it is installed.

`--data FOLDER` plays the published games below a folder with their `walkthroughs.json`, instead of those that ship;
`--textworld PYTHON` names an interpreter that has textworld[pddl], if this one has not.
"""

import importlib.util
import json
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path

from pydantic import Field

from benchmarks import measure
from benchmarks.measure import Figure, figure, median
from proctor.types import Value

ROOT = Path(__file__).resolve().parents[1]
GAMES = 1_000
TEXTWORLD_GAMES = 12
"""At most, and a twentieth of ours: loading one takes TextWorld a second."""
LOAD_MS, STEP_MS, GROWN_MIB = 10.0, 1.0, 5.0


class Report(Value):
    """What benchmarks.alfworld_process prints."""

    loads_ms: tuple[float, ...] = Field(min_length=1)
    steps_ms: tuple[float, ...] = Field(min_length=1)
    grown_mib: float
    grown_mib_per_game: float
    files_opened: int
    files_written: int


def fresh_process(engine: str, games: int, data: Path | None = None, python: str = sys.executable) -> Report:
    """What an engine ("ours" or "textworld") costs in a fresh process with a folder of its own for temporary files."""
    command = [python, "-m", "benchmarks.alfworld_process", engine, str(games), *([str(data)] if data else [])]
    with tempfile.TemporaryDirectory(prefix="proctor-alfworld-") as folder:
        environment = {"TMPDIR": folder, "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True)
    return Report.model_validate(json.loads(done.stdout.splitlines()[-1]))


def figures(games: int, data: Path | None, textworld: str | None) -> Iterator[Figure]:
    """All figures of our engine, then those of TextWorld's, each beside ours as a ratio."""
    ours = fresh_process("ours", games, data)
    yield from _engine("ours", ours, LOAD_MS, STEP_MS)
    yield figure(f"ours: memory, growth over {games:,} games", max(0.0, ours.grown_mib), "MiB", at_most=GROWN_MIB)
    yield figure("ours: files left open or behind", ours.files_opened + ours.files_written, "", at_most=0)
    if textworld is None:
        return
    real = fresh_process("textworld", min(TEXTWORLD_GAMES, games // 20), data, textworld)
    yield from _engine("TextWorld", real)
    yield figure("TextWorld: memory, growth per game", real.grown_mib_per_game, "MiB")
    yield figure("TextWorld: files left open or behind", real.files_opened + real.files_written, "")
    yield figure("TextWorld over ours: load and reset", median(real.loads_ms) / median(ours.loads_ms), "x")
    yield figure("TextWorld over ours: step", median(real.steps_ms) / median(ours.steps_ms), "x")


def _engine(case: str, report: Report, load: float | None = None, step: float | None = None) -> Iterator[Figure]:
    loads = sorted(report.loads_ms)
    yield figure(f"{case}: load and reset, median", median(loads), "ms", at_most=load)
    yield figure(f"{case}: load and reset, p95", loads[len(loads) * 95 // 100], "ms", at_most=load)
    yield figure(f"{case}: step with list and goal, median", median(report.steps_ms), "ms", at_most=step)


def main() -> None:
    """`--quick` plays 200 games."""
    parser = ArgumentParser(add_help=False)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--textworld", default=sys.executable if importlib.util.find_spec("textworld") else None)
    options, sys.argv[1:] = parser.parse_known_args()
    measure.main(lambda quick: figures(GAMES // 5 if quick else GAMES, options.data, options.textworld), __doc__)


if __name__ == "__main__":
    main()
