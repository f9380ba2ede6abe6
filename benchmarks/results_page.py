"""RESULTS.md, with the figures that Proctor's claims rest on, and its two plots, from all measured rows."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.measure import median
from eval_client.report.plots import svg
from eval_client.report.plots.svg import Frame
from proctor.types import Value

PAGE = Path(__file__).with_name("RESULTS.md")
V02_MS = (4.9, 7.35, 9.8)
"""CPU of a turn in AgentBench v0.2's controller, worker and assigner together: the least and the most that were
measured with an echo task, 1 to 200 in flight, and the middle of the two."""


class Row(Value):
    """One figure over all rounds."""

    name: str
    unit: str
    values: tuple[float, ...]
    least: float
    most: float
    """Of all rounds, also of those within one run, whose median is a value."""
    budget: float | None = None
    met: bool | None = None
    """Whether more than half of the rounds keep the budget."""

    @property
    def value(self) -> float:
        """The median of the rounds."""
        return median(self.values)


class Measured(Value):
    """One benchmark's rows."""

    machine: str
    date: str
    rows: tuple[Row, ...]

    def row(self, name: str) -> Row | None:
        """The figure of this name, if it was measured."""
        return next((each for each in self.rows if each.name == name), None)


class Claim(NamedTuple):
    """A line of the page."""

    what: str
    benchmark: str
    figure: str
    rival: str = ""
    """The figure of the same benchmark that stands beside it."""
    beside: str = ""
    """What that is."""


BUDGETED = "direct, 8 turns, 0 ms, 128 in flight"
CLAIMS = (
    Claim(
        "A turn, all processes",
        "rivals",
        "Proctor: client, worker and controller",
        "Inspect: client",
        "Inspect's client",
    ),
    Claim("A turn in Inspect's client, in ours", "rivals", "Inspect's client beside all of Proctor"),
    Claim("The same libraries without features, in bare HTTP exchanges", "ideal", "ideal beside the floor"),
    Claim("A turn over HTTP, in such ideals", "ideal", "over HTTP beside the ideal"),
    Claim("A turn in the client's process, in such ideals", "ideal", "in process beside the ideal"),
    Claim("Our calls in a turn of the client", "turn_path", "calls of a turn"),
    Claim("Our files in a turn of the client", "turn_path", "files of a turn"),
    Claim("Turns a second, 128 in flight", "overhead", f"{BUDGETED}: turns/s", "floor: turns/s", "bare HTTP"),
    Claim("Client's peak, 512 in flight", "overhead", "direct, 8 turns, 0 ms, 512 in flight: client peak"),
    Claim("A turn with 7 functions, in turns in text", "tools", "7 functions over text: client + worker"),
    Claim(
        "A turn with 100 KB of history, in turns with 1 KB", "long_history", "HTTP: 100 KB over 1 KB of history: client"
    ),
    Claim("A run's CPU over its trials, exponent", "growth", "client: CPU over trials, exponent"),
    Claim("A run's memory over its trials, exponent", "growth", "client: memory over trials, exponent"),
    Claim("A controller's CPU over its workers, exponent", "growth", "controller: CPU over workers, exponent"),
    Claim("A session placed among 1,000 workers", "thousand", "placing a session, with a heartbeat"),
    Claim("500 heartbeats a second", "thousand", "500 heartbeats a second"),
    Claim(
        "Assignment at a finish, 500 x 100",
        "flow",
        "500 x 100, 100% of pairs owed: incremental",
        "500 x 100, 100% of pairs owed: fresh networkx",
        "networkx anew",
    ),
    Claim(
        "Length of a run, 27 agents by 8 tasks",
        "flow",
        "makespan, 27 agents x 8 tasks: flow, median",
        "makespan, 27 agents x 8 tasks: first come, median",
        "first come",
    ),
    Claim("Length of a run, eight servers", "replicas", "8 servers: length of the run beside the ideal"),
    Claim("Resume with 100,000 finished: to the first new turn", "resume", "100,000 finished: to the first new turn"),
    Claim("Report over 100,000 trials", "resume", "100,000 finished: report, CPU"),
    Claim("Start of 1,000,000 trials", "million", "1,000,000 trials, SQLite: start"),
    Claim("- its peak of memory", "million", "1,000,000 trials, SQLite: start, peak"),
    Claim(
        "Durable rows, SQLite",
        "store",
        "SQLite, 128 writers, grouped: durable rows/s",
        "SQLite, 128 writers, a commit a row: durable rows/s",
        "a commit a row",
    ),
    Claim(
        "Durable rows, PostgreSQL",
        "store",
        "PostgreSQL, 128 writers, grouped: durable rows/s",
        "PostgreSQL, 128 writers, a commit a row: durable rows/s",
        "a commit a row",
    ),
    Claim("A container for a session", "sandbox", "hand-out from the pool", "fresh container", "a fresh one"),
    Claim(
        "A command in its shell", "sandbox", "command in the persistent shell", "docker exec (program)", "docker exec"
    ),
    Claim(
        "A database for a session",
        "database",
        "shared server: session set-up",
        "server of its own: started, session set up",
        "a server of its own",
    ),
    Claim(
        "ALFWorld, a step",
        "worlds",
        "alfworld, ours: step with list and goal, median",
        "alfworld, TextWorld: step with list and goal, median",
        "TextWorld",
    ),
    Claim(
        "WebShop, a query over 100,000 products",
        "worlds",
        "webshop, 100,000 products: query, CPU, p50",
        "webshop, 100,000 products, FTS5: query, CPU, p50",
        "SQLite's FTS5",
    ),
    Claim("`proctor run` to the first turn", "start", "client: to the first turn"),
    Claim("`proctor demo`", "demo", "proctor demo, as it is"),
    Claim("The viewer's overview, 100,000 trials", "view", "overview, nothing cached: before the tasks' metrics"),
)


def missed(measured: Mapping[str, Measured]) -> list[str]:
    """The figures whose budget is not kept."""
    return [f"{name}: {row.name}" for name, each in measured.items() for row in each.rows if row.met is False]


def write_page(measured: Mapping[str, Measured]) -> Path:
    """Write the page, and its plots beside it."""
    drawn = {"turn.svg": turn_plot(measured), "growth.svg": growth_plot(measured)}
    for name, picture in drawn.items():
        PAGE.with_name(name).write_text(f"{picture}\n", encoding="utf-8")
    PAGE.write_text("\n".join(page_lines(measured)) + "\n", encoding="utf-8")
    return PAGE


def page_lines(measured: Mapping[str, Measured]) -> Iterator[str]:
    """RESULTS.md, line by line."""
    late = missed(measured)
    yield "# What the benchmarks measured"
    yield ""
    yield "The figures that Proctor's claims rest on, written by `make bench`; `results.json` has all rows, and"
    yield "[performance](../docs/explanation/performance.md) says where the time goes. CPU is that of the processes"
    yield "named, by the kernel's accounts; seconds and rates depend on what else it does. `import pydantic` is a unit"
    yield "of CPU: what that line costs on the same machine. Medians, with the least and the most of all rounds."
    yield ""
    yield "| what | figure | spread | rounds | budget | beside it |"
    yield "|---|---:|---:|---:|---:|---|"
    yield from (line for claim in CLAIMS if (line := _line(claim, measured)))
    yield ""
    yield "![CPU of a turn, beside rivals, the ideal and the floor](turn.svg)"
    yield ""
    yield "AgentBench v0.2's turn is a recorded one of its main branch, on another machine."
    yield ""
    yield "![What grows with trials and with workers](growth.svg)"
    yield ""
    budgets = sum(row.met is not None for each in measured.values() for row in each.rows)
    yield f"{len(late)} of {budgets} budgets are missed:"
    yield ""
    for name in late:
        benchmark, _, figure = name.partition(": ")
        row = measured[benchmark].row(figure)
        assert row is not None
        yield f"- {name}: {_value(row)}, budget {row.budget:,g}"
    yield ""
    yield "## When, and on what"
    yield ""
    by_place: dict[str, list[str]] = {}
    for name, each in measured.items():
        by_place.setdefault(f"{each.date}, {each.machine}", []).append(name)
    for place, names in by_place.items():
        yield f"- {', '.join(names)}: {place}"


def _line(claim: Claim, measured: Mapping[str, Measured]) -> str:
    """A row of the table; nothing where it was not measured."""
    found = measured.get(claim.benchmark)
    row = found and found.row(claim.figure)
    if not found or not row:
        return ""
    rounds, spread = str(len(row.values)), f"{row.least:,g} to {row.most:,g}"
    if row.least == row.most:
        spread = "" if len(row.values) == 1 else "none"
    budget = "" if row.budget is None else f"{row.budget:,g}{'' if row.met else ', **missed**'}"
    other = found.row(claim.rival) if claim.rival else None
    beside = f"{claim.beside}: {_value(other)}" if other else ""
    return f"| {claim.what} | {_value(row)} | {spread} | {rounds} | {budget} | {beside} |"


def _value(row: Row) -> str:
    return f"{row.value:,.4g} {row.unit}".strip() if row.value < 1_000 else f"{row.value:,.0f} {row.unit}".strip()


def turn_plot(measured: Mapping[str, Measured]) -> str:
    """Bars on a logarithmic axis: milliseconds of CPU for a turn."""
    bars = [("AgentBench v0.2, recorded", *V02_MS)]
    for label, benchmark, parts in (
        ("Inspect, its client", "rivals", ["Inspect: client"]),
        ("Proctor, all processes", "rivals", ["Proctor: client, worker and controller"]),
        ("Proctor, in one process", "ideal", ["in process: client"]),
        ("ideal: the same libraries", "ideal", ["ideal: client", "ideal: worker"]),
        ("floor: bare HTTP", "ideal", ["floor: client + server"]),
    ):
        found = [row for name in parts if benchmark in measured and (row := measured[benchmark].row(name))]
        if len(found) == len(parts):
            bars.append(
                (label, *(sum(ends) for ends in zip(*((r.least, r.value, r.most) for r in found), strict=True)))
            )
    bars.sort(key=lambda bar: -bar[2])
    frame = Frame(760, 60 + 26 * len(bars), 230, 700, 10, 20 + 26 * len(bars))
    scale = svg.spanning([each for _, *ends in bars for each in ends], frame.left, frame.right)
    parts = [svg.horizontal_axis(scale, frame, "ms of CPU per turn, logarithmic")]
    for place, (label, least, middle, most) in enumerate(bars):
        top = frame.top + 8 + 26 * place
        ours = "#2563a8" if label.startswith("Proctor") else "#9aa4ae"
        end = scale.at(middle)
        parts += [
            svg.row_label(frame.left, top + 12, label),
            svg.rect(frame.left, top, end - frame.left, 16, fill=ours),
            svg.line(scale.at(least), top + 8, scale.at(most), top + 8, "spread"),
            svg.words(max(end, scale.at(most)) + 6, top + 12, f"{middle:.3g}"),
        ]
    return svg.drawing(frame, "Milliseconds of CPU for a turn", "bars", [_paper(frame), *parts])


def growth_plot(measured: Mapping[str, Measured]) -> str:
    """Lines on logarithmic axes: what one trial and one heartbeat cost, the more of them there are."""
    frame = Frame(720, 320, 70, 560, 40, 268)
    found = measured["growth"].rows if "growth" in measured else ()
    lines = [
        ("client, ms CPU a trial", _points(found, "client: CPU at ", " trials")),
        ("controller, ms CPU a heartbeat", _points(found, "controller: a heartbeat at ", " workers")),
    ]
    counts = [x for _, points in lines for x, _ in points] or [1.0, 1_000.0]
    costs = [y for _, points in lines for _, y in points] or [0.1, 10.0]
    across, up = (
        svg.spanning(counts, frame.left, frame.right),
        svg.spanning([0.1, *costs, 10.0], frame.bottom, frame.top),
    )
    parts = [
        svg.horizontal_axis(across, frame, "trials, or workers"),
        svg.vertical_axis(up, frame, "ms of CPU for each"),
    ]
    for (label, points), colour in zip(lines, ("#2563a8", "#b45309"), strict=True):
        at = [(across.at(x), up.at(y)) for x, y in points]
        if at:
            drawn = [svg.path(at, "line"), *(svg.circle(x, y, 3, "dot") for x, y in at)]
            parts.append(
                svg.element(
                    "g", {"color": colour, "fill": colour}, *drawn, svg.words(at[-1][0] + 8, at[-1][1] + 4, label)
                )
            )
    return svg.drawing(
        frame, "Cost of a trial and of a heartbeat as they grow in number", "lines", [_paper(frame), *parts]
    )


def _points(found: Sequence[Row], before: str, after: str) -> list[tuple[float, float]]:
    """(count, value) of the rows whose names are so made."""
    names = [row for row in found if row.name.startswith(before) and row.name.endswith(after)]
    return [(float(row.name.removeprefix(before).removesuffix(after).replace(",", "")), row.value) for row in names]


def _paper(frame: Frame) -> str:
    """A white ground and black words, whatever page shows the picture."""
    return svg.rect(0, 0, frame.width, frame.height, fill="#ffffff") + "<style>.grid{stroke:#ddd}</style>"
