"""Writes a run's trials as Harbor and as trainers read them; each file appears complete or not at all.

A few trials are in memory at once, whatever the run's size. All raise StoreError and DatabaseError.
"""

from pathlib import Path
from typing import Any, get_args
from urllib.parse import quote

import click

from eval_client.report.exports import write
from eval_client.report.exports.trials import exported_pairs
from eval_client.store.connection import StoreError
from eval_client.store.store import Store
from eval_client.store.trials.trajectory import read_trajectories
from proctor.plugins import TrialExport
from proctor.tables.table import counted
from proctor.types import FinishReason
from proctor_bridges.exports import atif, sft

ROWS = 100
"""Conversations that are written to a Parquet file at once."""


def write_atif(store: Store, folder: Path) -> tuple[int, int]:
    """Write TRIAL/CONVERSATION/trajectory.json for all trials that are over; returns the numbers of both.

    So many small files are not each forced to the disk.
    """
    trials = files = 0
    write.made_folder(folder)
    for pair in exported_pairs(store):
        for trial in read_trajectories(store, pair.result.agent, pair.result.task):
            trials += 1
            for name, trajectory in atif.trajectories(trial, pair).items():
                path = write.made_folder(folder / str(trial.trial) / _folder_name(name)) / "trajectory.json"
                with write.written_whole(path, durable=False) as partial:
                    partial.write_bytes(write.encoded(trajectory))
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
    with write.written_whole(path) as partial:
        if path.suffix == ".parquet":
            return write.parquet_rows(rows, partial, _parquet_types(), ROWS)
        return write.write_lines(write.json_lines(rows), partial)


def _folder_name(conversation: str) -> str:
    """The name of a conversation's folder: `..` is no name of a folder in the trial's."""
    safe = quote(conversation, safe="")
    return "%2E" + safe[1:] if safe.startswith(".") else safe


def _parquet_types() -> dict[str, Any]:
    """The types of columns that are no plain text or number."""
    pa, _ = write.pyarrow()
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


def _atif(store: Store, folder: Path) -> str:
    trials, files = write_atif(store, folder)
    return f"{counted(trials, 'trial')} in {counted(files, 'file')}"


def _sft(
    store: Store, path: Path, min_score: float | None, reason: tuple[str, ...], arguments: sft.Arguments | None
) -> str:
    if arguments == "object" and path.suffix == ".parquet":
        raise StoreError(
            "--arguments object: a column of Parquet has one type; write to a .jsonl file, or leave it out"
        )
    reasons = frozenset(map(FinishReason, reason))
    choice = sft.RowChoice(min_score=min_score, reasons=reasons, arguments=arguments or "text")
    return f"{write_sft(store, path, choice)} conversations"


ATIF = TrialExport("Harbor's trajectories", "atif", is_folder=True, write=_atif, of_store=True)
SFT = TrialExport(
    "conversations to train on, as Parquet where the file's name ends in .parquet",
    "sft.jsonl",
    is_folder=False,
    write=_sft,
    of_store=True,
    options=(
        click.Option(["--min-score"], type=click.FloatRange(0, 1), help="sft: only trials with at least this score."),
        click.Option(
            ["--reason"],
            multiple=True,
            type=click.Choice([reason.value for reason in FinishReason]),
            help="sft: only trials that ended so; may be repeated. Default: all but faults.",
        ),
        click.Option(
            ["--arguments"],
            type=click.Choice(get_args(sft.Arguments)),
            help="sft: the arguments of calls as JSON text, the default, or as objects.",
        ),
    ),
)
