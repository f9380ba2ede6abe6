"""The environments of a run's tasks as they are installed here: they read answers, and make metrics of scores."""

import json
import logging
from collections.abc import Callable, Sequence
from functools import lru_cache, partial

from pydantic import JsonValue

from eval_client.own_runs import is_listed
from eval_client.store.parts import PlanStore
from eval_client.store.records import Manifest
from eval_client.store.store import Store
from eval_client.store.trials.trajectory import ConversationTurn
from proctor.config.task import TaskDefinition
from proctor.environment import Environment
from proctor.session.play import read_answer
from proctor.summary import summarize
from proctor.types import Action, ParsedAction

log = logging.getLogger(__name__)

AnswerReader = Callable[[Action | None], ParsedAction | None]
"""Reads an answer; None where there is none, or nothing can be said of it."""


def answer_reader(manifest: Manifest, task: str) -> AnswerReader:
    """Reads the answers to a task.

    It says nothing where the plan does not define the task, or its environment is not installed here.
    """
    return partial(_read, environment_of(manifest, task))


def environment_of(manifest: Manifest, task: str) -> Environment | None:
    """The environment that plays a task; None where the plan does not define the task, or it is not installed here."""
    tasks = manifest.plan.get("tasks")
    named = {str(each.get("name")): each for each in tasks if isinstance(each, dict)} if isinstance(tasks, list) else {}
    definition = named.get(task, {})
    return _built(json.dumps(definition)) if "environment" in definition else None


def scoring_environment(stores: Sequence[Store], task: str, level: int = logging.INFO) -> Environment | None:
    """The environment that scores a task of a run, or of the parts of a plan, with the files that its plan names.

    None where it is not installed here, or a stranger's plan would have it read files. An environment's code may raise
    anything over the settings of another version. The log says why at a `level`.
    """
    manifests = [store.manifest() for store in stores]
    try:
        definition = next(each for each in manifests[0].read_plan().definitions() if each.name == task)
        known = all(is_listed(store.run, manifest) for store, manifest in zip(stores, manifests, strict=True))
        if definition.without_files() != definition and not known:
            log.log(level, "task %s: its own metrics are left out, since other people's plans name its files", task)
            return None
        return definition.build()
    except Exception as error:
        log.log(level, "task %s: its own metrics are left out: %s", task, error)
        return None


def one_run(parts: Sequence[Store], *, texts: bool) -> Store:
    """The parts of a plan as one run, with what its environments make of all trials. Raises StoreError."""
    whole = PlanStore(parts, texts=texts)
    environments = {task: scoring_environment(parts, task, logging.WARNING) for task in whole.manifest().tasks}
    for pair in whole.pair_totals():
        environment = environments[pair.task]
        if environment is not None and pair.scored:
            summary = summarize(environment, *whole.clustered_finishes(pair.agent, pair.task))
            whole.write_summary(pair.agent, pair.task, pair.scored, summary)
    return whole


def turn_facts(turn: ConversationTurn, read: AnswerReader) -> dict[str, JsonValue]:
    """A turn as JSON, with how its answer is read."""
    reading = turn.reading or read(turn.action)
    return {**turn.model_dump(mode="json"), "reading": reading and reading.model_dump(mode="json")}


@lru_cache(maxsize=64)
def _built(definition: str) -> Environment | None:
    """The environment of a task definition; None where it can't be built, for whatever reason: its code may be new."""
    try:
        return TaskDefinition.model_validate_json(definition).without_files().build()
    except Exception as error:
        log.info("trials are shown without what their world says of them: %s", error)
        return None


def _read(environment: Environment | None, action: Action | None) -> ParsedAction | None:
    """What the environment reads. Whatever its code raises costs the reading, not the page."""
    if environment is None or action is None:
        return None
    try:
        return read_answer(environment, action)
    except Exception:
        log.warning("%s.parse_action failed", type(environment).__name__, exc_info=True)
        return None
