#!/usr/bin/env bash
# Writes requirements.lock: the newest version of everything that pyproject.toml allows and the tests need.
. "$(dirname "$0")/lib.sh"
VENV=$(mktemp -d)
trap 'rm -rf "$VENV"' EXIT
create_venv
say "newest packages"
"$VENV/bin/python" -m pip install --quiet -e ./packages/bridges -e '.[dev]'
"$VENV/bin/python" -m pip freeze --all --exclude-editable | grep -v '^pip==' >"$VENV/pins"
say "what the extras ray and textworld add"  # looked up only: they are heavy, and must hold back nothing of the above
"$VENV/bin/python" -m pip install --quiet --dry-run --report "$VENV/report" -c "$VENV/pins" ./packages/ray '.[ray,textworld]'
"$VENV/bin/python" - "$VENV/report" >>"$VENV/pins" <<'END'
import json, sys
for found in json.load(open(sys.argv[1], encoding="utf-8"))["install"]:
    if "dir_info" not in found["download_info"]:  # our own
        print(f"{found['metadata']['name']}=={found['metadata']['version']}")
END
{
    echo "# Made by \`make lock\`. Constraints for pip: pip install -c requirements.lock -e '.[dev]'"
    LC_ALL=C sort -f "$VENV/pins" | sed -e "/^uvloop==/s/\$/; platform_system != 'Windows'/"
} >"$VENV/lock"
cp "$VENV/lock" requirements.lock
say "$(grep -c == requirements.lock) packages in requirements.lock; now run: make test"
