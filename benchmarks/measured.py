"""`python -m benchmarks.measured MODULE ARGUMENTS` runs a module, then tells what it used at the end of standard error.

That is its CPU in seconds and its own peak of memory in kB: what the kernel tells its parent includes the parent's
memory from before the exec.
"""

import atexit
import runpy
import sys
import time
from pathlib import Path


def tell() -> None:
    """Of this process, from its start."""
    peak = Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]
    print(time.process_time(), peak, file=sys.stderr)


if __name__ == "__main__":
    atexit.register(tell)
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__")
