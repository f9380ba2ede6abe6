#!/bin/sh
# Fetches the wheels that the images install, as requirements.lock pins them, into docker/wheelhouse. Where that folder
# is, docker/Dockerfile asks no package index. For a machine without network, or to build again and again:
#   docker/wheels.sh [VERSION]      the Python of the base image; 3.13 if absent, 3.11 for one made by docker/base.sh
# PYTHON names the Python whose pip does it; python3 if absent. EXTRAS are those given to the build, as in EXTRAS=otel,parquet.
set -eu
cd "$(dirname "$0")/.."
extras=bridges,db,fast,kg,ltp,mind2web,mysql,os,postgres,stss,webshop,${EXTRAS:-}
version=${1:-3.13}
python=${PYTHON:-python3}
"$python" -m pip --version >/dev/null || { echo "wheels.sh: $python has no pip; name one that has: PYTHON=..." >&2; exit 2; }

list=$(mktemp)
trap 'rm -f "$list"' EXIT
{ "$python" docker/requirements.py "$extras"; echo hatchling; } >"$list"
rm -rf docker/wheelhouse docker/wheelhouse.part
"$python" -m pip download --quiet --disable-pip-version-check --only-binary=:all: --python-version "$version" \
    --constraint requirements.lock --requirement "$list" --dest docker/wheelhouse.part
mv docker/wheelhouse.part docker/wheelhouse # whole, or not at all
echo "$(find docker/wheelhouse -name '*.whl' | wc -l) wheels for Python $version in docker/wheelhouse"
