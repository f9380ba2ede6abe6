#!/usr/bin/env bash
# Writes requirements.lock: the newest version of everything that pyproject.toml allows and the tests need.
. "$(dirname "$0")/lib.sh"
VENV=$(mktemp -d)
trap 'rm -rf "$VENV"' EXIT
create_venv
say "newest packages"
"$VENV/bin/python" -m pip install --quiet -e '.[dev]'
{
    echo "# Made by \`make lock\`. Constraints for pip: pip install -c requirements.lock -e '.[dev]'"
    "$VENV/bin/python" -m pip freeze --exclude-editable |
        sed -e "/^uvloop==/s/\$/; platform_system != 'Windows'/"
} >"$VENV/lock"
cp "$VENV/lock" requirements.lock
say "$(grep -c == requirements.lock) packages in requirements.lock; now run: make test"
