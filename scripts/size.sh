#!/usr/bin/env bash
# Prints what a plain installation weighs, without pip, and fails where its files are 60 MB or more.
. "$(dirname "$0")/lib.sh"
PLACE=$(mktemp -d)
trap 'rm -rf "$PLACE"' EXIT
VENV=$PLACE/venv
create_venv
"$VENV/bin/python" -m pip install --quiet --no-compile -c requirements.lock --target "$PLACE/installed" .
"$VENV/bin/python" - "$PLACE/installed" <<'PROGRAM'
import compileall
import pathlib
import sys

def megabytes() -> float:
    return sum(file.stat().st_size for file in pathlib.Path(sys.argv[1]).rglob("*") if file.is_file()) / 1e6

files = megabytes()
compileall.compile_dir(sys.argv[1], quiet=2)
print(f"== a plain installation is {files:.1f} MB of files, and {megabytes() - files:.1f} MB of bytecode made from them")
sys.exit(files >= 60)
PROGRAM
