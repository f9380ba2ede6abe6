#!/bin/sh
# Makes a base image for docker/Dockerfile out of Debian's packages alone, where no image can be pulled:
#   docker/base.sh [IMAGE]      as root on Debian 12, with debootstrap and a Docker engine; about a minute
# The mirrors are those of this machine's apt; MIRROR names another.
set -eu
image=${1:-proctor-base:bookworm}
suite=bookworm
[ "$(id -u)" = 0 ] || { echo "base.sh: debootstrap needs root" >&2; exit 2; }
command -v debootstrap >/dev/null || { echo "base.sh: no debootstrap; apt-get install debootstrap" >&2; exit 2; }
if docker image inspect "$image" >/dev/null 2>&1; then
    echo "the image $image is there already; docker rmi it to make it anew"
    exit
fi
place=$(mktemp -d /tmp/proctor-base.XXXXXX) # debootstrap takes no path with a space
trap 'rm -rf --one-file-system "$place"' EXIT
trap 'exit 130' INT TERM
tree=$place/tree

mirror_of() { apt-get indextargets --format '$(REPO_URI)' "Codename: $1" "Component: main" 2>/dev/null | head -n 1; }
logged() { "$@" >"$place/log" 2>&1 </dev/null || { tail -n 5 "$place/log" >&2; exit 1; }; }

mirror=${MIRROR:-$(mirror_of $suite)}
logged debootstrap --variant=minbase --include=ca-certificates,python3,python3-venv $suite "$tree" ${mirror:+"$mirror"}
security=$(mirror_of $suite-security)
if [ -n "$security" ]; then
    echo "deb $security $suite-security main" >>"$tree/etc/apt/sources.list"
    logged chroot "$tree" apt-get -qq update
    logged chroot "$tree" env DEBIAN_FRONTEND=noninteractive apt-get -qq --yes upgrade
fi

# What no service reads; packages that are added later leave it out too.
cat >"$tree/etc/dpkg/dpkg.cfg.d/slim" <<'END'
path-exclude /usr/share/doc/*
path-exclude /usr/share/info/*
path-exclude /usr/share/locale/*
path-exclude /usr/share/man/*
END
for folder in usr/share/doc usr/share/info usr/share/locale usr/share/man var/cache/apt var/lib/apt/lists var/log; do
    find "$tree/$folder" -mindepth 1 -delete
done
find "$tree" -name __pycache__ -prune -exec rm -rf {} +
tar -C "$tree" --numeric-owner --sort=name -cf - . | docker import --change 'CMD ["/bin/bash"]' - "$image" >/dev/null
echo "base image $image"
