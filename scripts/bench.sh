#!/usr/bin/env bash
# Measures what Proctor claims, and writes benchmarks/RESULTS.md. Arguments: see benchmarks/results.py.
. "$(dirname "$0")/lib.sh"
ensure_venv dev
say "benchmarks (about half an hour; parts that this machine lacks are left out)"
exec "$VENV/bin/python" -m benchmarks.results "$@"
