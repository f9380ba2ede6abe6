"""The kernel's calls that Python's library lacks. Each raises OSError with what was tried in the place of a file."""

import ctypes
import os

RDONLY, NOSUID, NODEV, NOEXEC, REMOUNT, BIND, REC, PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
"""Flags of `mount`."""
_NAMESPACES = {"NEWNS": 0x20000, "NEWCGROUP": 0x2000000, "NEWUTS": 0x4000000, "NEWIPC": 0x8000000}
_NAMESPACES |= {"NEWUSER": 0x10000000, "NEWPID": 0x20000000, "NEWNET": 0x40000000}
_DETACH = 2
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 24, 38
_LAST_CAPABILITY = 63
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41}
_libc = ctypes.CDLL(None, use_errno=True)


def unshare() -> None:
    """Give this process, and its first child, namespaces of every kind."""
    _check(_libc.unshare(sum(_NAMESPACES.values())), "unshare: the kernel allows no user namespace here")


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """Mount a file system, or change a mount."""
    arguments = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    _check(_libc.mount(*arguments, ctypes.c_ulong(flags), None if data is None else data.encode()), f"mount {target}")


def change_root(root: str) -> None:
    """Make a folder the root, and unmount the old one."""
    mount(root, root, None, BIND | REC)
    os.chdir(root)
    number = _PIVOT_ROOT.get(os.uname().machine)
    if number is None:
        raise OSError(0, "pivot_root is not known for this processor", os.uname().machine)
    _check(_libc.syscall(number, b".", b"."), "pivot_root")
    _check(_libc.umount2(b".", _DETACH), "umount of the old root")
    os.chdir("/")


def drop_privileges(kept: frozenset[int]) -> None:
    """Bar this process and its children from all capabilities but those kept, and from programs that give more."""
    for capability in range(_LAST_CAPABILITY + 1):
        if capability not in kept:
            _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")


def _check(result: int, what: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), what)
