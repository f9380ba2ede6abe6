"""Reports why a run makes no progress, to its screen and, by a file in its folder, to `proctor status`."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from eval_client.core.flow import Pair
from eval_client.core.stall import STILL_S, StallDetector, StallReasons
from eval_client.monitor import shared
from eval_client.monitor.shared import LinesFile, paced, shared_lines
from eval_client.run.context import RunContext
from proctor.observability.redaction import redacted

FILE = "held-up.txt"
TOLD_S, MOST_LOST = 300.0, 3
"""For how long, and of how many workers, it is told that they are lost, unless they are back."""


class StallReporter:
    """Detects stalls and trouble of a run, and writes them to a file in the run's folder."""

    def __init__(self, context: RunContext, folder: Path, begun: float) -> None:
        self._context, self._file = context, LinesFile(folder / FILE)
        self._stall = StallDetector(self._achieved(), begun)
        self._shared = LinesFile(folder / shared.FILE, shared.WRITE_EVERY_S)

    def look(self, now: float) -> tuple[str, ...]:
        """The run's trouble and stall, one line each; empty while it makes progress. `now` is monotonic."""
        lasts_s = self._stall.lasts_s(self._achieved(), now)
        failing = self._failing(now)
        away = self._context.client.outage.since is not None
        reasons = () if lasts_s < STILL_S or away else self._reasons(now, down=bool(failing))
        still = (f"no progress for {lasts_s:.0f} s: {'; '.join(reasons)}",) if reasons else ()
        trouble = self._context.progress.trouble
        found = tuple(map(redacted, (*failing, *still) if trouble is None else (trouble, *failing, *still)))
        self._file.write(found, now)
        self._shared.write(shared_lines(self._context.endpoints), now)
        return found

    def _failing(self, now: float) -> tuple[str, ...]:
        """A line for a task server that is away, each lost worker, and each endpoint without an answer for STILL_S."""
        schedule, server = self._context.schedule, self._context.client.outage
        found = [] if server.since is None else [f"{server}; trials wait for it, no attempt is used"]
        found += [cause for at, cause in self._context.client.lost.values() if now - at < TOLD_S][-MOST_LOST:]
        for name, outage in self._context.endpoints.outages.items():
            if outage.since is None or (lasts_s := now - outage.since) < STILL_S:
                continue
            waits = f"is down, {schedule.held_up(name)} trials wait for it; it " if outage.down else ""
            found.append(f"endpoint {name} {waits}has answered nothing for {lasts_s:.0f} s: {outage.cause}")
        return tuple(found)

    def close(self) -> None:
        """Remove both files from the folder."""
        self._file.close()
        self._shared.close()

    def _reasons(self, now: float, *, down: bool) -> tuple[str, ...]:
        context, waiting = self._context, self._context.schedule.unstarted()
        pending = {task for _, task in waiting}
        return StallReasons(
            now=now,
            tasks={task: why for task, why in context.progress.task_waits.items() if task in pending},
            cooling={name: limit.cool_for_s(now) for name, limit in context.endpoints.limits.items()},
            paced={name: text for name in context.endpoints.shares if (text := paced(context.endpoints, name))},
            models=context.endpoints.calls.values(),
            down=down,
            failures=context.endpoints.troubles,
            server=context.client.held_up(),
            store_since=context.journal.waiting_since,
            slots=self._slots(waiting),
            quiet=context.schedule.quiet,
        ).reasons()

    def _slots(self, waiting: Mapping[Pair, int]) -> Counter[str]:
        slots: Counter[str] = Counter()
        for pair, trials in waiting.items():
            slots[self._context.schedule.flow.waits_for(pair) or "agent"] += trials
        return slots

    def _achieved(self) -> tuple[int, ...]:
        progress, turns = self._context.progress, self._context.journal.turns
        return turns, progress.attempts_lost, sum(progress.scored.values()), sum(progress.unscored.values())
