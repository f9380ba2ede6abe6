"""Writes a run's trials as other people's programs read them; each file appears complete or not at all.

A few trials are in memory at once, whatever the run's size. All raise StoreError and DatabaseError.
"""

import json
import re
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import IO

from pydantic import JsonValue

from eval_client.report.exports import inspect_log
from eval_client.report.exports.rows import written_whole
from eval_client.report.exports.trials import ExportedPair, exported_pairs
from eval_client.store.connection import StoreError
from eval_client.store.store import Store
from eval_client.store.trials.trajectory import read_trajectories
from proctor.digest import digest_of
from proctor.plugins import TrialExport
from proctor.registry import EXPORTS, SEPARATE, entry_points
from proctor.tables.table import counted


def write_inspect(store: Store, folder: Path) -> tuple[int, int]:
    """Write a log for each pair with a trial that is over; returns the numbers of trials and of logs."""
    epochs = store.manifest().read_plan().epochs
    trials = logs = 0
    made_folder(folder)
    for pair in exported_pairs(store):
        if pair.result.scored or pair.result.faults:
            trials += _write_log(store, pair, folder / _log_name(pair), epochs)
            logs += 1
    return trials, logs


def made_folder(folder: Path) -> Path:
    """The folder, made where it is missing. Raises StoreError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{folder}: can't be made: {error.strerror}; choose another place with --to") from error
    return folder


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
            log.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", encoded(sample))
            summaries.write((b",\n" if count else b"[") + encoded(inspect_log.summary(sample)))
            count, ended = count + 1, max(ended, trial.ended_at or "")
            ids[trial.sample] = None
            metered = metered and inspect_log.is_metered(trial)
        summaries.write(b"]")
        begun = inspect_log.start(pair, ids, epochs)
        log.writestr("_journal/start.json", encoded(begun))
        _add_file(log, "summaries.json", summaries)
        log.writestr("header.json", encoded(inspect_log.header(pair, begun, ended, metered=metered)))
    return count


def _add_file(log: zipfile.ZipFile, name: str, file: IO[bytes]) -> None:
    file.seek(0)
    with log.open(name, "w", force_zip64=True) as member:
        shutil.copyfileobj(file, member)


def encoded(value: JsonValue) -> bytes:
    """The value as JSON, in which half a surrogate pair stands escaped."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(
        errors="backslashreplace"
    )


def _inspect(store: Store, folder: Path) -> str:
    trials, logs = write_inspect(store, folder)
    return f"{counted(trials, 'trial')} in {counted(logs, 'file')}"


INSPECT = TrialExport("Inspect's logs", "inspect", is_folder=True, write=_inspect, of_store=True)


def exports() -> dict[str, TrialExport]:
    """All forms that are installed, by name."""
    return {"inspect": INSPECT, **{entry.name: entry.load() for entry in entry_points(EXPORTS)}}


def separate_exports() -> list[str]:
    """The names of the forms that our own packages offer, installed or not."""
    return [name for offered in SEPARATE.values() for name in offered.get(EXPORTS, ())]
