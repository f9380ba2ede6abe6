"""Pure: the number of unscored trials at which a run ends early."""

import math
import re
from typing import NamedTuple, Self

from eval_client.core.progress import Progress, grouped_causes

_WRITTEN = re.compile(r"(\d+)|(\d+(?:\.\d+)?) ?%")


class ErrorLimit(NamedTuple):
    """A number of trials, or a share of all planned ones."""

    written: str
    """As the user wrote it."""
    trials: int | None
    share: float

    @classmethod
    def read(cls, text: str) -> Self:
        """The limit in a text such as `5` or `10%`. Raises ValueError."""
        found = _WRITTEN.fullmatch(text.strip())
        trials = int(found[1]) if found and found[1] else None
        share = float(found[2]) / 100 if found and found[2] else 0.0
        if not found or (trials or share) <= 0 or share > 1:
            raise ValueError(f"{text}: give a number of trials from 1, or a share such as 10%")
        return cls(text.strip(), trials, share)

    def reached(self, progress: Progress, waiting: int = 0) -> str | None:
        """Why the run must end, as text; None while fewer trials are unscored. `waiting` counts as unscored too."""
        unscored, planned = sum(progress.unscored.values()), sum(progress.planned.values())
        limit = self.trials if self.trials is not None else max(1, math.ceil(self.share * planned))
        if unscored + waiting < limit:
            return None
        parts = [f"{unscored} of {planned} trials are unscored"]
        if waiting:
            parts.append(f"{waiting} wait for an endpoint that is down")
        if progress.causes:
            causes = grouped_causes(progress.causes.items())
            parts.append(f"most often: {max(causes, key=lambda cause: causes[cause])}")
        return f"--fail-on-error {self.written}: {'; '.join(parts)}"
