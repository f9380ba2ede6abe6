# Every target does its own set-up, says what it does, and can be run again.
# VENV=folder puts the virtual environment elsewhere, PYTHON=program chooses the interpreter (3.11 or newer), and
# JOBS=n runs tests in n processes (by default three to six for two cores: tests wait for half of their time, or for most).

.DEFAULT_GOAL := demo
.PHONY: help demo test test-all docs quick thorough faults fuzz simulation deployments containers check bench bench-rivals lock pythons interop real-model gallery size size-of-code dist images clean

help:   ; @sed -n "s/^\([a-z-]*\): *; @.*  *# \(.*\)/\1: \2/p" Makefile | awk -F": " '{printf "%-14s%s\n", $$1, substr($$0, length($$1) + 3)}'  # this list
demo:   ; @scripts/demo.sh   # a small evaluation, no key and no Docker needed
test:   ; @scripts/test.sh   # what a change can break, with ruff, mypy and import contracts; as root on Debian also installs what it needs
test-all: ; @scripts/test_all.sh # all that `make test` leaves out: whole public data, all databases, faults, simulation, containers, others' programs
docs:   ; @scripts/docs.sh   # the site of docs/ with every link checked: .proctor-test/site/index.html
quick:  ; @scripts/quick.sh  # the product's unit tests alone, without the thorough ones, for whoever changes one thing
thorough: ; @JOBS=$${JOBS:-$$(($$(nproc) * 3))} PROCTOR_TEST_BUSY=1 scripts/test.sh -m thorough  # the first part of test-all: its tests mostly wait
faults: ; @JOBS=$${JOBS:-$$(($$(nproc) * 3))} PROCTOR_TEST_BUSY=1 DIST=worksteal scripts/test.sh tests/faults  # the fault suite: kills, cuts, full disks; it mostly waits
fuzz:   ; @PROCTOR_FUZZ_EXAMPLES=2300 PROCTOR_FUZZ_REPLIES=100000 DIST=worksteal scripts/test.sh tests/faults/test_fuzz.py tests/faults/test_fuzz_calls.py  # 100,000 requests to all servers, as many calls to all environments
simulation:  ; @JOBS=$${JOBS:-$$(nproc)} DIST=worksteal scripts/test.sh tests/simulation  # 2,000 simulated histories, and bugs they must notice
deployments: ; @scripts/test.sh tests/deployments  # images, compose, Swarm, Ray, for real: some twenty minutes
containers:  ; @JOBS=$${JOBS:-2} scripts/test.sh $(addprefix tests/deployments/test_,images.py compose_projects.py compose.py runsc.py) tests/deployments/slurm  # of deployments what CI plays too
check:  ; @scripts/check.sh  # ruff, mypy, the import contracts and the sizes of rooms
bench:  ; @scripts/bench.sh  # re-measures what the README claims: benchmarks/RESULTS.md
bench-rivals: ; @scripts/bench.sh --rivals  # what a turn costs in Inspect, beside ours
lock:   ; @scripts/lock.sh   # requirements.lock anew, from the newest versions that pyproject.toml allows
pythons: ; @scripts/pythons.sh  # installs and imports everything on each Python from 3.11 that this machine has
interop: ; @scripts/interop.sh  # against Inspect, AgentRL, OpenEnv, Harbor, Every Eval Ever and LiteLLM, each in a virtual environment of its own
real-model: ; @scripts/real_model.sh  # every world with a small model behind llama.cpp's server: 100 MB, three minutes
gallery: ; @scripts/gallery.sh  # docs/gallery and the docs' pictures anew, from a demo and a small real model: five minutes
size:   ; @scripts/size.sh   # what a plain installation weighs
size-of-code: ; @$${PYTHON:-python3} -m benchmarks.size_of_code  # lines of each room, and of the spine, against budgets.toml
dist:   ; @scripts/dist.sh   # the sdists and wheels of this version in dist/, each installed alone, playing the demo, its types checked
images: ; @scripts/images.sh # the images of docker/compose.yaml, tagged with this version
clean:  ; @scripts/clean.sh  # all that the others made
