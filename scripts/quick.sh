#!/usr/bin/env bash
# The unit tests of the product, for whoever changes one thing: without those marked `thorough` and the rules of the
# house. What needs a part this machine lacks is skipped.
. "$(dirname "$0")/lib.sh"
ensure_venv dev
exec "$VENV/bin/python" -m pytest -n "${JOBS:-$(nproc)}" --dist worksteal --no-loadscope-reorder -m "not thorough" --ignore tests/unit/house "$@" tests/unit
