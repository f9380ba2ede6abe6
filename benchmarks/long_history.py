"""What a turn costs the client with 100 KB of history beside one with 1 KB, over HTTP and over TLS.

The history lies in the first observation; 32 turns follow. The cases are played in turns and the ratio is that of the
medians, since a machine's pace drifts.
"""

from collections.abc import Iterator

from benchmarks.measure import Figure, figure, main, median
from benchmarks.overhead import Case, play
from benchmarks.world import QUICK_SAMPLES, SAMPLES, over_tls, world

IN_FLIGHT = 64
TURNS = 32
HISTORY_KB = (1, 100)
RATIO_BUDGET = 1.5


def measure(quick: bool) -> Iterator[Figure]:
    """CPU of the client per turn, for each length of history, over HTTP and TLS."""
    rounds, in_flight = (1, IN_FLIGHT // 32) if quick else (5, IN_FLIGHT)
    turns = (2 if quick else 4) * in_flight * TURNS
    used: dict[tuple[str, int], list[float]] = {}
    with world(QUICK_SAMPLES if quick else SAMPLES) as plain, over_tls(plain) as secure:
        play(plain, Case(in_flight=10), 200)  # first calls warm the servers up
        for _ in range(rounds):
            for scheme, servers in (("HTTP", plain), ("TLS", secure)):
                for kb in HISTORY_KB:
                    took = play(servers, Case(in_flight=in_flight, turns=TURNS, history_kb=kb), turns)
                    used.setdefault((scheme, kb), []).append(1000 * took.cpu_s["client"] / took.turns)
    spent = {key: median(values) for key, values in used.items()}
    for (scheme, kb), value in spent.items():
        yield figure(f"{scheme}, {kb} KB of history: client", value, "ms CPU/turn")
    for scheme in ("HTTP", "TLS"):
        ratio = spent[scheme, HISTORY_KB[-1]] / spent[scheme, HISTORY_KB[0]]
        yield figure(f"{scheme}: 100 KB over 1 KB of history: client", ratio, "x", at_most=RATIO_BUDGET)


if __name__ == "__main__":
    main(measure, __doc__)
