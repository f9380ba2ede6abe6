"""What a process costs that plays steps of a large Mind2Web pack: one JSON object, for worlds_mind2web.

`python -m benchmarks.mind2web_memory FOLDER CACHE STEPS`: seconds from the start of loading to the first answer,
resident memory in MiB after some steps to warm up, and its growth over so many more.
"""

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from environments.mind2web.environment import Mind2Web
from environments.mind2web.reply import write
from proctor.session.play import PolicyAgent
from proctor.types import Action

WARM_UP = 200
FIRST_CLICK = Action(content=write("B", "CLICK"))


def resident_mib() -> float:
    """What this process holds in memory now."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


async def _play(environment: Mind2Web, samples: Sequence[str]) -> None:
    for sample in samples:
        await environment.play(sample, PolicyAgent(lambda conversation, transcript: FIRST_CLICK))


async def _measure(folder: Path, cache: Path, steps: int) -> dict[str, float]:
    begun = time.monotonic()
    environment = Mind2Web(data=folder, split="own", scores=folder / "own_scores.jsonl", cache=cache)
    samples = environment.samples()
    await _play(environment, samples[:1])
    first_s = time.monotonic() - begun
    await _play(environment, samples[:WARM_UP])
    before = resident_mib()
    await _play(environment, samples[WARM_UP : WARM_UP + steps])
    return {"first_s": first_s, "resident_mib": before, "growth_mib": resident_mib() - before}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_measure(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])))))
