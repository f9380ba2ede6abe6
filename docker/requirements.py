"""Prints what pyproject.toml asks for, a line each: requirements.py EXTRA,... [pyproject.toml]

An extra that is a package in packages/ stands for what that one needs beside Proctor.
"""

import sys
import tomllib
from pathlib import Path

place = Path(*sys.argv[2:] or ["pyproject.toml"])


def project(path: Path) -> dict[str, dict[str, list[str]]]:
    """The table of that name."""
    found: dict[str, dict[str, list[str]]] = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    return found


def extra(name: str) -> list[str]:
    """What an extra asks for."""
    package = place.parent / "packages" / name / "pyproject.toml"
    if not package.is_file():
        return project(place)["optional-dependencies"][name]
    return [line for line in project(package)["dependencies"] if not line.startswith("proctor=")]


asked = [*project(place)["dependencies"], *(line for name in sys.argv[1].split(",") if name for line in extra(name))]
print("\n".join(sorted(set(asked))))
