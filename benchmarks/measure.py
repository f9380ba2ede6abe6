"""What all benchmarks share: figures with budgets, how they are printed, and what a process has used."""

import json
import os
import statistics
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from proctor.types import Value

TICKS = os.sysconf("SC_CLK_TCK")


class Figure(Value):
    """One measured number. `name` is `case: measure`, or the measure alone."""

    name: str
    value: float
    unit: str
    budget: float | None = None
    within: bool | None = None
    least: float | None = None
    most: float | None = None
    """Of the rounds within one run, where `value` is their median."""


def figure(
    name: str, value: float, unit: str, *, at_most: float | None = None, at_least: float | None = None
) -> Figure:
    """A figure held against its budget, where it has one."""
    value = float(f"{value:.4g}")
    if at_most is not None:
        return Figure(name=name, value=value, unit=unit, budget=at_most, within=value <= at_most)
    if at_least is not None:
        return Figure(name=name, value=value, unit=unit, budget=at_least, within=value >= at_least)
    return Figure(name=name, value=value, unit=unit)


def spread(name: str, values: Sequence[float], unit: str, *, at_most: float | None = None) -> Figure:
    """The median of some rounds, with their range."""
    least, most = (float(f"{value:.4g}") for value in (min(values), max(values)))
    return figure(name, median(values), unit, at_most=at_most).model_copy(update={"least": least, "most": most})


def main(measure: Callable[[bool], Iterator[Figure]], description: str | None) -> None:
    """Print every figure as soon as it is measured; `measure` is told whether to be quick."""
    parser = ArgumentParser(description=description)
    add_options(parser)
    options = parser.parse_args()
    print_figures(measure(options.quick), options.json)


def add_options(parser: ArgumentParser) -> None:
    """The options of every benchmark."""
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--quick", action="store_true", help="fewer cases and smaller ones: under a minute")


def print_figures(figures: Iterable[Figure], as_json: bool) -> None:
    """Print every figure as soon as it is measured."""
    for each in figures:
        print(each.model_dump_json() if as_json else _line(each), flush=True)


def _line(each: Figure) -> str:
    verdict = "" if each.within is None else f"   budget {each.budget:g}: {'met' if each.within else 'MISSED'}"
    within = "" if each.least is None else f" [{each.least:,g} to {each.most:,g}]"
    return f"{each.name:70} {each.value:>12,g}{within} {each.unit}{verdict}"


def parse(line: str) -> Figure:
    """A figure from a line that `--json` printed. Raises ValueError."""
    return Figure.model_validate(json.loads(line))


def cpu_s(pid: int, *, ended_children: bool = False) -> float:
    """Seconds of CPU that a process has used so far, user and system, all its threads; in steps of 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11 : 15 if ended_children else 13])) / TICKS


def forget_peak(pid: int) -> None:
    """Begin the measurement of a process's peak memory anew."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak_mb(pid: int) -> float:
    """The most memory that a process has held, in MB of 10**6 bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6


def median(values: Sequence[float]) -> float:
    """The middle value."""
    return statistics.median(values)
