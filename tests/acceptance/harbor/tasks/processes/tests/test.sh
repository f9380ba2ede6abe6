#!/bin/bash
reward=0
pid=$(cat /app/worker.pid)
grep -q worker.sh "/proc/$pid/cmdline" && reward=1
echo $reward >/logs/verifier/reward.txt
