"""Byte offsets of each step of a split in its files, so that one step can be read without the others.

An index is built on the first use of the data and kept in a cache folder. It holds offsets, a digest and counts, no
data. Its file name is a digest of the data files' paths, sizes and times, so changed files get a new index.
"""

import hashlib
import json
import tempfile
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from environments.mind2web.data.files import mapped, opened
from environments.mind2web.data.json_reader import JsonReader
from environments.mind2web.data.records import OWN, PublishedTask, ScoreRecord
from proctor.config.wording import first_problem
from proctor.digest import json_digest
from proctor.types import Value

_FORMAT = "3"
NOWHERE = -1


class StepPlace(NamedTuple):
    """Where a step is stored; all fields but the first two are byte offsets in its file."""

    file: int
    """Number of the file, from 0."""
    number: int
    """Number of the step in its task, from 0."""
    task: int
    actions: int
    actions_end: int
    task_end: int
    step: int
    raw: int
    raw_end: int
    """End of the raw page, which begins at `raw` and is never read."""
    step_end: int
    ranks: int
    """Offset of the step's line in the score file; NOWHERE if it has none."""


class Head(Value):
    """Digest and counts of a whole split."""

    digest: str
    """Digest of the content of all files."""
    steps: int
    tasks: int
    own_tasks: int
    """Number of generated tasks."""
    unranked: int
    """Number of steps without ranks in the score file; all steps if there is no score file."""


class StepIndex:
    """The places of all steps."""

    def __init__(self, head: Head, places: "array[int]") -> None:
        self.head = head
        self._places = places

    def __getitem__(self, number: int) -> StepPlace:
        """The place of a step, from 0 to `head.steps` - 1."""
        width = len(StepPlace._fields)
        return StepPlace(*self._places[number * width : (number + 1) * width])


def index(files: Sequence[Path], scores: Path | None, cache: Path) -> StepIndex:
    """The index of the files, cached or newly built. Raises ValueError with file, task and fix."""
    kept = cache / f"{_name([*files, *([scores] if scores else [])], scores is not None)}.index"
    with suppress(OSError, ValueError):
        return _read(kept)
    built = _build(files, scores)
    with suppress(OSError):  # without a writable cache the index is only built again
        _keep(kept, built)
    return built


def _name(files: Sequence[Path], scored: bool) -> str:
    identity: list[object] = [_FORMAT, scored]
    for path in files:
        try:
            state = path.stat()
        except OSError as error:
            raise ValueError(f"{path}: can't be read: {error}; check the path") from error
        if path.is_dir():
            raise ValueError(f"{path}: is a folder; name a file")
        identity.append([str(path.resolve()), state.st_size, state.st_mtime_ns])
    return json_digest(identity)


def _read(path: Path) -> StepIndex:
    with path.open("rb") as file:
        head = Head.model_validate_json(file.readline())
        places = array("q")
        places.frombytes(file.read())
    if len(places) != head.steps * len(StepPlace._fields):
        raise ValueError("cut off")
    return StepIndex(head, places)


def _keep(path: Path, built: StepIndex) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as file:
        file.write(built.head.model_dump_json().encode() + b"\n")
        built._places.tofile(file)
    Path(file.name).replace(path)


def _build(files: Sequence[Path], scores: Path | None) -> StepIndex:
    state = hashlib.blake2b(digest_size=16)
    ranked = {} if scores is None else _ranked(scores, state)
    places, tasks, own, unranked = array("q"), set[str](), 0, 0
    for number, path in enumerate(files):
        with mapped(path) as text:
            state.update(text)
            try:
                for task, task_places in _tasks(JsonReader(text), number):
                    if task.annotation_id in tasks:
                        raise ValueError(f"task {task.annotation_id}: its annotation_id appears twice; remove one")
                    tasks.add(task.annotation_id)
                    own += task.source == OWN
                    for uid, place in task_places:
                        found = ranked.get(f"{task.annotation_id}_{uid}", NOWHERE)
                        unranked += found == NOWHERE
                        places.extend(place._replace(ranks=found))
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from error
    steps = len(places) // len(StepPlace._fields)
    if not steps:
        raise ValueError(f"{files[0]}: holds no step; give the official JSON lists of tasks")
    head = Head(digest=state.hexdigest(), steps=steps, tasks=len(tasks), own_tasks=own, unranked=unranked)
    return StepIndex(head, places)


def _tasks(reader: JsonReader, file: int) -> Iterator[tuple[PublishedTask, list[tuple[str, StepPlace]]]]:
    """Yields each task of a file with the uids and places of its steps."""
    for start in reader.items():
        steps: list[tuple[str, StepPlace]] = []
        actions = actions_end = start
        for name in reader.members():
            if name == "actions":
                actions = reader.at
                steps = [_step(reader, at) for at in reader.items()]
                actions_end = reader.at
            else:
                reader.skip()
        if actions == actions_end:
            raise ValueError(f"the task at byte {start} has no list of actions; add one")
        task = _task(reader, start, actions, actions_end)
        if len(steps) != len(task.action_reprs):
            counts = f"{len(task.action_reprs)} action_reprs, but {len(steps)} actions"
            raise ValueError(f"task {task.annotation_id}: {counts}; give one for each action")
        if len({uid for uid, _ in steps}) < len(steps):
            raise ValueError(f"task {task.annotation_id}: two of its actions share an action_uid; rename one")
        span = {"task": start, "actions": actions, "actions_end": actions_end, "task_end": reader.at}
        yield task, [(uid, step._replace(file=file, number=at, **span)) for at, (uid, step) in enumerate(steps)]
    reader.end()


def _task(reader: JsonReader, start: int, actions: int, actions_end: int) -> PublishedTask:
    text = reader.text(start, actions) + b"[]" + reader.text(actions_end, reader.at)
    try:
        return PublishedTask.model_validate_json(text)
    except ValidationError as error:
        raise ValueError(f"the task at byte {start}: {first_problem(error, 'the task')}; correct it") from error


def _step(reader: JsonReader, start: int) -> tuple[str, StepPlace]:
    """The uid and the place of the step at the reader's offset; the fields of its task are still 0."""
    uid, raw, raw_end = "", start, start
    for name in reader.members():
        span = reader.skip()
        if name == "action_uid":
            uid = str(json.loads(reader.text(*span)))
        elif name == "raw_html":
            raw, raw_end = span
    if not uid:
        raise ValueError(f"the action at byte {start} has no action_uid; add one")
    return uid, StepPlace(0, 0, 0, 0, 0, 0, step=start, raw=raw, raw_end=raw_end, step_end=reader.at, ranks=NOWHERE)


def _ranked(path: Path, state: "hashlib.blake2b") -> dict[str, int]:
    """Offset of each step's line in a score file, by the step's key; NOWHERE if the line has no ranks."""
    places: dict[str, int] = {}
    at = 0
    with opened(path) as file:
        for number, line in enumerate(file, 1):
            state.update(line)
            try:
                record = ScoreRecord.model_validate_json(line)
            except ValidationError as error:
                raise ValueError(
                    f"{path}:{number}: {first_problem(error, 'the line')}; `proctor mind2web scores` makes such files"
                ) from error
            if record.key in places:
                raise ValueError(f"{path}:{number}: key: {record.key} is in an earlier line already; remove one")
            places[record.key] = at if record.ranks else NOWHERE
            at += len(line)
    return places
