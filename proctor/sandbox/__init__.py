"""Throw-away Linux machines for environments: fresh processes, one persistent shell, limits, and nothing left behind.

Two engines give the same interface: Docker (`proctor.sandbox.docker_engine`, which needs the extra `os`), and
Linux namespaces where Docker is missing.
"""

from proctor.sandbox.base import Change, Engine, Process, Result, Sandbox, SandboxLimits
from proctor.sandbox.namespace_engine import NamespaceEngine
from proctor.sandbox.shell import CommandResult, Shell

__all__ = [
    "Change",
    "CommandResult",
    "Engine",
    "NamespaceEngine",
    "Process",
    "Result",
    "Sandbox",
    "SandboxLimits",
    "Shell",
]
