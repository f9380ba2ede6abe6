#!/usr/bin/env bash
# Measures what Proctor claims, and writes benchmarks/RESULTS.md. Arguments: see benchmarks/results.py.
# `bench.sh --rivals` installs Inspect in a virtual environment of its own and prints benchmarks/rivals.py alone.
. "$(dirname "$0")/lib.sh"
. scripts/system.sh
trap put_away EXIT
mkdir -p "$STATE"
ensure_venv dev
if [[ ${1:-} == --rivals ]]; then COUNTERPARTS=inspect scripts/interop.sh --install; fi
if [[ -x $STATE/interop/inspect/bin/python ]]; then
    export PROCTOR_INTEROP_INSPECT=${PROCTOR_INTEROP_INSPECT:-$STATE/interop/inspect/bin/python}
fi
if [[ ${1:-} == --rivals ]]; then exec "$VENV/bin/python" -m benchmarks.rivals "${@:2}"; fi
say "benchmarks (about half an hour; parts that this machine lacks are left out)"
if can_install; then ensure_docker; fi
"$VENV/bin/python" -m benchmarks.results "$@"
