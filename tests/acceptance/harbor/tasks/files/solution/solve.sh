#!/bin/bash
cd /app
awk -F, '{ sum[$1] += $2 } END { for (name in sum) print name "," sum[name] }' orders.csv | sort >totals.csv
