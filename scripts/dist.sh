#!/usr/bin/env bash
# The sdist and the wheel of this checkout, in dist/. `make images` builds the images of the same version.
. "$(dirname "$0")/lib.sh"
ensure_venv "${EXTRAS:-dev}"
rm -rf dist
"$VENV/bin/python" -m hatchling build --directory dist
