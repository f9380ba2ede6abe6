"""Other people's programs, each in a virtual environment of its own that `make interop` makes."""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.pace import slowly

DRIVERS = Path(__file__).parent / "drivers"


def interpreter(name: str) -> str:
    """The Python of a counterpart's virtual environment; skips the test where there is none."""
    variable = f"PROCTOR_INTEROP_{name.upper()}"
    if not (python := os.environ.get(variable)):
        reason = os.environ.get(f"{variable}_MISSING") or f"{variable} is not set; run: make interop"
        pytest.skip(f"{name}: {reason}")
    return python


def run(name: str, driver: str, *arguments: object, **extra: str) -> list[Any]:
    """Runs a script of `drivers` with a counterpart's Python; returns the JSON values that it prints, one a line."""
    command = [interpreter(name), str(DRIVERS / driver), *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=slowly(120), check=False, env=environment(extra)
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    """The environment for a counterpart: ours without our own packages' path."""
    return {**{name: value for name, value in os.environ.items() if name != "PYTHONPATH"}, **extra}
