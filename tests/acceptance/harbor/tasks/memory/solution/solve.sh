#!/bin/bash
all=$(bash /app/lines.sh) && echo "$all" | wc -l >/app/count
