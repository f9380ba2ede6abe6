#!/usr/bin/env bash
# Unit and conformance tests, for whoever changes one thing, without those marked `thorough`. What needs a part this
# machine lacks is skipped.
. "$(dirname "$0")/lib.sh"
ensure_venv dev
exec "$VENV/bin/python" -m pytest -n "${JOBS:-$(($(nproc) * 3 / 2))}" --dist worksteal --no-loadscope-reorder -m "not thorough" "$@" tests/unit tests/conformance
