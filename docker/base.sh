#!/bin/sh
# Makes a base image for docker/Dockerfile out of Debian's packages alone, where no image can be pulled:
#   docker/base.sh [IMAGE]      as root on Debian 12, with mmdebstrap and a Docker engine; about half a minute
# The mirrors are those of this machine's apt; MIRROR names another.
set -eu
image=${1:-proctor-base:bookworm}
suite=bookworm
[ "$(id -u)" = 0 ] || { echo "base.sh: run it as root" >&2; exit 2; }
command -v mmdebstrap >/dev/null || { echo "base.sh: no mmdebstrap; apt-get install mmdebstrap" >&2; exit 2; }
if docker image inspect "$image" >/dev/null 2>&1; then
    echo "the image $image is there already; docker rmi it to make it anew"
    exit
fi
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
trap 'exit 130' INT TERM

mirror_of() { apt-get indextargets --format '$(REPO_URI)' "Codename: $1" "Component: main" 2>/dev/null | head -n 1; }
mirror=${MIRROR:-$(mirror_of $suite)}
security=$(mirror_of $suite-security)
set -- # without a mirror, Debian's own are taken, with that of security
[ -z "$mirror" ] || set -- "deb $mirror $suite main" ${security:+"deb $security $suite-security main"}

# What no service reads is left out; of packages that are added later, too.
mmdebstrap --variant=minbase --include=usr-is-merged,ca-certificates,python3,python3-venv \
    --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/info/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --customize-hook='find "$1/usr" -name __pycache__ -prune -exec rm -rf {} +' \
    $suite "$place/base.tar" "$@" >"$place/log" 2>&1 </dev/null || { tail -n 5 "$place/log" >&2; exit 1; }
docker import --change 'CMD ["/bin/bash"]' "$place/base.tar" "$image" >/dev/null
echo "base image $image"
