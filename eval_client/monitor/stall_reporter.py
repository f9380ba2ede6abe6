"""What holds a run up at the moment: for its screen, and in its folder for `proctor status`."""

import contextlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from eval_client.core.flow import Pair
from eval_client.core.stall import STILL_S, Standstill, Waits
from eval_client.monitor.shared import SharedFile, paced, shared_lines
from eval_client.run.context import Scene
from proctor.observability.redaction import redacted

FILE = "held-up.txt"


class Troubles:
    """Looks at a run again and again, and leaves what it sees in the run's folder."""

    def __init__(self, scene: Scene, folder: Path, begun: float) -> None:
        self._scene, self._file = scene, folder / FILE
        self._standstill = Standstill(self._achieved(), begun)
        self._left = ""
        self._shared = SharedFile(folder)

    def look(self, now: float) -> tuple[str, ...]:
        """Why the run comes no further; nothing while it does. `now` is monotonic."""
        lasts_s = self._standstill.lasts_s(self._achieved(), now)
        still = () if lasts_s < STILL_S else (f"no progress for {lasts_s:.0f} s: {'; '.join(self._reasons(now))}",)
        trouble = self._scene.runner.progress.trouble
        found = tuple(map(redacted, still if trouble is None else (trouble, *still)))
        self._leave("\n".join(found))
        self._shared.leave(shared_lines(self._scene.endpoints), now)
        return found

    def close(self) -> None:
        """Take back what was left in the folder."""
        self._leave("")
        self._shared.close()

    def _leave(self, text: str) -> None:
        if text == self._left:
            return
        self._left = text
        with contextlib.suppress(OSError):  # a full disk is what it may be about
            if text:
                self._file.write_text(text + "\n", encoding="utf-8")
            else:
                self._file.unlink(missing_ok=True)

    def _reasons(self, now: float) -> tuple[str, ...]:
        scene, waiting = self._scene, self._scene.runner.waiting()
        owed = {task for _, task in waiting}
        return Waits(
            now=now,
            tasks={task: why for task, why in scene.runner.progress.task_waits.items() if task in owed},
            cooling={name: limit.cool_for_s(now) for name, limit in scene.endpoints.limits.items()},
            paced={name: text for name in scene.endpoints.shares if (text := paced(scene.endpoints, name))},
            models=scene.endpoints.calls.values(),
            failures=scene.endpoints.troubles,
            server=scene.client.held_up(),
            store_since=scene.journal.waiting_since,
            slots=self._slots(waiting),
            elsewhere=scene.runner.quiet,
        ).reasons()

    def _slots(self, waiting: Mapping[Pair, int]) -> Counter[str]:
        slots: Counter[str] = Counter()
        for pair, trials in waiting.items():
            slots[self._scene.runner.flow.waits_for(pair) or "agent"] += trials
        return slots

    def _achieved(self) -> tuple[int, ...]:
        progress = self._scene.runner.progress
        return progress.turns, progress.attempts_lost, sum(progress.scored.values()), sum(progress.unscored.values())


def troubles_of(folder: Path) -> list[str]:
    """What a run's client last said it is held up by, a line each; it may be gone by now."""
    try:
        return (folder / FILE).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
