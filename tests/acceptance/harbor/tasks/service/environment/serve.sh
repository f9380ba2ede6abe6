#!/bin/bash
mkfifo "$ECHO_HOM/in"
read -r line <"$ECHO_HOME/in"
echo "$line" >"$ECHO_HOME/out"
