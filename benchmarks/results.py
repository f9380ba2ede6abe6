"""Runs every benchmark several times and writes RESULTS.md: medians, spread, budgets, and on what machine.

`python -m benchmarks.results [--rounds N] [--quick NAME,...] [NAME ...]`; without names all of them.
"""

import datetime
import os
import platform
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.measure import Figure, median, parse

NAMES = (
    "overhead",
    "ideal",
    "turn_path",
    "tools",
    "long_history",
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
RESULTS = Path(__file__).with_name("RESULTS.md")


def main() -> int:
    """The exit status: 1 where a budget is missed."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", default="", metavar="NAME,...", help="those of which the main cases will do")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    parts, missed = [], []
    for name in options.names or NAMES:
        quick = name in options.quick.split(",")
        rounds = [_run(name, quick) for _ in range(options.rounds)]
        title = f"## {name}.py{' --quick' if quick else ''}"
        parts.append(f"{title}\n\n{_purpose(name)}\n\n{table(rounds)}")
        missed += [f"{name}: {row[0].name}" for row in rows(rounds) if row[0].budget is not None and not met(row)]
    verdict = "Every budget is met." if not missed else "Missed: " + "; ".join(missed) + f".\n{WHY}"
    RESULTS.write_text("\n\n".join([_head(options.rounds, load), verdict, *parts]) + "\n")
    print(f"{verdict}\nwritten: {RESULTS}")
    return 1 if missed else 0


def rows(rounds: Sequence[Sequence[Figure]]) -> list[list[Figure]]:
    """The figures of one name from every round, in the order of the first round."""
    by_name: dict[str, list[Figure]] = {}
    for figures in rounds:
        for each in figures:
            by_name.setdefault(each.name, []).append(each)
    return list(by_name.values())


def met(row: Sequence[Figure]) -> bool:
    """Whether more than half of the rounds keep the budget."""
    return 2 * sum(each.within is True for each in row) > len(row)


def table(rounds: Sequence[Sequence[Figure]]) -> str:
    """A line a name."""
    if not rows(rounds):
        return "Left out: this machine lacks what it needs."
    lines = ["| what | median | least to most | unit | budget | |", "|---|---:|---:|---|---:|---|"]
    for row in rows(rounds):
        values = [each.value for each in row]
        least = min(each.value if each.least is None else each.least for each in row)
        most = max(each.value if each.most is None else each.most for each in row)
        budget, verdict = ("", "") if row[0].budget is None else (f"{row[0].budget:g}", "met" if met(row) else "MISSED")
        spread = f"{least:,g} to {most:,g}"
        lines.append(f"| {row[0].name} | {median(values):,g} | {spread} | {row[0].unit} | {budget} | {verdict} |")
    return "\n".join(lines)


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


def _purpose(name: str) -> str:
    text = Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8")
    return text.split('"""')[1].strip()


def _head(rounds: int, load: float) -> str:
    counted = "One round" if rounds == 1 else f"Medians over {rounds} rounds"
    machine = f"{_processor()}, {os.cpu_count()} cores, {_memory_gb():.0f} GB; {platform.system()} {platform.release()}"
    packages = ", ".join(f"{name} {found}" for name, found in _versions())
    return (
        f"# What the benchmarks measured\n\n{counted}; written by `make bench`.\n\n"
        f"- {datetime.datetime.now(datetime.UTC):%Y-%m-%d}, load average at the start {load:.1f}\n"
        f"- {machine}\n- Python {platform.python_version()}, {packages}\n\n"
        "CPU is that of the process named, by the kernel's accounts; wall times and rates depend on whatever else the\n"
        "machine does."
    )


def _versions() -> Iterator[tuple[str, str]]:
    for name in PACKAGES:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            yield name, "absent"


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _memory_gb() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9


if __name__ == "__main__":
    sys.exit(main())
