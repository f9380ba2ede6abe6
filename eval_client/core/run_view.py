"""Pure: the view of a run under way that screens show, as values."""

from pydantic import Field

from proctor.types import Value

SLOTS = ("endpoint", "agent", "task")
"""What trials wait for where its limit alone holds them up."""


class PairView(Value):
    """The row of a pair of agent and task."""

    agent: str
    task: str
    planned: int
    scored: int
    unscored: int
    running: int
    mean: float | None
    waits_for: str | None

    @property
    def done(self) -> int:
        """Trials with a final row."""
        return self.scored + self.unscored


class RunView(Value):
    """The content of a screen at one moment."""

    run: str
    elapsed_s: float
    left_s: float | None
    pairs: tuple[PairView, ...]
    use: dict[str, tuple[int, int]] = Field(default_factory=dict)
    """capacity limit, such as `agent gpt` -> (trials under way, trials allowed)"""
    turns: int
    retries: int
    attempts_lost: int
    prompt_tokens: int
    completion_tokens: int
    money: float
    troubles: tuple[str, ...]
    shared: tuple[str, ...] = ()
    """Lines on endpoints that other runs use as well, or whose rates are limited."""
    cooling: dict[str, float] = Field(default_factory=dict)
    """endpoint -> seconds left of its pause after a 429"""

    @property
    def done(self) -> int:
        """Trials with a final row."""
        return sum(pair.done for pair in self.pairs)

    @property
    def planned(self) -> int:
        """Number of trials of the run."""
        return sum(pair.planned for pair in self.pairs)

    def waits(self, *, idle: bool = False) -> dict[str, str]:
        """Cause that trials wait for -> a line with their tasks; `idle`: of pairs alone that play nothing."""
        tasks: dict[str, dict[str, None]] = {}
        for pair in self.pairs:
            if pair.waits_for and not (idle and pair.running):
                tasks.setdefault(pair.waits_for, {})[pair.task] = None
        limits = {cause: f"waits for {cause}: {', '.join(tasks[cause])}" for cause in tasks if cause in SLOTS}
        return limits | {cause: f"{', '.join(of)}: {cause}" for cause, of in tasks.items() if cause not in SLOTS}


def clock(seconds: float | None) -> str:
    """Seconds as H:MM:SS."""
    if seconds is None:
        return "?"
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"
