"""A step prepared for play: its page, its ranked candidates, and the question about a group of them."""

import random
from collections.abc import Sequence
from functools import cached_property
from typing import Literal

from environments.mind2web import bm25, prompt
from environments.mind2web.data.records import Step
from environments.mind2web.pages.markup import Rendered, render
from environments.mind2web.pages.page import nodes_by_id, parse
from environments.mind2web.pages.pruning import prune
from proctor.types import Message

TOP_K = 10
Ranker = Literal["scores", "bm25"]


class Contest:
    """The candidates of a step. Raises ValueError with task and action if the page is not well-formed."""

    def __init__(self, step: Step, ranker: Ranker, seed: int) -> None:
        self.step = step
        self._seed = seed
        self._shown: dict[tuple[str, ...], Rendered] = {}
        try:
            self._page = parse(step.page)
        except ValueError as error:
            raise ValueError(f"task {step.annotation_id}, action {step.action_uid}: {error}") from error
        self._nodes = nodes_by_id(self._page, (*step.positives, *step.negatives))
        self.ranker: Ranker = "scores" if ranker == "scores" and step.ranks is not None else "bm25"
        """The ranker in use; "bm25" also if the score file lacks the step."""
        self.ranks = self._ranks()
        """Rank of each candidate in the page by its id; 0 is the best."""

    @property
    def missing(self) -> int:
        """Number of recorded candidates that the page lacks; they are dropped."""
        return len(self.step.positives) + len(self.step.negatives) - len(self.ranks)

    @cached_property
    def positives(self) -> tuple[str, ...]:
        """Ids of the right candidates among the ten best."""
        return tuple(name for name in self.step.positives if self.ranks.get(name, TOP_K) < TOP_K)

    @property
    def best_rank(self) -> int | None:
        """Rank of the best right candidate; None if the page has none."""
        return min((self.ranks[name] for name in self.step.positives if name in self.ranks), default=None)

    def line(self) -> list[str]:
        """Ids of the ten best in the order of play: shuffled by seed, task and action only."""
        others = (name for name in self.step.negatives if self.ranks.get(name, TOP_K) < TOP_K)
        line = [*self.positives, *others]
        random.Random(f"{self._seed} {self.step.annotation_id} {self.step.action_uid}").shuffle(line)
        return line

    def render(self, group: Sequence[str]) -> Rendered:
        """The page pruned to the surroundings of a group of candidates, as text."""
        return render(prune(self._page, {name: self._nodes[name] for name in group}))

    def shown(self, group: Sequence[str]) -> Rendered:
        """As `render`, once for all who play the step at the same time."""
        key = tuple(group)
        if key not in self._shown:
            self._shown[key] = self.render(group)
        return self._shown[key]

    def asked(self, page: Rendered) -> Message:
        """The question about a rendered page."""
        return prompt.asked(page, self.step.task, self.step.previous)

    def _ranks(self) -> dict[str, int]:
        """Ranks from the score file, with candidates it lacks ranked last; BM25 ranks if it lacks the step."""
        ranks = self.step.ranks
        if self.ranker == "bm25" or ranks is None:
            return bm25.ranking(self._nodes, self.step.task, self.step.previous)
        last = max(ranks.values(), default=-1)
        lacking = [name for name in self._nodes if name not in ranks]
        after = {name: last + place for place, name in enumerate(lacking, 1)}
        return {name: ranks.get(name, after.get(name, last)) for name in self._nodes}
