"""Prints what pyproject.toml asks for, a line each: requirements.py EXTRA,... [pyproject.toml]"""

import sys
import tomllib
from pathlib import Path

extras = [name for name in sys.argv[1].split(",") if name]
project = tomllib.loads(Path(*sys.argv[2:] or ["pyproject.toml"]).read_text(encoding="utf-8"))["project"]
asked = [*project["dependencies"], *(line for name in extras for line in project["optional-dependencies"][name])]
print("\n".join(sorted(set(asked))))
