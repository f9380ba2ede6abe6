"""Writes a run to files, as rows and as other people's programs read it; each appears complete or not at all.

A few trials are in memory at once, whatever the run's size. What reads a store raises StoreError and DatabaseError.
"""

import csv
import io
import json
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from eval_client.report.exports import inspect_log
from eval_client.report.exports.trials import ExportedPair, exported_pairs
from eval_client.store.connection import StoreError
from eval_client.store.store import Store
from eval_client.store.trials.trajectory import read_trajectories
from proctor.digest import digest_of
from proctor.plugins import TrialExport
from proctor.registry import EXPORTS, SEPARATE, entry_points
from proctor.tables.command import spreadsheet_text
from proctor.tables.table import counted
from proctor.types import NOT_REDISTRIBUTABLE

Row = dict[str, JsonValue]
FORMATS = ("jsonl", "csv", "parquet")
BATCH = 1000


def export_rows(rows: Iterator[Row], form: str, path: Path, *, samples: bool) -> int:
    """Write rows in one of FORMATS and return their number; CSV has the details of scores only with `samples`.

    Raises StoreError where the path can't be written or the format's package is missing.
    """
    with written_whole(path) as partial:
        if form == "parquet":
            return parquet_rows(rows, partial, {})
        lines = json_lines(rows) if form == "jsonl" else csv_lines(_without_details(rows, samples=samples))
        return write_lines(lines, partial)


def _without_details(rows: Iterable[Row], *, samples: bool) -> Iterator[Row]:
    """Rows without what scores rest on; with `samples` only where that may not be given away."""
    for row in rows:
        finish = row.get("finish")
        detail = finish.get("detail") if isinstance(finish, dict) else None
        if isinstance(finish, dict) and isinstance(detail, dict) and (not samples or detail.get(NOT_REDISTRIBUTABLE)):
            yield {**row, "finish": {name: value for name, value in finish.items() if name != "detail"}}
        else:
            yield row


@contextmanager
def written_whole(path: Path, *, durable: bool = True) -> Iterator[Path]:
    """A path beside `path` to write to, which is renamed to it when all is written; else nothing is left of it.

    `durable`: it is on the disk before it is renamed, so that a power failure leaves a whole file too. Raises
    StoreError where the path can't be written.
    """
    partial = path.with_name(path.name + ".partial")
    try:
        yield partial
        if durable:
            with partial.open("rb") as file:
                os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        raise StoreError(f"{path}: can't be written: {error.strerror}; choose another place with --to") from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def json_lines(rows: Iterable[Row]) -> Iterator[str]:
    """Each row as a line of JSON. Raises ValueError for a number that JSON can't hold."""
    return (json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)


def csv_lines(rows: Iterable[Row]) -> Iterator[str]:
    """Each row as CSV, the first one with the names before it."""
    text = io.StringIO(newline="")
    writer: csv.DictWriter[str] | None = None
    for row in rows:
        if writer is None:
            writer = csv.DictWriter(text, list(row))
            writer.writeheader()
        writer.writerow({name: _cell(value) for name, value in row.items()})
        yield text.getvalue()
        text.seek(0)
        text.truncate()


def write_lines(lines: Iterator[str], path: Path) -> int:
    """Write one text for each row and return their number."""
    count = 0
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        for line in lines:
            file.write(line)
            count += 1
    return count


def _cell(value: JsonValue) -> str | float | int | None:
    """A CSV cell: nested data as JSON; text that a spreadsheet would run as a formula is prefixed with `'`."""
    if value is None or isinstance(value, int | float):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return spreadsheet_text(text)


def parquet_rows(rows: Iterator[Row], path: Path, nested: Mapping[str, Any], size: int = BATCH) -> int:
    """Write rows as Parquet and return their number; nested data are JSON text but in columns whose type is given.

    `size` rows are in memory at once.
    Raises StoreError where the format's package is missing.
    """
    pa, pq = pyarrow()
    count = 0
    writer = None
    while batch := list(islice(rows, size)):
        flat = [
            {
                name: value if name in nested else _flat(value)
                for name, value in {**dict.fromkeys(nested), **row}.items()
            }
            for row in batch
        ]
        if writer is None:
            inferred = pa.Table.from_pylist([{n: v for n, v in row.items() if n not in nested} for row in flat]).schema
            fields = [(f.name, pa.string() if f.type == pa.null() else f.type) for f in inferred]
            schema = pa.schema([*nested.items(), *fields])
            writer = pq.ParquetWriter(path, schema)
        writer.write_table(pa.Table.from_pylist(flat, schema=schema))
        count += len(batch)
    if writer is None:
        pq.write_table(pa.table({}), path)
    else:
        writer.close()
    return count


def pyarrow() -> tuple[Any, Any]:
    """The modules `pyarrow` and `pyarrow.parquet`. Raises StoreError where they are missing."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise StoreError("parquet needs the extra: pip install 'proctor[parquet]'") from error
    return pa, pq


def _flat(value: JsonValue) -> JsonValue:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def write_inspect(store: Store, folder: Path) -> str:
    """Write a log for each pair with a trial that is over; returns how many trials and logs there are."""
    epochs = store.manifest().read_plan().epochs
    trials = logs = 0
    made_folder(folder)
    for pair in exported_pairs(store):
        if pair.result.scored or pair.result.faults:
            trials += _write_log(store, pair, folder / _log_name(pair), epochs)
            logs += 1
    return f"{counted(trials, 'trial')} in {counted(logs, 'file')}"


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
        summaries.seek(0)
        with log.open("summaries.json", "w", force_zip64=True) as member:
            shutil.copyfileobj(summaries, member)
        log.writestr("header.json", encoded(inspect_log.header(pair, begun, ended, metered=metered)))
    return count


def encoded(value: JsonValue) -> bytes:
    """The value as JSON, in which half a surrogate pair stands escaped."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(
        errors="backslashreplace"
    )


INSPECT = TrialExport("Inspect's logs", "inspect", is_folder=True, write=write_inspect, of_store=True)


def exports() -> dict[str, TrialExport]:
    """All forms that are installed, by name."""
    return {"inspect": INSPECT, **{entry.name: entry.load() for entry in entry_points(EXPORTS)}}


def separate_exports() -> list[str]:
    """The names of the forms that our own packages offer, installed or not."""
    return [name for offered in SEPARATE.values() for name in offered.get(EXPORTS, ())]
