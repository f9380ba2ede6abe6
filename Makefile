# Every target does its own set-up, says what it does, and can be run again.
# VENV=folder puts the virtual environment elsewhere, PYTHON=program chooses the interpreter (3.11 or newer).

.PHONY: demo test faults deployments check bench lock size clean

demo:   ; @scripts/demo.sh   # a small evaluation, no key and no Docker needed
test:   ; @scripts/test.sh   # all but most of the fault suite and the deployments; as root on Debian also installs what the tests need
faults: ; @scripts/test.sh tests/faults  # the fault suite: some ten minutes of kills, cuts and full disks
deployments: ; @scripts/test.sh tests/deployments  # images, compose, Swarm, Ray, for real: some twenty minutes
check:  ; @scripts/check.sh  # ruff, mypy and the import contracts
bench:  ; @scripts/bench.sh  # re-measures what the README claims: benchmarks/RESULTS.md
lock:   ; @scripts/lock.sh   # requirements.lock anew, from the newest versions that pyproject.toml allows
size:   ; @scripts/size.sh   # what a plain installation weighs
clean:  ; @scripts/clean.sh  # all that the others made
