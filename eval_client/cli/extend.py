"""`proctor extend`: adds to a run epochs, samples, agents and tasks, whose trials are played beside those it has."""

import json
import logging
import re
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
from pydantic import JsonValue

from eval_client.cli.common import (
    fail_on_error_option,
    in_process_option,
    output_option,
    plan_at_hand_options,
    quiet_option,
    report_usage_errors,
    run_argument,
    set_option,
    store_option,
)
from eval_client.cli.plans.plan_file import added_agent, added_task
from eval_client.cli.play import metrics_option, play
from eval_client.cli.usage import UsageProblem
from eval_client.core import Pair
from eval_client.core.progress import ErrorLimit
from eval_client.core.selection import Filters, SelectionError, check_matched
from eval_client.own_runs import AtHand, plan_at_hand
from eval_client.plan.plan import Plan
from eval_client.plan.published import other_play
from eval_client.run.preflight import PreflightError, added, check_tasks, chosen_tasks
from eval_client.run.request import RunRequest
from eval_client.store.lock import Busy, is_worked_on
from eval_client.store.planned_trials import PlannedTrials
from eval_client.store.records import Addition, Manifest, TaskRecord, Trial, now_text
from eval_client.store.runs import find_run
from proctor.tables.table import counted
from task_server.wire.messages import SampleList

log = logging.getLogger(__name__)

NAMED = 3
"""How many samples an error names."""
Samples = Mapping[str, Mapping[str, str]]
"""task -> sample -> its cluster"""
AtHandWith = Callable[[Filters, tuple[str, ...]], AtHand]
"""The run's plan, narrowed by filters, with `--set` options beside the stored ones."""
ENTRY: Mapping[str, Callable[[str, Plan], dict[str, object] | None]] = {"agents": added_agent, "tasks": added_task}
"""field of a plan -> its entry for a name that the plan does not have; None where that is none"""
PLAYS = {"endpoint", "model", "function", "builtin", "environment"}
"""Fields of an entry that tell what plays, or what is played."""


@click.command()
@run_argument
@output_option
@store_option
@click.option("--epochs", type=click.IntRange(1, 1000), help="How often each agent plays each sample, all in all.")
@click.option("--limit", type=click.IntRange(min=1), help="How many samples of each task are played, all in all.")
@click.option("--sample", "samples", multiple=True, metavar="ID", help="Samples to add: ID or TASK/ID, with wildcards.")
@click.option(
    "--agent",
    "agents",
    multiple=True,
    metavar="NAME",
    help="An agent to add: of the plan's file, a built-in one, a function ./agent.py:answer, a model as of -m.",
)
@click.option("--task", "tasks", multiple=True, metavar="NAME", help="A task to add: of the plan's file, or as of -e.")
@plan_at_hand_options
@set_option
@fail_on_error_option
@in_process_option
@metrics_option
@quiet_option
def extend(
    run: str,
    output: Path,
    store: str | None,
    epochs: int | None,
    limit: int | None,
    samples: tuple[str, ...],
    agents: tuple[str, ...],
    tasks: tuple[str, ...],
    plan_path: Path | None,
    trust_stored_plan: bool,
    overrides: tuple[str, ...],
    fail_on_error: ErrorLimit | None,
    in_process: bool,
    metrics: socket.socket | None,
    quiet: bool,
) -> None:
    """Add to RUN (a folder, a name, or `latest`, the default), and play what it lacks then.

    What the plan's file has more than before is added too: epochs, agents, tasks, samples. What was played stays as it
    is: other changes are refused as by `proctor resume`, and limits of the run may be raised by --set. The run is then
    the one that would have been planned whole. An extension that was interrupted is resumed by `proctor resume`. A part
    of a plan is extended by itself, each in the same way.

    Examples: `proctor extend r --epochs 5`, `proctor extend r --limit 500 --set limits.run.money=50`,
    `proctor extend r --agent ./agent.py:answer`
    """
    with report_usage_errors():
        found, folder = find_run(run, store, output)
        if is_worked_on(found):
            raise Busy(found.run)
        manifest = found.manifest()

        def at_hand(filters: Filters, texts: tuple[str, ...]) -> AtHand:
            as_filtered = manifest.model_copy(update={"filters": filters})
            return plan_at_hand(found.run, folder, as_filtered, plan_path, texts, trust_stored=trust_stored_plan)

        texts = (*overrides, *([] if epochs is None else [f"epochs={epochs}"]))
        wider = tuple(sorted({*manifest.filters.added, *samples}))
        filters = manifest.filters.model_copy(update={"added": wider})
        filters, plan = _with_names(at_hand, filters, texts, {"agents": agents, "tasks": tasks})
        for note in plan.notes:
            click.echo(note, err=True)
        try:
            added(manifest, plan.plan, {})
        except PreflightError as refused:
            raise UsageProblem(str(refused)) from refused
    request = RunRequest(
        plan.plan,
        plan.path,
        found,
        folder,
        resume=True,
        overrides=plan.overrides,
        fail_on_error=fail_on_error,
        in_process=in_process,
        extend=Extension(filters, limit),
    )
    play(request, quiet=quiet, metrics=metrics)


def _with_names(
    at_hand: AtHandWith, filters: Filters, texts: tuple[str, ...], asked: Mapping[str, tuple[str, ...]]
) -> tuple[Filters, AtHand]:
    """The run's plan with the agents and tasks that are asked for, and the filters that let them pass.

    Those that the plan's file lacks become `--set` options, so that a resume has them too. Raises SelectionError.
    """
    found = at_hand(filters, texts)
    for field, name in ((field, name) for field, names in asked.items() for name in names):
        chosen: tuple[str, ...] = getattr(filters, field)
        wider = filters.model_copy(update={field: tuple(dict.fromkeys((*chosen, name)))}) if chosen else filters
        try:
            found = at_hand(wider, texts)
            check_matched(f"--{field[:-1]}", (name,), [each.name for each in getattr(found.plan, field)])
        except SelectionError as error:
            entry = ENTRY[field](name, found.plan)
            if entry is None:
                raise SelectionError(f"{error}; or add it to the plan's file, and give the plan by --plan") from error
            made = _made_before(entry, getattr(found.plan, field))
            if made is None:
                texts = (*texts, f"{field}.+={json.dumps(entry)}", *_assigned(field, str(entry["name"]), found.plan))
            names = (*chosen, made or entry["name"])
            wider = filters.model_copy(update={field: tuple(dict.fromkeys(names))}) if chosen else filters
            found = at_hand(wider, texts)
        filters = wider
    return filters.model_copy(update={"left_out": _left_out(filters, found.plan)}), found


def _made_before(entry: Mapping[str, object], items: Iterable[Any]) -> str | None:
    """The name of the agent or task that an earlier extension made of the same; a number may tell the names apart."""
    stem, fields = re.sub(r"-\d+$", "", str(entry["name"])), PLAYS & entry.keys()
    same = (each.name for each in items if all(getattr(each, field, None) == entry[field] for field in fields))
    return next((name for name in same if name == stem or name.startswith(f"{stem}-")), None)


def _assigned(field: str, name: str, plan: Plan) -> list[str]:
    """The option by which a new agent plays all tasks, or all agents a new task, of those that a plan assigns."""
    played = dict(zip(ENTRY, (list(dict.fromkeys(names)) for names in zip(*plan.pairs(), strict=True)), strict=True))
    return [f"assignments.+={json.dumps(played | {field: [name]})}"] if plan.assignments else []


def _left_out(filters: Filters, plan: Plan) -> tuple[str, ...]:
    """What the filters still leave out of the run."""
    played, lines = {each.name for each in (*plan.agents, *plan.tasks)}, list[str]()
    for line in filters.left_out:
        kind, _, names = line.partition(": ")
        if kind.endswith("by --agent or --task"):
            left = [name for name in names.split(", ") if name not in played]
            lines += [f"{kind}: {', '.join(left)}"] if left else []
        elif kind.removeprefix("task ").removesuffix(" is left out") not in played:
            lines.append(line)
    return tuple(lines)


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
