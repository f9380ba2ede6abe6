#!/bin/bash

for name in Ada "Grace Hopper" 'a*b'; do
  [ "$(/opt/tools/greet "$name")" = "Hello, $name!" ] || exit 1
done
