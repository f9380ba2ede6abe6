#!/bin/bash
grep -q 'version 1.0 ' /proc/version && echo 1 >/logs/verifier/reward.txt || echo 0 >/logs/verifier/reward.txt
