#!/usr/bin/env bash
# Installs Proctor with the extra `all` for each Python from 3.11 that this machine has, imports every module there, and
# says which Pythons these were. In CI (CI is set) fewer than two are a failure. The classifiers of pyproject.toml name
# no other versions than those tested here.
. "$(dirname "$0")/lib.sh"
PLACE=$(mktemp -d)
trap 'rm -rf "$PLACE"' EXIT

# Prints the Pythons of this machine, one for each minor version: those on PATH first, then pyenv's.
pythons() {
    local minor python
    for minor in $(seq 11 30); do
        for python in "python3.$minor" /usr/bin/python3."$minor" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3."$minor".*/bin/python; do
            if "$python" -c "import sys; sys.exit(sys.version_info[:2] != (3, $minor))" 2>/dev/null; then
                echo "$python"
                break
            fi
        done
    done
}

mapfile -t found < <(pythons)
tested=()
for PYTHON in "${found[@]}"; do
    VENV=$PLACE/venv-${#tested[@]}
    create_venv
    "$VENV/bin/python" -m pip install --quiet -c requirements.lock ".[all]"
    (cd "$PLACE" && "$VENV/bin/python" -P "$ROOT/scripts/import_all.py")
    tested+=("$("$PYTHON" -c 'import platform; print(platform.python_version())')")
    rm -rf "$VENV"
done
say "every module was imported on Python ${tested[*]}"
if ((${#tested[@]} < 2)); then
    say "that is fewer than two: install another Python of version 3.11 or newer"
    [[ -z ${CI:-} ]]
fi
