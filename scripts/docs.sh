#!/usr/bin/env bash
# Builds the site of docs/ into .proctor-test/site; writes the references that are made from the code anew. Links that lead nowhere are named with file and line, and end it with exit code 1.
. "$(dirname "$0")/lib.sh"
ensure_venv "${EXTRAS:-dev}"
say "references and links"
"$VENV/bin/python" -m tools.docs
say "site"
"$VENV/bin/zensical" build --clean --strict
say "built: $STATE/site/index.html"
