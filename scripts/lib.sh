# What the scripts share: where things are, how to speak, and the virtual environment. Sourced by bash.

set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
STATE=$ROOT/.proctor-test
VENV=${VENV:-$ROOT/.venv}
cd "$ROOT"
case $VENV in /*) ;; *) VENV=$ROOT/$VENV ;; esac
unset PYTHONDONTWRITEBYTECODE # with it every process of the tests would compile all of our modules anew
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore

say() { printf '== %s\n' "$*"; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 2; }

# Prints a Python of version 3.11 or newer.
find_python() {
    local name
    for name in ${PYTHON:-python3 python3.11 python3.12 python3.13 python3.14 /usr/bin/python3}; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
    die "no Python 3.11 or newer found; install it, or name it: PYTHON=/path/to/python make ..."
}

# find_pythons MINOR: the Pythons of this machine, one for each version from 3.MINOR on: those on PATH first, then pyenv's.
find_pythons() {
    local minor python
    for minor in $(seq "$1" 30); do
        for python in "python3.$minor" /usr/bin/python3."$minor" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3."$minor".*/bin/python; do
            if "$python" -c "import sys; sys.exit(sys.version_info[:2] != (3, $minor))" 2>/dev/null; then
                echo "$python"
                break
            fi
        done
    done
}

# Makes an empty virtual environment with pip. Debian's python3 may lack ensurepip; then another pip has to do.
create_venv() {
    local python
    python=$(find_python)
    if [[ -n $(ls -A "$VENV" 2>/dev/null) && ! -f $VENV/pyvenv.cfg ]]; then
        die "$VENV holds something else; name another folder: VENV=folder make ..."
    fi
    say "virtual environment in $VENV ($("$python" --version))"
    if "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        "$python" -m venv --clear "$VENV"
    elif "$python" -m pip --version >/dev/null 2>&1; then
        "$python" -m venv --clear --without-pip "$VENV"
        "$python" -m pip --python "$VENV/bin/python" install --quiet pip
    elif command -v virtualenv >/dev/null; then
        virtualenv --quiet --clear --python "$python" "$VENV"
    else
        die "$python has neither venv nor pip; install them first: apt-get install python3-venv"
    fi
}

# Installs packages into $VENV by the virtual environment $INSTALLER ($VENV itself by default): with uv, in a third of pip's
# time, from pip's index-url; with pip where uv can't or pip has no index. Bytecode is made at the first import.
venv_install() {
    local by=${INSTALLER:-$VENV} index
    index=$(pip_setting "$by" index-url)
    if [[ -z $(pip_setting "$by" no-index) ]] && ensure_uv "$by" &&
        ${index:+env UV_DEFAULT_INDEX="$index"} "$UV" pip install --quiet --python "$VENV/bin/python" "$@" 2>/dev/null; then
        return
    fi
    "$by/bin/python" -m pip --python "$VENV/bin/python" install --quiet --no-compile "$@"
}

# pip_setting FOLDER NAME: a setting of the pip in a virtual environment, by variable or file; nothing where there is none.
pip_setting() {
    local variable=PIP_${2^^}
    variable=${variable//-/_}
    echo "${!variable:-$("$1/bin/python" -m pip config get "global.$2" 2>/dev/null || true)}"
}

# ensure_uv FOLDER: sets UV to this machine's uv, or to that of a virtual environment, which gets one where it has none.
ensure_uv() {
    [[ -x ${UV:-} ]] || UV=$(command -v uv || echo "$1/bin/uv")
    [[ -x $UV ]] || "$1/bin/python" -m pip install --quiet --retries 0 --timeout 15 uv 2>/dev/null || true
    [[ -x $UV ]]
}

# ensure_venv NAME,...: the locked packages of this checkout with these extras in $VENV; one at a time in a checkout. The
# extras `bridges`, `ray` and `slurm` are packages of this checkout too; `dev` has all, but of Ray itself nothing.
ensure_venv() { (flock 7; update_venv "$1") 7<requirements.lock; }

update_venv() {
    local stamp
    stamp=$VENV/.proctor-$(cat requirements.lock pyproject.toml packages/*/pyproject.toml <(echo "$ROOT") | sha256sum | cut -c1-16)
    if [[ -f $stamp ]] && "$VENV/bin/python" -c '' 2>/dev/null; then
        [[ -n $(comm -13 "$stamp" <(tr , '\n' <<<"$1" | sort)) ]] || return 0
    fi
    "$VENV/bin/python" -m pip --version >/dev/null 2>&1 || create_venv
    say "packages of requirements.lock, extras: $1"
    local begun=$SECONDS
    venv_install -c requirements.lock hatchling editables setuptools
    local own=()
    [[ ,$1, != *,dev,* && ,$1, != *,bridges,* ]] || own+=(-e ./packages/bridges)
    [[ ,$1, != *,dev,* && ,$1, != *,slurm,* ]] || own+=(-e ./packages/slurm)
    [[ ,$1, != *,ray,* ]] || own+=(-e ./packages/ray)
    CMAKE_TOOLCHAIN_FILE=$ROOT/scripts/planner.cmake venv_install -c requirements.lock --no-build-isolation -e ".[$1]" "${own[@]}"
    [[ ,$1, != *,dev,* || ,$1, == *,ray,* ]] || venv_install --no-deps --no-build-isolation -e ./packages/ray
    say "packages took $((SECONDS - begun)) s"
    { cat "$stamp" 2>/dev/null || true; tr , '\n' <<<"$1"; } | sort -u >"$VENV/.proctor-extras"
    mv "$VENV/.proctor-extras" "$stamp"
}
