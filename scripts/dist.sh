#!/usr/bin/env bash
# The sdists and the wheels of this checkout, in dist/: of Proctor, and of each package in packages/. Each wheel is then
# installed alone in an empty virtual environment, where the demo is played, and a user's program is checked by mypy.
# Proctor's is tried with uvx and pipx too.
. "$(dirname "$0")/lib.sh"
ensure_venv "${EXTRAS:-dev}"
rm -rf dist
for place in . packages/*/; do
    (cd "$place" && "$VENV/bin/python" -m hatchling build --directory "$ROOT/dist")
done

BUILDER=$VENV PLACE=$(mktemp -d)
trap 'rm -rf "$PLACE"' EXIT
cat >"$PLACE/use.py" <<'PROGRAM'
from collections.abc import Sequence

from proctor import Message, Run, TrialResult, evaluate


def answer(messages: Sequence[Message]) -> str:
    return messages[-1].content or ""


run: Run = evaluate(agents={"mine": answer}, tasks=["kg"], limit=1)
trials: list[TrialResult] = list(run.trials())
scores: list[float | None] = [each.score for each in trials]
wrong: list[str] = [each.score for each in trials]  # type: ignore[misc]
PROGRAM
for wheel in dist/*.whl; do
    name=${wheel##*/} VENV=$PLACE/${wheel##*/}
    name=${name%%-py3*}
    say "$name alone"
    create_venv >/dev/null
    INSTALLER=$BUILDER venv_install --find-links "$ROOT/dist" "$wheel"
    mkdir "$PLACE/$name"
    (cd "$PLACE/$name" && "$VENV/bin/proctor" demo -q --limit 1 >demo.txt 2>&1) || die "the demo of $name: $(cat "$PLACE/$name/demo.txt")"
    grep 'trials scored' "$PLACE/$name/demo.txt"
    (cd "$PLACE" && "$BUILDER/bin/mypy" --strict --python-executable "$VENV/bin/python" --cache-dir "$PLACE/mypy" use.py)
done

say "uvx and pipx"
VENV=$PLACE/tools
create_venv >/dev/null
INSTALLER=$BUILDER venv_install pipx uv
wheel=$(ls "$PWD"/dist/proctor-*.whl)
"$VENV/bin/uvx" --from "proctor[kg] @ file://$wheel" proctor --version
export PIPX_HOME=$PLACE/pipx PIPX_BIN_DIR=$PLACE/bin
"$VENV/bin/pipx" install --quiet "$wheel[kg]"
"$PLACE/bin/proctor" --version
