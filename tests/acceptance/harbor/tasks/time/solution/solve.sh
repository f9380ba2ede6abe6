#!/bin/bash
sleep 600
touch /app/done
