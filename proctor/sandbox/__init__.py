"""Disposable Linux sandboxes for environments, with single processes, a persistent shell and resource limits.

Two engines have the same interface: Docker (`proctor.sandbox.docker_engine`, which needs the extra `os`), and Linux
namespaces where Docker is missing.
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
