#!/bin/bash
reward=0
[ -e /app/done ] && reward=1
echo $reward >/logs/verifier/reward.txt
