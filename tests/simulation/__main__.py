"""`python -m tests.simulation SEED` replays one history, line by line; `FIRST LAST` runs many and lists what broke."""

import sys
import time
from collections import Counter

from tests.simulation.history import simulate


def main() -> int:
    """1 where an invariant broke."""
    seeds = [int(text) for text in sys.argv[1:]]
    if len(seeds) == 1:
        problems, digest = simulate(seeds[0], print)
        print(*problems, f"digest {digest}", sep="\n")
        return bool(problems)
    began, broken = time.process_time(), 0
    kinds = Counter[str]()
    for seed in range(seeds[0], seeds[1]):
        problems, _ = simulate(seed)
        if problems:
            broken += 1
            kinds.update({problem[:24] for problem in problems[:1]})
            print(seed, problems[:2], flush=True)
    count = seeds[1] - seeds[0]
    print(f"{count} histories, {broken} broken, {time.process_time() - began:.1f} s of CPU", dict(kinds))
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
