#!/bin/bash
reward=0
diff <(printf 'ann,12\nbob,30\ncid,5\n') /app/totals.csv && reward=1
echo $reward >/logs/verifier/reward.txt
