"""Writes a run as records of Every Eval Ever, and its trials as their rows (schema 0.3.0 of every-eval-ever 0.3.0).

What a run does not know is left out, or `unknown` where the schema demands a text. Raises StoreError, DatabaseError.
"""

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import click

from eval_client.report.exports.inspect_log import is_metered
from eval_client.report.exports.trials import ExportedPair, Json, Said, arguments_object, exported_pairs, spoken
from eval_client.report.exports.write import encoded, made_folder, write_lines, written_whole
from eval_client.report.report import declared_scale
from eval_client.report.scrub import model_name, publishable
from eval_client.store.connection import StoreError
from eval_client.store.records import TaskRecord
from eval_client.store.store import Store
from eval_client.store.trials.trajectory import conversation, read_trajectories
from proctor.digest import digest_of
from proctor.environment import MEAN_SCORE
from proctor.plugins import TrialExport
from proctor.tools.histories import MALFORMED
from proctor.types import Tool

UNKNOWN, ARGUMENTS = "unknown", ("temperature", "top_p", "top_k", "max_tokens")
RELATIONSHIPS = click.Choice(["first_party", "third_party", "collaborative", "other"])


def _write(store: Store, folder: Path, *, scores_only: bool | None, **by: Any) -> str:
    """Write data/ENVIRONMENT/DEVELOPER/MODEL/UUID.json for each pair with a score. A pair's UUID stays the same."""
    pairs, manifest = [pair for pair in exported_pairs(store) if pair.result.scored], store.manifest()
    means = store.sample_means()
    makers = dict(by["developer"])
    if stray := makers.keys() - (models := {model_name(pair.model) for pair in pairs}):
        raise StoreError(f"--developer {min(stray)}: no such model has a score; there are: {', '.join(sorted(models))}")
    for pair in pairs:
        key, model, now = (pair.result.agent, pair.result.task), model_name(pair.model), str(int(time.time()))
        head: Json = {"schema_version": "0.3.0", "evaluation_id": f"{pair.run}.{'.'.join(key)}/{model}/{now}"}
        developer = makers.get(model)
        maker, _, name = model.partition("/") if "/" in model else (developer or UNKNOWN, "", model)
        parts = (
            re.sub(r"[^\w.@+ -]", "_", part).rstrip(". ") or "_" for part in (pair.result.environment, maker, name)
        )
        place = "/".join(("data", *parts))
        path, tools, rows = f"{place}/{UUID(digest_of([pair.run, *key]), version=4)}", dict[str, Tool](), None
        made_folder(folder / place)
        beside = folder / f"{path}_samples.jsonl"
        if scores_only:
            beside.unlink(missing_ok=True)
        else:
            with written_whole(beside) as partial:
                count = write_lines(_rows(store, pair, head, tools), partial)
            rows = {"format": "jsonl", "file_path": f"{path}_samples.jsonl", "total_rows": count}
        who = {"source_name": "Proctor", "source_organization_name": by["organization"] or UNKNOWN}
        how = {"source_type": "evaluation_run", "evaluator_relationship": by["relationship"] or "other"}
        where = {"deployment_type": UNKNOWN, "model_availability": UNKNOWN, "endpoint": pair.endpoint, "agent": key[0]}
        scores = {MEAN_SCORE: pair.result.mean_score, **pair.result.metrics}
        common: Json = {"generation_config": _generation(pair, tools.values())}
        task, samples = manifest.tasks[key[1]], len(means[key].means)
        record = _known(
            **head,
            evaluation_timestamp=pair.created_at,
            retrieved_timestamp=now,
            source_metadata=who | how,
            eval_library={"name": "proctor", "version": pair.version, "additional_details": _texts(pair.provenance())},
            model_info=_known(name=model, id=model, developer=developer, additional_details=where),
            evaluation_results=[_result(pair, task, samples, *each) | common for each in scores.items()],
            detailed_evaluation_results=rows,
        )
        with written_whole(folder / f"{path}.json") as partial:
            partial.write_bytes(encoded(record))
    return f"{len(pairs)} records"


def _result(pair: ExportedPair, task: TaskRecord, samples: int, metric: str, value: float | None) -> Json:
    """A metric. Of one that the report does not rank by no direction is known: `polarity` says so."""
    result, scale = pair.result, (0.0, 1.0) if metric == MEAN_SCORE else declared_scale(task, metric)
    ranked = metric in (MEAN_SCORE, result.primary)
    error, interval = (result.standard_error, result.interval) if metric == result.primary else (None, None)
    within = interval and {"lower": interval[0], "upper": interval[1], "confidence_level": 0.95}
    counted, found = samples if ranked else None, error and {"value": error}
    uncertainty = _known(standard_error=found, confidence_interval=within, num_samples=counted)
    trials = {"planned": result.planned, "scored": result.scored, "unscored": result.unscored}
    details = {"primary": result.primary, "trials": trials, "reasons": result.validity, "notes": result.notes}
    bounds: Json = {"score_type": "continuous", "min_score": scale[0], "max_score": scale[1]} if scale else {}
    marks = _known(polarity=None if ranked else UNKNOWN, bounds_status=None if scale else UNKNOWN)
    names = {"metric_id": f"proctor.{result.environment}.{metric}", "metric_name": metric}
    return {
        "evaluation_result_id": f"{result.task}/{metric}",
        "evaluation_name": result.task,
        "source_data": {"dataset_name": result.environment, "source_type": "other"},
        "metric_config": {**names, "lower_is_better": False, **bounds, "additional_details": marks},
        "score_details": _known(score=value, details=_texts(details), uncertainty=uncertainty or None),
    }


def _generation(pair: ExportedPair, tools: Iterable[Tool]) -> Json:
    given = {**pair.sampling, **_known(turn_limit=pair.turn_limit)}
    known = {name: given.pop(name) for name in ARGUMENTS if isinstance(given.get(name), int | float)}
    others = {name: value if isinstance(value, str | int | float) else "set" for name, value in given.items()}
    offered = [{"name": tool.name, "description": tool.description} for tool in tools]
    config = {"available_tools": offered} if offered else None
    return {"generation_args": _known(**known, agentic_eval_config=config), "additional_details": _texts(others)}


def _rows(store: Store, pair: ExportedPair, head: Json, tools: dict[str, Tool]) -> Iterator[str]:
    """Scored trials, each as a row of `mean_score`, in ASCII: readers split lines as Unicode does. Fills `tools`."""
    for trial in read_trajectories(store, pair.result.agent, pair.result.task):
        if trial.finish is None or (score := trial.finish.score) is None:
            continue
        told = spoken(conversation(trial.turns))
        said, about = [each for one in told for each in one.said], {"agent": trial.agent, "epoch": trial.epoch}
        tools.update((tool.name, tool) for one in told for tool in one.tools)
        asked = next((each.message.content for each in said if each.message.role == "user"), "")
        read, written = trial.prompt_tokens, trial.completion_tokens
        tokens = {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}
        thought = {"input_tokens_cache_read": trial.cached_tokens, "reasoning_tokens": trial.reasoning_tokens}
        row = _known(
            **head,
            model_id=model_name(pair.model),
            evaluation_name=trial.task,
            evaluation_result_id=f"{trial.task}/{MEAN_SCORE}",
            sample_id=trial.sample,
            interaction_type="agentic" if pair.result.protocol == "tools" else "multi_turn",
            input={"raw": asked, "reference": []},
            messages=[_message(number, each) for number, each in enumerate(said)],
            answer_attribution=[],
            evaluation=_known(score=score, is_correct=score >= 1, num_turns=trial.answers or None),
            token_usage=tokens | thought if is_metered(trial) else None,
            performance={"latency_ms": trial.seconds * 1000},
            metadata=_texts({**about, "reason": trial.finish.reason.value}),
        )
        yield json.dumps(row, allow_nan=False) + "\n"


def _message(number: int, said: Said) -> Json:
    message, calls = said.message, []
    for call in message.tool_calls:
        given = arguments_object(call.arguments)
        texts = _texts({MALFORMED: call.arguments} if given is None else given, str)
        calls.append({"id": call.id, "name": call.name, "arguments": texts})
    thought = said.turn and said.turn.action and said.turn.action.reasoning
    sent = {"turn_idx": number, "role": message.role, "content": message.content}
    answered = message.tool_call_id and [message.tool_call_id]
    return _known(**sent, reasoning_trace=thought or None, tool_calls=calls or None, tool_call_id=answered)


def _known(**fields: Any) -> Json:
    return {name: value for name, value in fields.items() if value is not None}


def _texts(fields: Mapping[str, Any], of: Callable[[str], str] = publishable) -> Json:
    return {name: of(value if isinstance(value, str) else json.dumps(value)) for name, value in fields.items()}


OPTIONS = (
    click.Option(["--scores-only"], is_flag=True, default=None, help="every-eval-ever: without the trials' rows."),
    click.Option(["--organization"], help="every-eval-ever: who ran it. Default: unknown."),
    click.Option(["--relationship"], type=RELATIONSHIPS, help="every-eval-ever: theirs to the model. Default: other."),
    click.Option(["--developer"], type=(str, str), multiple=True, help="every-eval-ever: a model, and its maker."),
)
RECORDS = TrialExport("records of Every Eval Ever", "every-eval-ever", True, _write, OPTIONS, of_store=True)
