"""What a turn by function calls costs beside one in text: the same echo environment, questions and answers.

The cases are played in turns and the ratio is that of the medians, since a machine's pace drifts.
"""

from collections.abc import Iterator

from benchmarks.measure import Figure, figure, main, median
from benchmarks.overhead import Case, play
from benchmarks.world import QUICK_SAMPLES, SAMPLES, world

IN_FLIGHT = 128
FUNCTIONS = (0, 3, 7)
RATIO_BUDGET = 1.15


def measure(quick: bool) -> Iterator[Figure]:
    """CPU of client and worker per turn, for each number of functions."""
    rounds, in_flight, turns = (1, IN_FLIGHT // 16, 128) if quick else (7, IN_FLIGHT, 4_096)
    used: dict[tuple[int, str], list[float]] = {}
    with world(QUICK_SAMPLES if quick else SAMPLES) as servers:
        play(servers, Case(in_flight=10), 200)  # first calls warm the servers up
        for _ in range(rounds):
            for functions in FUNCTIONS:
                took = play(servers, Case(in_flight=in_flight, functions=functions), turns)
                for part in ("client", "worker"):
                    used.setdefault((functions, part), []).append(1000 * took.cpu_s[part] / took.turns)
    spent = {key: median(values) for key, values in used.items()}
    for functions in FUNCTIONS:
        name = f"{functions} functions" if functions else "text"
        for part in ("client", "worker"):
            yield figure(f"{name}: {part}", spent[functions, part], "ms CPU/turn")
        yield figure(f"{name}: client + worker", _both(spent, functions), "ms CPU/turn")
    for functions in FUNCTIONS[1:]:
        ratio = _both(spent, functions) / _both(spent, 0)
        yield figure(f"{functions} functions over text: client + worker", ratio, "x", at_most=RATIO_BUDGET)


def _both(spent: dict[tuple[int, str], float], functions: int) -> float:
    return spent[functions, "client"] + spent[functions, "worker"]


if __name__ == "__main__":
    main(measure, __doc__)
