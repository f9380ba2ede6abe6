#!/usr/bin/env bash
# A small evaluation with built-in agents, from an empty checkout to a table of scores.
. "$(dirname "$0")/lib.sh"
ensure_venv db,os,kg,ltp,webshop,mind2web,stss,fast
say "proctor demo"
exec "$VENV/bin/proctor" demo
