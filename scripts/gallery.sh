#!/usr/bin/env bash
# Makes docs/gallery and the pictures of the docs anew, from runs of the demo and of the small model of `make real-model`.
. "$(dirname "$0")/lib.sh"
. scripts/system.sh
ensure_venv dev
ensure_real_model
exec "$VENV/bin/python" -m scripts.gallery
