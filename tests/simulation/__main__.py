"""`python -m tests.simulation SEED` replays one history, line by line; `FIRST LAST` runs many and lists what broke."""

import sys
import time
from collections import Counter

from tests.simulation.history import simulate


def main() -> int:
    """1 where an invariant broke."""
    seeds = [int(text) for text in sys.argv[1:]]
    if len(seeds) == 1:
        problems, digest, counts = simulate(seeds[0], print)
        print(*problems, f"digest {digest}", dict(counts), sep="\n")
        return bool(problems)
    began, broken, shared = time.process_time(), 0, 0
    kinds, totals = Counter[str](), Counter[str]()
    for seed in range(seeds[0], seeds[1]):
        problems, _, counts = simulate(seed)
        if counts["at once"] > 1:
            shared += 1
            totals.update(counts)
        if problems:
            broken += 1
            kinds.update({problem[:24] for problem in problems[:1]})
            print(seed, problems[:2], flush=True)
    count = seeds[1] - seeds[0]
    print(f"{count} histories, {broken} broken, {time.process_time() - began:.1f} s of CPU", dict(kinds))
    print(
        f"several clients shared the run in {shared} of them: {totals['handed over']} trials went from one to another, "
        f"{totals['lost']} clients were taken for lost, {totals['fenced']} found themselves fenced"
    )
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
