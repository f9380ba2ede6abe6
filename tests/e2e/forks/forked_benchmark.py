"""A benchmark whose processes are forked from its own: `python -m tests.e2e.forks.forked_benchmark MODULE OPTIONS`.

To import a client takes most of a quick run. A forked process is a child as a started one is: it is waited for, it has
its own CPU time and standard streams. It costs less and holds more memory than one that was started, so the figures
are not those of the benchmark.
"""

import atexit
import gc
import os
import runpy
import subprocess
import sys
import tempfile
import threading
import traceback
import weakref
from collections.abc import Sequence
from typing import Any, NoReturn

from benchmarks.world import CLI
from tests.e2e.forks.forker import Request, become, begin

START = subprocess.Popen


class ForkedChild(START[Any]):
    """A child process; one of ours by `python -m` is forked, any other started."""

    def _execute_child(self, arguments: Any, *options: Any) -> None:
        folder, environment, pipes = options[4], options[5], options[9:15]
        if not isinstance(arguments, list) or arguments[:2] != CLI[:2]:
            super()._execute_child(arguments, *options)  # type: ignore[misc]  # no stub has it
            return
        given = arguments[len(CLI) :] if arguments[: len(CLI)] == CLI else arguments[1:]
        request = Request(given, os.fspath(folder or os.getcwd()), os.environ if environment is None else environment)
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            _run(request, (pipes[0], pipes[3], pipes[5]))
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]  # as Popen does


def _run(request: Request, streams: Sequence[int]) -> NoReturn:
    """The forked process to its end, which leaves to its parent what that has begun."""
    code = 1
    try:
        gc.freeze()
        weakref.finalize._registry.clear()  # type: ignore[attr-defined]  # the parent's temporary folders
        become(request, [os.dup(stream if stream >= 0 else number) for number, stream in enumerate(streams)])
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        subprocess.Popen, tempfile.tempdir = START, None  # type: ignore[misc]  # a class is replaced
        code = _ended()
        threading._shutdown()  # type: ignore[attr-defined]  # as Python does at its end
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _ended() -> int:
    """The exit code of what the arguments ask for."""
    if sys.argv[1] == "-m":
        sys.modules.pop(sys.argv[2], None)
    try:
        begin()
    except SystemExit as ending:
        if isinstance(ending.code, str):
            print(ending.code, file=sys.stderr)
        return ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    subprocess.Popen = ForkedChild  # type: ignore[misc]  # a class is replaced
    sys.argv[:] = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
