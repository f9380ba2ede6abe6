#!/bin/bash
cp /solution/primes.c /app/primes.c
