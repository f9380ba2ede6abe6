#!/usr/bin/env bash
# The sdists and the wheels of this checkout, in dist/: of Proctor, and of each package in packages/. `make images` builds the images of the same version.
. "$(dirname "$0")/lib.sh"
ensure_venv "${EXTRAS:-dev}"
rm -rf dist
for place in . packages/*/; do
    (cd "$place" && "$VENV/bin/python" -m hatchling build --directory "$ROOT/dist")
done
