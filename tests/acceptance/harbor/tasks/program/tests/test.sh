#!/bin/bash
passed=0
gcc -O2 -o /tmp/primes /app/primes.c || { echo '{"reward": 0, "cases": 0}' >/logs/verifier/reward.json; exit 1; }
while read -r most count last; do
    found=$(timeout 5 /tmp/primes "$most")
    [ "$(echo -n "$found" | grep -c .)" = "$count" ] && [ "$(echo "$found" | tail -n 1)" = "$last" ] && passed=$((passed + 1))
done </tests/cases
echo "{\"reward\": $(echo "scale=2; $passed / 4" | bc), \"cases\": $passed}" | sed 's/: \./: 0./' >/logs/verifier/reward.json
