#!/usr/bin/env bash
# Sets up what the tests need and runs everything: ruff, mypy, import contracts, pytest. Arguments go to pytest;
# JOBS=2 runs two files at a time: faster, but a few tests have deadlines that a busy machine misses.
. "$(dirname "$0")/lib.sh"
. scripts/system.sh
trap put_away EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

exec 9<"$ROOT"
flock -n 9 || { say "another make test is running here; waiting for it"; flock -w 1800 9 || die "it does not end"; }
mkdir -p "$STATE"
if can_install; then install_packages; fi
ensure_venv dev
if can_install; then ensure_venv dev,ray,textworld; fi  # what is too heavy for everybody's development
scripts/check.sh
if can_install; then ensure_docker; fi
if can_install && [[ $* == *deployments* ]]; then ensure_base_image; fi
((${JOBS:-1} == 1)) || set -- -n "$JOBS" --dist loadfile "$@"
say "pytest $*"
"$VENV/bin/python" -m pytest "$@" 9>&-
