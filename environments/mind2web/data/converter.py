"""Turns the official score file (a pickle) into JSON lines, without ever running what a pickle may hold."""

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from pydantic import BaseModel, ConfigDict, ValidationError

from environments.mind2web.data.records import Ranks, ScoreRecord, Scores

_BROKEN = (
    pickle.UnpicklingError,
    EOFError,
    LookupError,
    AttributeError,
    TypeError,
    MemoryError,
    OverflowError,
)
"""What the unpickler raises for bytes that are no pickle."""


class _Official(BaseModel):
    """`scores_all_data.pkl`: by step, then by candidate."""

    model_config = ConfigDict(strict=True)

    scores: dict[str, Scores]
    ranks: dict[str, Ranks]


class _PlainUnpickler(pickle.Unpickler):
    """Builds dicts, lists, texts and numbers; refuses everything that has a class or a function of its own."""

    def find_class(self, module: str, name: str) -> object:
        raise ValueError(f"holds {module}.{name}; a score file has dicts, texts and numbers only")

    def persistent_load(self, pid: object) -> object:
        raise ValueError("refers to objects outside itself; a score file has dicts, texts and numbers only")


def convert(path: Path) -> Iterator[str]:
    """The lines of the JSON-lines file, one a step. Raises ValueError, naming a foreign class, or what is wrong."""
    try:
        with path.open("rb") as file:
            official = _Official.model_validate(_unpickled(file))
        if alone := official.scores.keys() ^ official.ranks.keys():
            raise ValueError(f"{min(alone)}: stands in one of scores and ranks only; give scores_all_data.pkl")
        for key, scores in official.scores.items():
            yield ScoreRecord(key=key, scores=scores, ranks=official.ranks[key]).model_dump_json()
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"])) or "the file"
        raise ValueError(f"{path}: {where}: {problem['msg']}; give scores_all_data.pkl") from error
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error


def _unpickled(file: BinaryIO) -> object:
    try:
        return _PlainUnpickler(file).load()
    except _BROKEN as error:
        raise ValueError(f"is no pickle that can be read: {error}") from error
