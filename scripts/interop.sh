#!/usr/bin/env bash
# Plays tests/interop: Proctor against other people's programs. `interop.sh [pytest argument ...]`; COUNTERPARTS="name ..."
# chooses among them, JOBS=n runs the tests in n processes. Each counterpart has a virtual environment of its own, since
# no two of them agree on their packages. A test finds the interpreter in PROCTOR_INTEROP_<NAME>; one that is set already
# is taken as it is. A counterpart that can't be installed skips its tests with the reason; the exit code is 1 then.
# `interop.sh --lock` writes tests/interop/counterparts/*.txt anew; `interop.sh --install` makes the environments alone.
. "$(dirname "$0")/lib.sh"

LISTS=$ROOT/tests/interop/counterparts
INSTALLER=$VENV
COUNTERPARTS=${COUNTERPARTS:-inspect agentrl openenv harbor eee jupyter litellm}

# asked NAME: the packages that a counterpart's list is made from.
asked() {
    case $1 in
    inspect) echo inspect-ai==0.3.285 inspect-scout==0.6.1 openai==3.57.0 pandas pyarrow ;;
    agentrl) echo agentrl-worker==0.4.0 agentrl-eval==0.1.2 ;;
    openenv) echo 'openenv[core]==0.10.0' ;;
    litellm) echo 'litellm[proxy]==1.108.7' ;;
    jupyter) echo ipykernel jupyter_client pandas ;;
    harbor) echo pydantic toml ;; # of harbor itself only the models are used; they need no more
    eee) echo pydantic jsonschema requests rich ;; # what the checks of every-eval-ever need, without its converters
    *) die "no counterpart is called $1; there are: inspect agentrl openenv harbor eee jupyter litellm" ;;
    esac
}

# python_for NAME: a Python of the version that a counterpart needs; nothing where this machine has none.
python_for() {
    local minor=11 python=
    [[ $1 != harbor && $1 != eee ]] || minor=12
    read -r python < <(find_pythons "$minor") || true
    echo "$python"
}

# empty_venv NAME: an empty virtual environment in $VENV, without pip: that of $INSTALLER installs into it.
empty_venv() {
    local python
    python=$(python_for "$1")
    [[ -n $python ]] || { echo "this machine has no Python that $1 runs on"; return 1; }
    "$python" -m venv --clear --without-pip "$VENV"
}

# install NAME: a counterpart's packages in $VENV, unless they are there; $VENV.log tells what went wrong.
install() {
    local stamp
    stamp=$VENV/.proctor-$(sha256sum <"$LISTS/$1.txt" | cut -c1-16)
    if [[ -f $stamp ]] && "$VENV/bin/python" -c '' 2>/dev/null; then return; fi
    empty_venv "$1" && venv_install --no-deps -r "$LISTS/$1.txt" && touch "$stamp"
}

# write_list NAME: the newest packages that fit what is asked for.
write_list() {
    empty_venv "$1"
    # shellcheck disable=SC2046
    venv_install $(asked "$1")
    {
        echo "# $(asked "$1") with all they need; written by scripts/interop.sh --lock"
        if [[ $1 == harbor ]]; then echo harbor==0.25.0; fi
        if [[ $1 == eee ]]; then echo every-eval-ever==0.3.0; fi
        "$INSTALLER/bin/python" -m pip --python "$VENV/bin/python" freeze
    } >"$LISTS/$1.txt"
}

for name in $COUNTERPARTS; do asked "$name" >/dev/null; done
mkdir -p "$STATE/interop"
ensure_venv dev
if [[ ${1:-} == --lock ]]; then
    for name in $COUNTERPARTS; do (VENV=$STATE/interop/$name && write_list "$name"); done
    exit
fi

declare -A jobs=()
for name in $COUNTERPARTS; do
    variable=PROCTOR_INTEROP_${name^^}
    [[ -z ${!variable:-} ]] || continue
    (VENV=$STATE/interop/$name && install "$name") >"$STATE/interop/$name.log" 2>&1 &
    jobs[$name]=$!
done
missing=()
for name in "${!jobs[@]}"; do
    variable=PROCTOR_INTEROP_${name^^}
    if wait "${jobs[$name]}"; then
        export "$variable=$STATE/interop/$name/bin/python"
    else
        missing+=("$name")
        export "${variable}_MISSING=$(tail -n 1 "$STATE/interop/$name.log")"
        say "$name can't be installed: $(tail -n 1 "$STATE/interop/$name.log")"
    fi
done
if [[ ${1:-} == --install ]]; then exit $((${#missing[@]} > 0)); fi
JOBS=${JOBS:-$(nproc)}
((JOBS == 1)) || set -- -n "$JOBS" --dist loadfile "$@"
say "counterparts took $SECONDS s; pytest tests/interop $*"
status=0
"$VENV/bin/python" -m pytest tests/interop -rs "$@" || status=$?
((${#missing[@]} == 0)) || { say "not installed: ${missing[*]}; their tests were skipped"; status=1; }
exit "$status"
