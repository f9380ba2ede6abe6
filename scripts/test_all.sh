#!/usr/bin/env bash
# What `make test` leaves out, part by part; a part that fails stops none of the others. The last parts run beside
# `make containers`, which leaves a processor idle for most of its time; their output follows it.
. "$(dirname "$0")/lib.sh"
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

# The seconds that this machine's processors have been busy and idle.
processors() { awk -v hz="$(getconf CLK_TCK)" '/^cpu / { idle = $5 + $6; print ($2 + $3 + $4 + $7 + $8) / hz, idle / hz }' /proc/stat; }

play() {
    local began=$SECONDS before
    before=$(processors)
    "$@" || echo "$*" >>"$place/failed"
    echo "$*" >>"$place/played"
    printf '== %s took %d s' "$*" $((SECONDS - began))
    awk '{ busy = $3 - $1; printf "; processors were busy for %d s, idle for %d s\n", busy, $4 - $2 }' <<<"$before $(processors)"
}

play make thorough
play make faults
play make real-model
export PROCTOR_REAL_MODEL=${PROCTOR_REAL_MODEL:-$STATE/real-model/bin/python} # for the tests of SLURM
{
    play make pythons
    play make interop
    play make docs
    play nice "$VENV/bin/python" -m pytest -n "$(nproc)" --dist worksteal --no-loadscope-reorder tests/simulation
} >"$place/beside" 2>&1 &
play make containers
wait
cat "$place/beside"
failed=$(paste -sd, "$place/failed" 2>/dev/null) || true
say "make test-all: $(wc -l <"$place/played") parts in $SECONDS s; failed: ${failed:-none}"
[[ -z $failed ]]
