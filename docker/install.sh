#!/bin/sh
# Steps of docker/Dockerfile, in stages that no image keeps. The same inputs give the same files.
#   install.sh tools                pip and the build backend, in /opt/tools; the virtual environment /opt/packages, empty
#   install.sh packages EXTRA,...   the locked packages of these extras, in that one
#   install.sh proctor              Proctor itself, with the packages of packages/, in /opt/proctor, where that virtual environment looks for it
set -eu
cd /src
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore PIP_QUIET=1 PYTHONHASHSEED=0
export PIP_CONSTRAINT=/src/requirements.lock
export SOURCE_DATE_EPOCH=1750000000 # bytecode then tells its source by content, not by time
if ls wheelhouse/*.whl >/dev/null 2>&1; then export PIP_NO_INDEX=1 PIP_FIND_LINKS=/src/wheelhouse; fi

case $1 in
tools)
    python3 -m venv /opt/tools
    /opt/tools/bin/pip install hatchling
    python3 -m venv --without-pip /opt/packages
    echo /opt/proctor >"$(echo /opt/packages/lib/python3*/site-packages)/proctor.pth"
    ;;
packages)
    python3 requirements.py "$2" >asked
    /opt/tools/bin/pip --python /opt/packages/bin/python install --requirement asked
    ;;
proctor)
    /opt/tools/bin/pip wheel --no-deps --no-build-isolation --wheel-dir dist . ./packages/bridges ./packages/ray
    /opt/tools/bin/pip --python /opt/packages/bin/python install --no-deps --no-compile --target /opt/proctor dist/*.whl
    /opt/packages/bin/python -m compileall -q /opt/proctor # pip would write its temporary folder into the bytecode
    ;;
esac
