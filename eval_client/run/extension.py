"""Adds to a run: epochs, samples, agents and tasks, whose trials are played beside those that it has."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version

from pydantic import JsonValue

from eval_client.core import Pair
from eval_client.core.selection import Filters
from eval_client.plan.published import other_play
from eval_client.run.preflight import PreflightError, added, check_tasks, chosen_tasks
from eval_client.run.request import RunRequest
from eval_client.store.planned_trials import PlannedTrials
from eval_client.store.records import Addition, Manifest, TaskRecord, Trial, now_text
from proctor.tables.table import counted
from task_server.wire.messages import SampleList

log = logging.getLogger(__name__)

NAMED = 3
"""How many samples an error names."""
Samples = Mapping[str, Mapping[str, str]]
"""task -> sample -> its cluster"""


@dataclass(frozen=True)
class Extension:
    """What is added to a run beside what its plan has more than before."""

    filters: Filters
    """Those of the run, wider."""
    limit: int | None
    """The number of samples of each task; None for the run's own."""

    def __call__(
        self, request: RunRequest, manifest: Manifest, listed: Mapping[str, SampleList]
    ) -> tuple[Manifest, Iterable[Trial]]:
        """The manifest with what is added, and the trials that the run lacks; says what that is.

        Called with the run's lock. Raises PreflightError where what was played would be another one.
        """
        plan = request.plan
        more = added(manifest, plan, request.functions)
        check_tasks(manifest, listed)
        there, first = request.store.planned()
        samples, records = self._tasks(request, manifest, listed, there)
        for name in manifest.tasks.keys() & records.keys():
            before, after = manifest.tasks[name].samples, records[name].samples
            more += [f"task {name}: {before} -> {after} samples"] if after != before else []
        part = manifest.part and manifest.part.model_copy(update={"samples": samples})
        planned = PlannedTrials(plan, samples) if part is None else PlannedTrials(plan, samples, part.has)
        trials = sum(1 for _ in planned.beyond(there, first))
        changed = {"identity": plan.identity(request.functions), "filters": self.filters, "tasks": records}
        changed |= {"limit": self.limit or manifest.limit, "part": part, "order": _order(manifest, samples, records)}
        if more:
            addition = Addition(at=now_text(), version=version("proctor"), what=tuple(more), trials=trials)
            changed["additions"] = (*manifest.additions, addition)
            log.warning("run %r is extended by %s: %s", request.store.run, counted(trials, "trial"), "; ".join(more))
        else:
            left = sum(pair.planned - pair.scored - pair.declined for pair in request.store.pair_totals())
            rest = f"it is resumed, with {counted(left, 'trial')} to play" if left else "nothing is left to play"
            log.warning("run %r has all of this already: nothing is added, and %s", request.store.run, rest)
        return manifest.model_copy(update=changed), planned.beyond(there, first)

    def _tasks(
        self,
        request: RunRequest,
        manifest: Manifest,
        listed: Mapping[str, SampleList],
        there: Mapping[Pair, Mapping[str, int]],
    ) -> tuple[Samples, dict[str, TaskRecord]]:
        """The samples of each task and its record: those of earlier tasks as they are, unless others are chosen."""
        plan = request.plan
        samples, records = chosen_tasks(plan, listed, self.filters, self.limit or manifest.limit)
        chooses = self.limit is not None or self.filters.added != manifest.filters.added
        kept = [name for name in manifest.tasks if name in listed]
        chooses = chooses or _selections(plan.identity(request.functions), kept) != _selections(manifest.identity, kept)
        has = _samples(manifest, there)
        for name, chosen in samples.items():
            if name not in has:
                if not chosen:
                    raise PreflightError(
                        f"task {name}: --sample of the run chooses none of its samples; name some, too"
                    )
                continue
            if chooses and (lost := [sample for sample in has[name] if sample not in chosen]):
                named = ", ".join(lost[:NAMED]) + (", ..." if len(lost) > NAMED else "")
                raise PreflightError(
                    f"task {name}: this leaves out {counted(len(lost), 'sample')} that the run has ({named}); an "
                    "extension adds: give a higher --limit, or name the new ones by --sample"
                )
            if not chooses:
                cluster_of = listed[name].cluster_of()
                samples[name] = {each: cluster_of[each] for each in cluster_of if each in has[name]}
                record = manifest.tasks[name]
                why = record.comparable or other_play(plan, name, listed[name].published_rounds)
                records[name] = record.model_copy(update={"comparable": why})
        return samples, records


def _samples(manifest: Manifest, there: Mapping[Pair, Mapping[str, int]]) -> dict[str, set[str]]:
    """task -> the samples that the run has; of a part, those of all parts."""
    if manifest.part is not None:
        return {task: set(of) for task, of in manifest.part.samples.items()}
    found: dict[str, set[str]] = {}
    for (_, task), epochs in there.items():
        found.setdefault(task, set()).update(epochs)
    return found


def _selections(identity: Mapping[str, JsonValue], tasks: Iterable[str]) -> list[JsonValue]:
    """What the plan chooses of the samples of each task."""
    chosen = identity.get("samples")
    return [chosen.get(task) if isinstance(chosen, dict) else None for task in tasks]


def _order(manifest: Manifest, samples: Samples, records: Mapping[str, TaskRecord]) -> dict[str, tuple[str, ...]]:
    """The order of the samples of tasks to which some were added, now or earlier."""
    wider = {name for name, task in manifest.tasks.items() if name in records and records[name].samples > task.samples}
    return {name: tuple(of) for name, of in samples.items() if name in wider or name in manifest.order}
