"""The official records of Mind2Web (arXiv 2306.06070): a file is a list of tasks, a task a list of recorded actions."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, FiniteFloat, NonNegativeInt

from proctor.types import Value

OWN = "proctor"
Op = Literal["CLICK", "TYPE", "SELECT"]


class _Record(BaseModel):
    """Fields the evaluation has no use for are passed over."""

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
    """OWN for generated tasks; the official ones don't have it."""


class _Operation(_Record):
    op: Op
    """HOVER and ENTER stand in `original_op` only."""
    value: str = ""


class _Candidate(_Record):
    backend_node_id: str


class ActionRecord(_Record):
    """A recorded action: the page before it, the elements it may be done on, and what was done."""

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
"""By candidate, from 0, the best; none twice."""


class ScoreRecord(_Record):
    """A line of a score file: how a ranker saw the candidates of one step."""

    key: str
    """`annotation_id`, underscore, `action_uid`."""
    scores: Scores
    ranks: Ranks


class Step(Value):
    """One step of a task, with all that came before it as it was recorded."""

    sample: str
    annotation_id: str
    action_uid: str
    website: str
    domain: str
    task: str
    previous: tuple[str, ...]
    """The actions before, in words."""
    steps: int
    """Of the whole task."""
    op: Op
    value: str
    """What is typed or selected: the first line of the recorded value; empty for CLICK."""
    positives: tuple[str, ...]
    negatives: tuple[str, ...]
    """Ids of candidates, none twice."""
    page: str
    """XML, cleaned."""
    ranks: dict[str, int] | None
    """Rank by id, from the score file; None where the file has none for this step."""

    @property
    def gold_action(self) -> str:
        """Operation, blank, value."""
        return f"{self.op} {self.value}"


def step(sample: str, task: PublishedTask, number: int, action: ActionRecord, ranks: dict[str, int] | None) -> Step:
    """A task's step, from 0."""
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
        steps=len(task.action_reprs),
        op=operation.op,
        value="" if operation.op == "CLICK" else operation.value.partition("\n")[0],
        positives=positives,
        negatives=tuple(name for name in others if name not in positives),
        page=action.cleaned_html,
        ranks=ranks,
    )
