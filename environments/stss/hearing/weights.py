"""The weights of clues that are learned by `python -m tools.hearing`: each a file beside the module that uses it."""

import json
import math
from collections.abc import Mapping, Set
from functools import cache
from pathlib import Path
from typing import Any


@cache
def stored(file: Path) -> Any:
    """What a file holds; read once."""
    return json.loads(file.read_text(encoding="utf-8"))


def likelihood(weights: Mapping[str, int], found: Set[str]) -> float:
    """The probability that the clues `found` speak for, by their weights in hundredths."""
    return 1 / (1 + math.exp(-sum([weights[clue] for clue in found if clue in weights]) / 100))
