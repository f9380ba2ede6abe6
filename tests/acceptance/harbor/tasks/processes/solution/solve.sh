#!/bin/bash
setsid /app/worker.sh >/dev/null 2>&1 &
echo $! >/app/worker.pid
