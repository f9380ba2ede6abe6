"""Mind2Web: CPU of a step (read, parse, rank, prune, render, prompt) by size of its page, and what it holds in memory.

Pages are generated. The pack of 2,000 steps is the shipped one several times over.
"""

import functools
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from lxml import etree

from benchmarks.measure import Figure, figure, main, median
from benchmarks.mind2web_memory import resident_mib
from environments.mind2web.contest import Contest, Ranker
from environments.mind2web.data.files import opened
from environments.mind2web.data.records import Step
from environments.mind2web.environment import OWN_SCORES, SAMPLES, Mind2Web
from environments.mind2web.pages import page
from environments.mind2web.pages.cleaning import clean
from tools.datagen.mind2web.element import Numbering, raw_page
from tools.datagen.mind2web.templates import KINDS, story

Item = TypeVar("Item")
PACK_STEPS, QUICK_PACK_STEPS = 2_000, 250
GROWTH_STEPS, QUICK_GROWTH_STEPS = 1_000, 50
SIZES = {1_135: 19, 5_000: 96, 50_000: 990}
"""Nodes of a page, about, and how dense a generated one must be to have them."""
HELD = 20


def wide_step(density: int) -> Step:
    """A step on a generated page of about 50 nodes for each of `density`, a third of them candidates."""
    told = story(KINDS[0], random.Random(1))._replace(density=density)
    nodes = list(Numbering(random.Random(1)).number(told.page({})).walk())
    candidates = [node.id for node in nodes if node.element.interactive]
    cleaned = clean(page.parse(raw_page(nodes[0])), frozenset(candidates))
    move = told.moves[0]
    return Step(
        sample="wide-00000",
        annotation_id="wide",
        action_uid="0",
        website=told.site,
        domain=told.kind.domain,
        task=told.task,
        previous=(),
        steps=1,
        op=move.op,
        value=move.value,
        positives=tuple(candidates[:1]),
        negatives=tuple(candidates[1:]),
        page=etree.tostring(cleaned, encoding="unicode"),
        ranks={name: rank for rank, name in enumerate(random.Random(2).sample(candidates, len(candidates)))},
    )


def nodes_of(step: Step) -> int:
    """How many nodes the page of a step has, texts among them."""
    return sum(1 for _ in page.parse(step.page).iter())


def prompts(contest: Contest, rounds: int) -> None:
    """Prune, render and put so many questions, as a tournament does."""
    line = sorted(contest.ranks, key=contest.ranks.__getitem__)
    for number in range(rounds):
        contest.asked(contest.render(line[5 * (number % 2) : 5 * (number % 2) + 5]))


def cpu_ms(work: Callable[[], object], repeats: int) -> float:
    """The median of the CPU that a call takes, in milliseconds."""
    taken = []
    for _ in range(repeats):
        begun = time.thread_time()
        work()
        taken.append(1000 * (time.thread_time() - begun))
    return median(taken)


def write_pack(folder: Path, steps: int) -> None:
    """The shipped tasks under ever new ids, unpacked, until there are so many steps or a few more."""
    tasks = [task for path in sorted(SAMPLES.glob("own_*.json.xz")) for task in json.loads(opened(path).read())]
    lines = [json.loads(line) for line in opened(OWN_SCORES)]
    text = json.dumps([task | {"annotation_id": f"COPY-{task['annotation_id']}"} for task in tasks])
    scored = "".join(json.dumps(line | {"key": f"COPY-{line['key']}"}) + "\n" for line in lines)
    with (folder / "own_scores.jsonl").open("w") as scores:
        for copy in range(-(-steps // len(lines))):
            (folder / f"own_{copy}.json").write_text(text.replace("COPY", str(copy)))
            scores.write(scored.replace("COPY", str(copy)))


class Loaded(NamedTuple):
    """What `mind2web_memory` says."""

    first_s: float
    resident_mib: float
    growth_mib: float


def load_pack(folder: Path, cache: Path, steps: int) -> Loaded:
    """Loads a pack in a process of its own and plays so many steps."""
    command = [sys.executable, "-m", "benchmarks.mind2web_memory", str(folder), str(cache), str(steps)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    return Loaded(**json.loads(done.stdout))


def measure(quick: bool) -> Iterator[Figure]:
    """Steps of the shipped pack, then pages by size, then a large pack."""
    environment = Mind2Web()
    samples = environment.samples()[:: 10 if quick else 2]
    contests = [environment.contest(sample) for sample in samples]
    yield figure("shipped page: nodes", median([nodes_of(contest.step) for contest in contests]), "")
    yield figure("shipped page: read, parse, rank", _each(samples, Mind2Web().contest), "ms CPU/step")
    yield figure("shipped page: prune and put two questions", _each(contests, lambda c: prompts(c, 2)), "ms CPU/step")
    for density in list(SIZES.values())[: 2 if quick else 3]:
        yield from _by_size(wide_step(density), 5 if quick else 15)
    with tempfile.TemporaryDirectory() as folder:
        yield from _pack(Path(folder), quick)


def _each(items: Sequence[Item], work: Callable[[Item], object]) -> float:
    return median([cpu_ms(functools.partial(work, item), 1) for item in items])


def _by_size(step: Step, repeats: int) -> Iterator[Figure]:
    nodes = nodes_of(step)
    name, large, huge = f"{nodes:,} nodes", nodes > 4_000, nodes > 40_000

    def contest(ranker: Ranker) -> Contest:
        return Contest(step, ranker, seed=1)

    yield figure(f"{name}: parse, rank by scores", cpu_ms(lambda: contest("scores"), repeats), "ms CPU")
    yield figure(f"{name}: parse, rank by words", cpu_ms(lambda: contest("bm25"), repeats), "ms CPU")
    ready = contest("scores")
    one = cpu_ms(lambda: prompts(ready, 1), repeats)
    yield figure(f"{name}: one question", one, "ms CPU", at_most=1_000 if huge else None if large else 5)
    before = resident_mib()
    held = [contest("scores") for _ in range(HELD)]
    yield figure(f"{name}: a session's memory", (resident_mib() - before) / len(held), "MiB")
    whole = cpu_ms(lambda: prompts(contest("scores"), 3), repeats)
    yield figure(f"{name}: a step of three questions", whole, "ms CPU", at_most=60 if large and not huge else None)


def _pack(folder: Path, quick: bool) -> Iterator[Figure]:
    steps, played = (QUICK_PACK_STEPS, QUICK_GROWTH_STEPS) if quick else (PACK_STEPS, GROWTH_STEPS)
    name = f"{steps:,} steps"
    write_pack(folder, steps)
    fresh = Mind2Web(data=folder, split="own", scores=folder / "own_scores.jsonl", cache=folder)
    yield figure(f"{name}: index", cpu_ms(fresh.samples, 1) / 1000, "s CPU")
    size = sum(path.stat().st_size for path in folder.glob("own_*")) / 1e6
    yield figure(f"{name}: files", size, "MB")
    loaded = load_pack(folder, folder, played)
    yield figure(f"{name}: first answer, the index present", loaded.first_s, "s", at_most=2)
    yield figure(f"{name}: resident memory", loaded.resident_mib, "MiB", at_most=200)
    yield figure(f"{name}: growth over {played:,} steps", max(0.0, loaded.growth_mib), "MiB", at_most=5)


if __name__ == "__main__":
    main(measure, __doc__)
