"""Reads the parts of a plan as one run: their rows are put together in a store that lasts as long as it is used."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import sqlalchemy as sa

from eval_client.store.connection import StoreError, connect, file_url
from eval_client.store.migration import existing_columns
from eval_client.store.planned_trials import PlannedTrials
from eval_client.store.records import Manifest, PlanPart, Trial
from eval_client.store.store import Store
from eval_client.store.tables import attempt_table, call_table, reply_table, run_table, trial_table, turn_table

COPIED = (trial_table, attempt_table, turn_table, call_table, reply_table)
TEXTS = tuple(table.c[name] for table in (turn_table, call_table) for name in ("observation", "reply"))
TEXTS += (reply_table.c.text,)
"""What was said, which no figure is read from."""
BATCH = 500
ALIKE = ("identity", "tasks", "limit", "filters")
"""What is equal in the manifests of all parts of a plan, beside the samples."""
EXTEND = "; extend each part alike: proctor extend PART"
STATES = ("running", "new", "interrupted", "out_of_tokens", "out_of_money", "incomplete", "finished")
"""The state of all parts together is the first of these that one has."""


class PlanStore(Store):
    """The parts of a plan, as the run in one piece would be stored. Trials of missing parts are planned, not played."""

    def __init__(self, parts: Sequence[Store], *, texts: bool) -> None:
        """Without `texts` observations and replies are left empty. Raises StoreError, DatabaseError."""
        numbered = {part.run: part.manifest().part for part in parts}
        parts = sorted(parts, key=lambda part: (told := numbered[part.run]) is not None and told.number)
        manifests = [part.manifest() for part in parts]
        found = _checked(parts, manifests)
        self._folder = tempfile.TemporaryDirectory(prefix="proctor-parts-", ignore_cleanup_errors=True)
        super().__init__(connect(file_url(Path(self._folder.name))), found[0].plan)
        self._put_together(parts, manifests, found, texts=texts)

    def _put_together(
        self, parts: Sequence[Store], manifests: Sequence[Manifest], found: Sequence[PlanPart], *, texts: bool
    ) -> None:
        samples, numbers = found[0].samples, {part.number for part in found}
        plan = manifests[0].read_plan()
        absent = PlannedTrials(plan, samples, lambda task, sample: found[0].part_of(task, sample) not in numbers)
        notes = dict.fromkeys(note for manifest in manifests for note in manifest.model_notes)
        resumed = sorted(moment for manifest in manifests for moment in manifest.resumed_at)
        models = {agent: model for manifest in reversed(manifests) for agent, model in manifest.models.items()}
        whole = {"part": None, "order": {}, "model_notes": tuple(notes), "resumed_at": tuple(resumed), "models": models}
        self.create(manifests[0].model_copy(update=whole), absent)
        missing = found[0].of - len(found)
        state = min((*(part.state() for part in parts), *(["incomplete"] if missing else [])), key=STATES.index)
        facts = {"created_at": min(part.created_at() for part in parts), "state": state}
        facts["notes"] = "".join(f"{note}\n" for part in parts for note in part.notes())
        planned = sum(1 for _ in PlannedTrials(plan, samples))
        extended = [part for part, manifest in zip(parts, manifests, strict=True) if manifest.additions]
        ids = {_key(trial): trial.id for trial in PlannedTrials(plan, samples)} if extended else {}
        numbers_of = {
            part.run: {trial.id: ids.get(_key(trial), trial.id) for trial in part.trials()} for part in extended
        }
        with self.engine.begin() as writer:
            writer.execute(run_table.update().values(facts))
            for part in parts:
                with part.engine.connect() as reader:
                    for table in COPIED:
                        of_whole = numbers_of.get(part.run, {})
                        _copy(reader, part.run, table, writer, self.run, texts=texts, numbers=of_whole)
            there = writer.execute(sa.select(sa.func.count()).select_from(trial_table)).scalar_one()
        if there != planned:
            raise StoreError(f"the parts of {self.run!r} have {there} trials where the plan has {planned}")


def _checked(parts: Sequence[Store], manifests: Sequence[Manifest]) -> list[PlanPart]:
    """The parts. Raises StoreError where they are none of one plan, or one is given twice."""
    found: list[PlanPart] = []
    for store, manifest in zip(parts, manifests, strict=True):
        if manifest.part is None:
            raise StoreError(f"run {store.run!r} is no part of a plan: it can't be read as one run with parts")
        found.append(manifest.part)
    for store, manifest, part in zip(parts[1:], manifests[1:], found[1:], strict=True):
        differ = [name for name in ALIKE if getattr(manifest, name) != getattr(manifests[0], name)]
        differ += [name for name in ("plan", "of", "samples") if getattr(part, name) != getattr(found[0], name)]
        before = manifests[0].models
        differ += [
            f"the function of agent {name}"
            for name in before.keys() & manifest.models.keys()
            if before[name].digest != manifest.models[name].digest
        ]
        if differ:
            raise StoreError(
                f"runs {parts[0].run!r} and {store.run!r} are no parts of one plan: they differ in {', '.join(differ)}"
                f"{EXTEND if manifest.additions or manifests[0].additions else ''}"
            )
    numbers = [part.number for part in found]
    if twice := [number for number in numbers if numbers.count(number) > 1]:
        raise StoreError(f"part {twice[0]} of {found[0].of} is given twice; name each part once")
    return found


def _key(trial: Trial) -> tuple[str, str, str, int]:
    return trial.agent, trial.task, trial.sample, trial.epoch


def _copy(
    reader: sa.Connection,
    source: str,
    table: sa.Table,
    writer: sa.Connection,
    target: str,
    *,
    texts: bool,
    numbers: Mapping[int, int],
) -> None:
    """Copy a part's rows of a table; `numbers` are what its trials are in the whole, where they are others there."""
    number = "id" if table is trial_table else "trial"
    empty = {column.name: "" for column in TEXTS if column.table is table and not texts}
    columns = [column for column in existing_columns(reader.engine, table) if column.name not in empty]
    if not columns:  # a store of an earlier version
        return
    rows = reader.execution_options(stream_results=True).execute(sa.select(*columns).where(table.c.run == source))
    for batch in rows.mappings().partitions(BATCH):
        changed = {**empty, "run": target}
        told = [{**row, **changed, number: numbers.get(row[number], row[number])} for row in batch]
        writer.execute(table.insert(), told)
