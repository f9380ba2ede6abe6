#!/usr/bin/env bash
# Plays tests/real_model: llama.cpp's server with a small model, in a virtual environment of its own (100 MB).
# `real_model.sh [pytest argument ...]`; PROCTOR_REAL_MODEL=PYTHON takes an interpreter that has its packages already.
. "$(dirname "$0")/lib.sh"
. scripts/system.sh

ensure_real_model
JOBS=1 exec scripts/test.sh tests/real_model "$@" # which also sets Docker up, for `os`
