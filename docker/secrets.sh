#!/bin/sh
# Makes the secrets of compose.yaml, each in a file of its own; what is there already stays.
#   docker/secrets.sh [FOLDER]      docker/secrets if absent
set -eu
folder=${1:-$(dirname "$0")/secrets}
mkdir -p -m 700 "$folder" # containers see the files as they are: open to their user, in a folder that is closed to others
[ "$(stat -c %a "$folder")" = 700 ] || { echo "secrets.sh: $folder is open to others; chmod 700 it, or name a new one" >&2; exit 2; }
umask 022
make() { [ -e "$folder/$1" ] || { cat >"$folder/$1.part" && mv "$folder/$1.part" "$folder/$1"; }; }
random() { head -c 32 /dev/urandom | od -An -vtx1 | tr -d ' \n'; }
random | make token
random | make worker-token
random | make metrics-token
make prometheus-token <"$folder/metrics-token" # of one line, also while the servers' file has two
random | make store-password
echo "postgresql+psycopg://proctor:$(cat "$folder/store-password")@store/proctor" | make store-url
echo "secrets in $folder"
