#!/usr/bin/env bash
# Installs Proctor with the extras `all`, `bridges` and `slurm` for each Python from 3.11 that this machine has, imports
# every module there, and says which Pythons these were. In CI (CI is set) fewer than two are a failure. The classifiers of pyproject.toml name
# no other versions than those tested here.
. "$(dirname "$0")/lib.sh"
PLACE=$(mktemp -d)
trap 'rm -rf "$PLACE"' EXIT

mapfile -t found < <(find_pythons 11)
tested=()
for PYTHON in "${found[@]}"; do
    VENV=$PLACE/venv-${#tested[@]}
    if [[ -z ${INSTALLER:-} ]]; then
        create_venv
        INSTALLER=$VENV # its pip or uv installs for the others too
    else
        "$PYTHON" -m venv --without-pip "$VENV"
    fi
    venv_install -c requirements.lock ".[all,bridges,slurm]" ./packages/bridges ./packages/slurm
    (cd "$PLACE" && "$VENV/bin/python" -P "$ROOT/scripts/import_all.py")
    tested+=("$("$PYTHON" -c 'import platform; print(platform.python_version())')")
done
say "every module was imported on Python ${tested[*]}"
if ((${#tested[@]} < 2)); then
    say "that is fewer than two: install another Python of version 3.11 or newer"
    [[ -z ${CI:-} ]]
fi
