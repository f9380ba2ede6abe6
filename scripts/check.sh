#!/usr/bin/env bash
# ruff, mypy, the import contracts and the sizes of rooms.
. "$(dirname "$0")/lib.sh"
ensure_venv "${EXTRAS:-dev}"
say "ruff"
"$VENV/bin/ruff" check .
"$VENV/bin/ruff" format --check .
say "mypy"
"$VENV/bin/python" -m mypy
say "import contracts"
"$VENV/bin/lint-imports" --no-cache
say "sizes of rooms"
"$VENV/bin/python" -m benchmarks.size_of_code
