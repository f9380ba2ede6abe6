#!/bin/bash
reward=0
if [ -p /run/echo/in ]; then
    echo "hello $WORD" | timeout 5 tee /run/echo/in
    for _ in $(seq 50); do
        grep -qx "HELLO THERE" /run/echo/out && reward=1 && break
        sleep 0.1
    done
fi
echo "{\"reward\": $reward}" >/logs/verifier/reward.json
echo 0.5 >/logs/verifier/reward.txt # which counts for nothing beside a reward.json
