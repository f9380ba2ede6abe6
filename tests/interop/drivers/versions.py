"""Prints the version of each package that is named."""

import importlib.metadata
import json
import sys

for name in sys.argv[1:]:
    print(json.dumps(importlib.metadata.version(name)))
