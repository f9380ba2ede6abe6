#!/usr/bin/env bash
# Sets up what the tests need and runs them: `test.sh [FOLDER or other pytest argument ...]`. Without arguments it runs what
# `make test` does, the tests that are not `thorough` (see tests/conftest.py), and beside them ruff, mypy and the contracts.
# JOBS=n runs the tests in n processes, by default five for two cores, since tests wait for half of their time, and three
# for `make test`, whose tests wait less; DIST is the --dist of pytest-xdist, loadfile by default.
. "$(dirname "$0")/lib.sh"
. scripts/system.sh
trap put_away EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

exec 9<"$ROOT"
flock -n 9 || { say "another make test is running here; waiting for it"; flock -w 1800 9 || die "it does not end"; }
mkdir -p "$STATE"
export EXTRAS=dev
system=
if can_install; then
    python_is_whole || apt_install python3-venv
    [[ $* == tests/simulation ]] || system=1 # that needs Python alone
    if (($#)); then
        EXTRAS=dev,ray,textworld # what is too heavy for everybody's development
        PACKAGES+=("${MORE_PACKAGES[@]}")
    fi
fi
if [[ -n $system ]]; then
    ensure_system 9>&- &
    jobs_begun+=($!)
fi
ensure_venv "$EXTRAS"
JOBS=${JOBS:-$(($(nproc) * ($# ? 5 : 3) / 2))}
if ((JOBS > 1)) && [[ ! -d tests/unit/house/__pycache__ ]]; then # one compiles all modules; else each process would
    "$VENV/bin/python" -m pytest --collect-only >/dev/null 2>&1 9>&- &
    compiling=$!
    jobs_begun+=("$compiling")
fi
if [[ -n $system ]]; then
    wait "${jobs_begun[0]}" || say "not all of the system could be set up; going on without"
    ensure_docker
    if [[ $* == *deployments* ]]; then
        "$VENV/bin/python" -c 'from tests.deployments.docker_images import fetch_wheels; fetch_wheels()' 9>&- &
        fetching=$!
        jobs_begun+=("$fetching")
        ensure_base_image
        wait "$fetching" || say "the wheels of Proctor's own images can't be fetched; the tests will say why"
    fi
fi

check=
if (($# == 0)); then
    say "ruff, mypy and the import contracts run beside the tests"
    scripts/check.sh >"$STATE/check.log" 2>&1 9>&- &
    check=$!
    jobs_begun+=("$check")
    set -- -m "not thorough"
fi
((JOBS == 1)) || set -- -n "$JOBS" --dist "${DIST:-loadfile}" --no-loadscope-reorder "$@"
[[ -z ${compiling-} ]] || wait "$compiling" || true
say "set-up took $SECONDS s; pytest $*"
begun=$SECONDS status=0
export PROCTOR_TEST_PLAYED=$STATE/played # tests/conftest.py writes there what was played
rm -f "$PROCTOR_TEST_PLAYED"
"$VENV/bin/python" -m pytest "$@" 9>&- || status=$?
checked=
if [[ -n $check ]]; then
    checked="; ruff, mypy, contracts and sizes hold"
    wait "$check" || { cat "$STATE/check.log"; status=1 checked="; ruff, mypy, contracts or sizes do not hold, see above"; }
fi
say "$(cat "$PROCTOR_TEST_PLAYED" 2>/dev/null || echo "the tests did not end")$checked; $((SECONDS - begun)) s"
exit "$status"
