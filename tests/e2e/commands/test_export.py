"""`proctor export`: what it writes where, and what it refuses."""

import json
from pathlib import Path

import pytest

from tests.e2e.proctor import proctor
from tests.exported_run import RUN, write_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("export")
    write_run(made / "runs").engine.dispose()
    (made / "file").write_text("")
    return made


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--as inspect --what turns", "--what is for jsonl, csv, parquet; inspect holds whole trials"),
        ("--as jsonl --min-score 0.5", "--min-score is for --as sft, not for jsonl"),
        ("--as atif --reason completed", "--reason is for --as sft, not for atif"),
        ("--as inspect --arguments object", "--arguments is for --as sft, not for inspect"),
        ("--as atif --to file", "--to file: a file; atif writes several, name a folder"),
        ("--as sft --to runs", "--to runs: a folder; sft is one file, name that"),
        ("--as jsonl --to runs", "--to runs: a folder; jsonl is one file, name that"),
        ("--as sft --arguments object --to x.parquet", "--arguments object: a column of Parquet has one type"),
        ("--as sft --min-score 2", "2.0 is not in the range 0<=x<=1"),
        ("--as sft --reason won", "'won' is not one of 'completed'"),
        ("--as eval", "'eval' is not one of 'jsonl'"),
        ("--as sft --to no/where.jsonl", "no/where.jsonl: can't be written: No such file or directory; choose"),
        ("--as atif --to file/in", "file/in: can't be made: Not a directory; choose another place with --to"),
    ],
)
def test_an_option_that_does_not_fit_is_one_error(folder: Path, options: str, words: str) -> None:
    done = proctor("export", *options.split(), cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = [line for line in done.stderr.splitlines() if words in line]
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["file", "runs"], line


def test_each_format_says_what_it_wrote_into_the_runs_folder(folder: Path) -> None:
    for form, words in (
        ("inspect", "48 trials in 4 files: runs/made/inspect"),
        ("atif", "48 trials in 88 files: runs/made/atif"),
        ("sft", "64 conversations: runs/made/sft.jsonl"),
        ("jsonl", "56 trials: runs/made/trials.jsonl"),
    ):
        done = proctor("export", RUN, "--as", form, cwd=folder)
        assert (done.returncode, done.stdout.strip(), done.stderr) == (0, words, "")
    assert {path.name for path in (folder / "runs" / RUN).iterdir()} >= {"inspect", "atif", "sft.jsonl"}
    assert json.loads((folder / "runs" / RUN / "atif" / "0" / "main" / "trajectory.json").read_text())["steps"]
