"""Converts the official score file (a pickle) to JSON lines without running code that a pickle may hold."""

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from pydantic import BaseModel, ConfigDict, ValidationError

from environments.mind2web.data.records import Ranks, ScoreRecord, Scores
from proctor.config.wording import first_problem

_BROKEN = (
    pickle.UnpicklingError,
    EOFError,
    LookupError,
    AttributeError,
    TypeError,
    MemoryError,
    OverflowError,
)
"""Exceptions of the unpickler for bytes that are not a pickle."""


class _Official(BaseModel):
    """Content of `scores_all_data.pkl`, by step, then by candidate."""

    model_config = ConfigDict(strict=True)

    scores: dict[str, Scores]
    ranks: dict[str, Ranks]


class _PlainUnpickler(pickle.Unpickler):
    """Builds dicts, lists, strings and numbers; raises ValueError for any class or function."""

    def find_class(self, module: str, name: str) -> object:
        raise ValueError(f"holds {module}.{name}; a score file has dicts, texts and numbers only")

    def persistent_load(self, pid: object) -> object:
        raise ValueError("refers to objects outside itself; a score file has dicts, texts and numbers only")


def convert(path: Path) -> Iterator[str]:
    """The lines of the JSON-lines file, one per step. Raises ValueError with the file and the problem."""
    try:
        with path.open("rb") as file:
            official = _Official.model_validate(_unpickled(file))
        if alone := official.scores.keys() ^ official.ranks.keys():
            raise ValueError(f"{min(alone)}: is in only one of scores and ranks; give scores_all_data.pkl")
        for key, scores in official.scores.items():
            yield ScoreRecord(key=key, scores=scores, ranks=official.ranks[key]).model_dump_json()
    except ValidationError as error:
        raise ValueError(f"{path}: {first_problem(error)}; give scores_all_data.pkl") from error
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error


def _unpickled(file: BinaryIO) -> object:
    try:
        return _PlainUnpickler(file).load()
    except _BROKEN as error:
        raise ValueError(f"is not a readable pickle: {error}") from error
