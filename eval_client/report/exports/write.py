"""Writes a run's trials as other people's programs read them; each file appears complete or not at all.

A few trials are in memory at once, whatever the run's size. All raise StoreError and SQLAlchemyError.
"""

import json
import re
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from pydantic import JsonValue

from eval_client.plan.plan import Plan
from eval_client.report.export import json_lines, parquet_rows, pyarrow, write_lines, written_whole
from eval_client.report.exports import atif, inspect_log, sft
from eval_client.report.exports.pairs import ExportedPair, exported_pairs
from eval_client.report.trajectory import read_trajectories
from eval_client.store.connection import StoreError
from eval_client.store.store import Store
from proctor.digest import digest_of

ROWS = 100
"""Conversations that are written to a Parquet file at once."""


def write_inspect(store: Store, folder: Path) -> tuple[int, int]:
    """Write a log for each pair with a trial that is over; returns the numbers of trials and of logs."""
    epochs = Plan.model_validate(store.manifest().plan).epochs
    trials = logs = 0
    made_folder(folder)
    for pair in exported_pairs(store):
        if pair.result.scored or pair.result.faults:
            trials += _write_log(store, pair, folder / _log_name(pair), epochs)
            logs += 1
    return trials, logs


def write_atif(store: Store, folder: Path) -> tuple[int, int]:
    """Write TRIAL/CONVERSATION/trajectory.json for all trials that are over; returns the numbers of both.

    So many small files are not each forced to the disk.
    """
    trials = files = 0
    made_folder(folder)
    for pair in exported_pairs(store):
        for trial in read_trajectories(store, pair.result.agent, pair.result.task):
            trials += 1
            for name, trajectory in atif.trajectories(trial, pair).items():
                path = made_folder(folder / str(trial.trial) / _folder_name(name)) / "trajectory.json"
                with written_whole(path, durable=False) as partial:
                    partial.write_bytes(_encoded(trajectory))
                files += 1
    return trials, files


def write_sft(store: Store, path: Path, choice: sft.RowChoice) -> int:
    """Write the rows that are chosen, as Parquet where the file is named so; returns their number."""
    rows = (
        row
        for pair in exported_pairs(store)
        for trial in read_trajectories(store, pair.result.agent, pair.result.task)
        for row in sft.rows(trial, pair, choice)
    )
    with written_whole(path) as partial:
        if path.suffix == ".parquet":
            return parquet_rows(rows, partial, _parquet_types(), ROWS)
        return write_lines(json_lines(rows), partial)


def made_folder(folder: Path) -> Path:
    """The folder, made where it is missing. Raises StoreError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{folder}: can't be made: {error.strerror}; choose another place with --to") from error
    return folder


def _folder_name(conversation: str) -> str:
    """The name of a conversation's folder: `..` is no name of a folder in the trial's."""
    safe = quote(conversation, safe="")
    return "%2E" + safe[1:] if safe.startswith(".") else safe


def _log_name(pair: ExportedPair) -> str:
    """The name as Inspect gives it: time in seconds, task, id; equal only for the same pair of the same run."""
    time, task = re.sub(r"\.\d+", "", pair.created_at).replace(":", "-"), re.sub(r"[^\w.-]|_", "-", pair.result.task)
    digest = digest_of([pair.run, pair.result.agent, pair.result.task])[:12]
    agent = re.sub(r"[^\w.-]|_", "-", pair.result.agent)
    return f"{time}_{task}_{agent}-{digest}.eval"


def _write_log(store: Store, pair: ExportedPair, path: Path, epochs: int) -> int:
    """Write a pair's log and return its number of samples. The summaries wait in a file until all are known."""
    count, ended, metered, ids = 0, "", True, dict[str, None]()
    with (
        written_whole(path) as partial,
        tempfile.TemporaryFile() as summaries,
        zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as log,
    ):
        for trial in read_trajectories(store, pair.result.agent, pair.result.task):
            sample = inspect_log.sample(trial, pair)
            log.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", _encoded(sample))
            summaries.write((b",\n" if count else b"[") + _encoded(inspect_log.summary(sample)))
            count, ended = count + 1, max(ended, trial.ended_at or "")
            ids[trial.sample] = None
            metered = metered and inspect_log.is_metered(trial)
        summaries.write(b"]")
        begun = inspect_log.start(pair, ids, epochs)
        log.writestr("_journal/start.json", _encoded(begun))
        _add_file(log, "summaries.json", summaries)
        log.writestr("header.json", _encoded(inspect_log.header(pair, begun, ended, metered=metered)))
    return count


def _add_file(log: zipfile.ZipFile, name: str, file: IO[bytes]) -> None:
    file.seek(0)
    with log.open(name, "w", force_zip64=True) as member:
        shutil.copyfileobj(file, member)


def _encoded(value: JsonValue) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _parquet_types() -> dict[str, Any]:
    """The types of columns that are no plain text or number."""
    pa, _ = pyarrow()
    function = pa.struct([("name", pa.string()), ("arguments", pa.string())])
    call = pa.struct([("id", pa.string()), ("type", pa.string()), ("function", function)])
    message = [("role", pa.string()), ("content", pa.string())]
    message += [("tool_calls", pa.list_(call)), ("tool_call_id", pa.string())]
    return {
        "messages": pa.list_(pa.struct(message)),
        "trainable": pa.list_(pa.bool_()),
        "score": pa.float64(),
        "completion_token_ids": pa.list_(pa.list_(pa.int64())),
        "logprobs": pa.list_(pa.list_(pa.float64())),
    }
