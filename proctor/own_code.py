"""Which code is a world's or an agent's: neither Python's, nor an installed package's, nor Proctor's."""

import logging
import os
import sysconfig
import traceback
from pathlib import Path

log = logging.getLogger(__name__)

OURS = ("agent_server", "eval_client", "proctor", "task_server")
_LIBRARIES = (
    "<frozen",
    *(sysconfig.get_path(kind) + os.sep for kind in ("stdlib", "platstdlib")),
    *(str(Path(__file__).parents[1] / name) + os.sep for name in OURS),
)
_said: set[str] = set()


def is_library(file: str) -> bool:
    """Whether a file holds no code of a world or an agent."""
    return file.startswith(_LIBRARIES) or "site-packages" in file


def log_traceback(what: str, error: BaseException) -> None:
    """Log, once for each place, where a world or an agent raised: the frames in its own files, innermost last."""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if not is_library(each.filename)]
    lines = "".join(f"\n  {each.filename}:{each.lineno} in {each.name}: {each.line}" for each in frames)
    if lines and lines not in _said:
        _said.add(lines)
        log.error("%s: %s%s", what, "".join(traceback.format_exception_only(error)).strip(), lines)
