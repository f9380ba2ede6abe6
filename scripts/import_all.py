"""Imports every module of the installed packages of Proctor, and checks that its classifiers name this Python."""

import importlib
import pkgutil
import sys
import warnings
from importlib.metadata import metadata

PACKAGES = ("agent_server", "environments", "eval_client", "proctor", "proctor_bridges", "proctor_slurm", "task_server")

warnings.simplefilter("error")
imported = 0
for package in map(importlib.import_module, PACKAGES):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
        imported += 1
version = f"{sys.version_info.major}.{sys.version_info.minor}"
classifier = f"Programming Language :: Python :: {version}"
if classifier not in (metadata("proctor").get_all("Classifier") or ()):
    sys.exit(f"pyproject.toml has no classifier {classifier!r}")
print(f"== Python {sys.version.split()[0]}: {imported} modules imported")
