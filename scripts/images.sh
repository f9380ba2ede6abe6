#!/usr/bin/env bash
# Builds the image of each role of docker/compose.yaml, tagged with the version of this checkout, and `latest`.
# BASE, BUILD_NETWORK and EXTRAS are as docker/compose.yaml describes them.
. "$(dirname "$0")/lib.sh"
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
compose=(docker compose)
docker compose version >/dev/null 2>&1 || compose=(docker-compose)
docker/secrets.sh >/dev/null # else compose warns of each that is missing
PROCTOR_VERSION=$version "${compose[@]}" --file docker/compose.yaml --profile client build --quiet
for role in controller client worker worker-db agents; do
    docker tag "proctor-$role:$version" "proctor-$role:latest"
    echo "proctor-$role:$version"
done
