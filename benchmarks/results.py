"""Runs benchmarks several times, keeps every row in results.json, and writes RESULTS.md and its plots from it.

`python -m benchmarks.results [--rounds N] [--quick NAME,...] [NAME ...]`; without names all of them. What was not run
keeps its rows, with their date and machine. `--page` runs nothing and writes the page anew.
"""

import datetime
import json
import os
import platform
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.measure import Figure, parse
from benchmarks.results_page import Measured, Row, missed, write_page

NAMES = (
    "overhead",
    "ideal",
    "turn_path",
    "tools",
    "long_history",
    "growth",
    "thousand",
    "resume",
    "million",
    "flow",
    "replicas",
    "store",
    "sandbox",
    "database",
    "worlds",
    "start",
    "rivals",
    "demo",
    "view",
)
"""overhead runs floor in its midst."""
PACKAGES = ("httptools", "httpx", "pydantic", "sqlalchemy", "starlette", "uvicorn", "uvloop", "wreq")
WHY = "Where the time goes, and what would mend it: docs/explanation/performance.md."
ROWS = Path(__file__).with_name("results.json")


def main() -> int:
    """The exit status: 1 where a budget is missed."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", default="", metavar="NAME,...", help="those of which the main cases will do")
    parser.add_argument("--page", action="store_true", help="run nothing; write the page from the rows that are there")
    options = parser.parse_args()
    kept = json.loads(ROWS.read_text(encoding="utf-8")) if ROWS.exists() else {}
    measured = {name: Measured.model_validate(each) for name, each in kept.items()}
    for name in [] if options.page else options.names or NAMES:
        machine, rounds = _machine(), [_run(name, name in options.quick.split(",")) for _ in range(options.rounds)]
        measured[name] = Measured(machine=machine, date=_today(), rows=rows(rounds))
        dumped = {name: measured[name].model_dump(exclude_defaults=True) for name in NAMES if name in measured}
        ROWS.write_text(json.dumps(dumped, indent=1) + "\n", encoding="utf-8")
    page = write_page(measured)
    late = missed(measured)
    print(f"{'Missed: ' + '; '.join(late) + f'. {WHY}' if late else 'Every budget is met.'}\nwritten: {page}")
    return 1 if late else 0


def rows(rounds: Sequence[Sequence[Figure]]) -> tuple[Row, ...]:
    """The figures of one name from every round, in the order of the first round."""
    by_name: dict[str, list[Figure]] = {}
    for figures in rounds:
        for each in figures:
            by_name.setdefault(each.name, []).append(each)
    return tuple(map(_row, by_name.values()))


def _row(found: Sequence[Figure]) -> Row:
    ends = [end for each in found for end in (each.least, each.value, each.most) if end is not None]
    within = [each.within for each in found if each.within is not None]
    return Row(
        name=found[0].name,
        unit=found[0].unit,
        values=tuple(each.value for each in found),
        least=min(ends),
        most=max(ends),
        budget=found[0].budget,
        met=2 * sum(within) > len(within) if within else None,
    )


def _run(name: str, quick: bool) -> list[Figure]:
    command = [sys.executable, "-m", f"benchmarks.{name}", "--json", *(["--quick"] if quick else [])]
    figures = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            figures.append(parse(line))
            print(f"{name}: {figures[-1].name}: {figures[-1].value:g} {figures[-1].unit}", flush=True)
    if process.returncode:
        raise SystemExit(f"benchmarks.{name}: status {process.returncode}")
    return figures


def _today() -> str:
    return f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}"


def _machine() -> str:
    """Where and beside what it is measured."""
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    python = f"Python {platform.python_version()}, {', '.join(f'{name} {found}' for name, found in _versions())}"
    load = f"load at the start {os.getloadavg()[0]:.1f}"
    return f"{_processor()}, {os.cpu_count()} cores, {memory_gb:.0f} GB; Linux {platform.release()}; {python}; {load}"


def _versions() -> Iterator[tuple[str, str]]:
    for name in PACKAGES:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            yield name, "absent"


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


if __name__ == "__main__":
    sys.exit(main())
