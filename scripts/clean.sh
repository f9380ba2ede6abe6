#!/usr/bin/env bash
# Removes what the other targets made in the checkout. Images in another Docker engine stay.
. "$(dirname "$0")/lib.sh"
exec 9<"$ROOT"
flock -n 9 || die "make test is running here; wait for it to end"
while read -r _ mounted _; do
    case $(printf '%b' "$mounted") in "$STATE"/*) umount -l "$(printf '%b' "$mounted")" ;; esac
done < <(tac /proc/mounts)
say "removing .proctor-test, caches and builds"
rm -rf "$STATE" .mypy_cache .ruff_cache .hypothesis .import_linter_cache .pytest_cache .cache dist build docker/wheelhouse
case $VENV in "$ROOT"/*) say "removing $VENV"; rm -rf "$VENV" ;; esac
find . -name __pycache__ -type d -prune -exec rm -rf {} +
