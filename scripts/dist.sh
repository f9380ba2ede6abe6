#!/usr/bin/env bash
# The sdist and the wheel of this checkout, in dist/. Images of the same version are built by docker/README.md.
. "$(dirname "$0")/lib.sh"
ensure_venv "${EXTRAS:-dev}"
rm -rf dist
"$VENV/bin/python" -m hatchling build --directory dist
