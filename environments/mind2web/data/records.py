"""Records in Mind2Web's official files (arXiv 2306.06070): a list of tasks, each with a list of recorded actions."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, FiniteFloat, NonNegativeInt

from proctor.types import Value

OWN = "proctor"
Op = Literal["CLICK", "TYPE", "SELECT"]


class _Record(BaseModel):
    """A record; fields that the evaluation does not use are ignored."""

    model_config = ConfigDict(frozen=True)


class PublishedTask(_Record):
    """A task, without its actions."""

    annotation_id: str
    website: str = ""
    domain: str = ""
    confirmed_task: str
    action_reprs: tuple[str, ...]
    """Every action in words, in order."""
    source: str = ""
    """OWN for generated tasks; the official ones lack the field."""


class _Operation(_Record):
    op: Op
    """HOVER and ENTER occur only in `original_op`."""
    value: str = ""


class _Candidate(_Record):
    backend_node_id: str


class ActionRecord(_Record):
    """A recorded action: the page before it, the candidate elements, and the operation."""

    action_uid: str
    cleaned_html: str
    operation: _Operation
    pos_candidates: tuple[_Candidate, ...] = ()
    neg_candidates: tuple[_Candidate, ...] = ()


def _none_twice(ranks: dict[str, int]) -> dict[str, int]:
    if len(set(ranks.values())) < len(ranks):
        raise ValueError("two candidates share a rank")
    return ranks


Scores = dict[str, FiniteFloat]
Ranks = Annotated[dict[str, NonNegativeInt], AfterValidator(_none_twice)]
"""Rank by candidate, 0 the best; ranks are distinct."""


class ScoreRecord(_Record):
    """A line of a score file: a ranker's scores and ranks of the candidates of one step."""

    key: str
    """`annotation_id`, underscore, `action_uid`."""
    scores: Scores
    ranks: Ranks


class Step(Value):
    """One step of a task, with the recorded actions before it."""

    sample: str
    annotation_id: str
    action_uid: str
    website: str
    domain: str
    task: str
    previous: tuple[str, ...]
    """The earlier actions in words."""
    steps: int
    """Number of steps of the whole task."""
    op: Op
    value: str
    """Text to type or option to select: the first line of the recorded value; empty for CLICK."""
    positives: tuple[str, ...]
    negatives: tuple[str, ...]
    """Ids of the wrong candidates, each once and none of them in `positives`."""
    page: str
    """The cleaned page as XML."""
    ranks: dict[str, int] | None
    """Rank by id from the score file; None if the file has none for this step."""
    words: str = ""
    """The action in words, as in `previous`."""

    @property
    def gold_action(self) -> str:
        """Operation, blank, value."""
        return f"{self.op} {self.value}"


def step(sample: str, task: PublishedTask, number: int, action: ActionRecord, ranks: dict[str, int] | None) -> Step:
    """The step with this number (from 0) of a task."""
    positives = tuple(dict.fromkeys(candidate.backend_node_id for candidate in action.pos_candidates))
    others = dict.fromkeys(candidate.backend_node_id for candidate in action.neg_candidates)
    operation = action.operation
    return Step(
        sample=sample,
        annotation_id=task.annotation_id,
        action_uid=action.action_uid,
        website=task.website,
        domain=task.domain,
        task=task.confirmed_task,
        previous=task.action_reprs[:number],
        words="".join(task.action_reprs[number : number + 1]),
        steps=len(task.action_reprs),
        op=operation.op,
        value="" if operation.op == "CLICK" else operation.value.partition("\n")[0],
        positives=positives,
        negatives=tuple(name for name in others if name not in positives),
        page=action.cleaned_html,
        ranks=ranks,
    )
