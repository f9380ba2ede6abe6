"""The steps of a split, read one at a time from the official files."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from environments.mind2web.data.files import opened
from environments.mind2web.data.index import NOWHERE, Head, StepIndex, StepPlace, index
from environments.mind2web.data.records import ActionRecord, PublishedTask, ScoreRecord, Step, step
from proctor.config.wording import first_problem

MOST_UNRANKED = 0.5
"""Fraction of steps without ranks above which a score file counts as that of another split."""


class StepDataset:
    """The steps of a split's task files, in their order."""

    def __init__(self, split: str, files: Sequence[Path], scores: Path | None, places: StepIndex) -> None:
        self._split = split
        self._files = tuple(files)
        self._scores = scores
        self._index = places

    @property
    def head(self) -> Head:
        """Digest and counts of the split."""
        return self._index.head

    def sample(self, number: int) -> str:
        """The sample id of the step with this number, from 0."""
        return f"{self._split}-{number:05d}"

    def number(self, sample: str) -> int:
        """The number of the step with this sample id. Raises ValueError if there is none."""
        split, _, digits = sample.rpartition("-")
        number = int(digits) if digits.isascii() and digits.isdigit() else self.head.steps
        if split != self._split or number >= self.head.steps or self.sample(number) != sample:
            raise ValueError(
                f"no sample {sample!r}; ids go from {self.sample(0)} to {self.sample(self.head.steps - 1)}"
            )
        return number

    def first_step(self, sample: str) -> str:
        """The sample id of the first step of the same task."""
        number = self.number(sample)
        return self.sample(number - self._index[number].number)

    def step(self, sample: str) -> Step:
        """The step with this sample id. Raises ValueError with file, step, field and fix if its record is broken."""
        place = self._index[self.number(sample)]
        path = self._files[place.file]
        try:
            task_text, step_text = _texts(path, place)
            task = PublishedTask.model_validate_json(task_text)
            action = ActionRecord.model_validate_json(step_text)
            return step(sample, task, place.number, action, self._ranks(place))
        except ValidationError as error:
            where = f"{path}: step {sample} (byte {place.step})"
            raise ValueError(f"{where}: {first_problem(error, 'the step')}; correct it") from error

    def _ranks(self, place: StepPlace) -> dict[str, int] | None:
        if self._scores is None or place.ranks == NOWHERE:
            return None
        with opened(self._scores) as file:
            file.seek(place.ranks)
            return ScoreRecord.model_validate_json(file.readline()).ranks


def load(split: str, files: Sequence[Path], scores: Path | None, cache: Path, allow_unranked: bool) -> StepDataset:
    """The steps of the files, with the ranks of a score file.

    Raises ValueError for broken files, and if more than half of the steps lack ranks and `allow_unranked` is false.
    """
    dataset = StepDataset(split, files, scores, index(files, scores, cache))
    head = dataset.head
    if scores is not None and head.unranked > MOST_UNRANKED * head.steps and not allow_unranked:
        raise ValueError(
            f"{scores}: has no scores for {head.unranked} of {head.steps} steps; give the score file of the split "
            f"{split!r}, or set allow_unranked: true to rank the rest by BM25"
        )
    return dataset


def _texts(path: Path, place: StepPlace) -> tuple[bytes, bytes]:
    """JSON of a step's task without its actions, and JSON of the step without its raw page."""
    with opened(path) as file:

        def text(start: int, end: int) -> bytes:
            file.seek(start)
            return file.read(end - start)

        head, before_raw = text(place.task, place.actions), text(place.step, place.raw)
        after_raw, tail = text(place.raw_end, place.step_end), text(place.actions_end, place.task_end)
    raw = b'""' if place.raw_end > place.raw else b""
    return head + b"[]" + tail, before_raw + raw + after_raw
