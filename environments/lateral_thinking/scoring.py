"""The figures of a game, in both profiles, and their means over many games."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from environments.lateral_thinking.dataset import Puzzle
from environments.lateral_thinking.host import Answer, Profile, Ruling
from environments.lateral_thinking.prompt import ROUNDS
from proctor.summary import means
from proctor.types import Finish, FinishReason, Summary

PRIMARY = "game_progress"
MEANS = (
    PRIMARY,
    "single_game_accuracy",
    "query_relevance",
    "round_efficiency",
    "rounds",
    "hints",
    "unreadable",
    "finished",
)
WORDING = (
    "The instruction and the prompts of a host model are in our own words, with the content of the published ones; "
    "strict adds to the latter that a question is no instruction."
)


@dataclass
class Tally:
    """The counts of a game so far."""

    puzzle: Puzzle
    profile: Profile
    rounds: int = 0
    hints: int = 0
    unreadable: int = 0
    answers: dict[Answer, int] = field(default_factory=lambda: {"yes": 0, "no": 0, "irrelevant": 0})
    hits: dict[int, int] = field(default_factory=dict)
    """The round in which each key point was found, by its position in the puzzle."""
    finish_round: int | None = None
    """The round in which the game was finished; None before."""

    @property
    def remaining(self) -> Sequence[int]:
        """The key points not found yet, by their positions."""
        return [key for key in range(len(self.puzzle.keys)) if key not in self.hits]

    def record(self, ruling: Ruling) -> None:
        """Counts the ruling of the current round."""
        self.answers[ruling.answer] += 1
        self.unreadable += ruling.unreadable
        self.hits |= dict.fromkeys(ruling.hits, self.rounds)
        if self.finish_round is None and self._finished():
            self.finish_round = self.rounds

    def _finished(self) -> bool:
        """Whether all key points are found; in `compat`, as published, whether as many are as lines are left."""
        lines_left = self.puzzle.key_lines - len(self.hits)
        return len(self.hits) >= lines_left if self.profile == "compat" else not self.remaining

    def metrics(self) -> dict[str, float]:
        """The metrics by name; `game_progress` is the score.

        `compat` divides by the lines of the key cell and by 25 rounds, `strict` by key points and rounds played.
        """
        compat = self.profile == "compat"
        keys = self.puzzle.key_lines if compat else len(self.puzzle.keys)
        rounds = ROUNDS if compat else max(1, self.rounds)
        finish_round = ROUNDS if self.finish_round is None else self.finish_round
        yes, no = self.answers["yes"], self.answers["no"]
        return {
            "game_progress": len(self.hits) / keys,
            "single_game_accuracy": yes / rounds,
            "query_relevance": (yes + no) / rounds,
            "round_efficiency": 1 - finish_round / ROUNDS,
            "rounds": float(self.rounds),
            "hints": float(self.hints),
            "unreadable": float(self.unreadable),
            "finished": float(self.finish_round is not None),
        }


def summarize(finishes: Sequence[Finish], host: str) -> Summary:
    """Means over all scored games; without any there are none. Faults enter no mean; only `requested` counts them."""
    scored = [finish for finish in finishes if finish.score is not None]
    metrics = means({name: _values(name, scored) for name in MEANS})
    for language in ("en", "zh"):
        in_language = [finish for finish in scored if finish.detail.get("language") == language]
        if len(in_language) < len(scored):
            metrics |= means({f"{PRIMARY}_{language}": _values(PRIMARY, in_language)})
    for reason in (FinishReason.INVALID_ACTION, FinishReason.INVALID_FORMAT):
        metrics[reason.value] = float(sum(finish.reason is reason for finish in scored))
    metrics |= {"requested": float(len(finishes)), "scored": float(len(scored))}
    return Summary(primary=PRIMARY, metrics=metrics, notes=(f"Judged by the host: {host}.", WORDING))


def _values(name: str, finishes: Sequence[Finish]) -> list[float]:
    return [finish.metrics[name] for finish in finishes if name in finish.metrics]
