#!/bin/bash
echo 'Linux version 1.0 ' >/proc/version
