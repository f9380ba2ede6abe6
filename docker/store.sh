#!/bin/sh
# Starts PostgreSQL as its public image does, with POSTGRES_USER, POSTGRES_DB and POSTGRES_PASSWORD_FILE: the first
# start makes the data folder and the database.
set -eu
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    initdb --username="$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" --auth-local=trust \
        --auth-host=scram-sha-256 --encoding=UTF8 >/dev/null
    echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
    echo "CREATE DATABASE \"$POSTGRES_DB\"" | postgres --single -D "$PGDATA" postgres >/dev/null
fi
exec "$@" -c listen_addresses='*' -c unix_socket_directories=/tmp
