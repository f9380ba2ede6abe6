"""Builds the root file system of a namespace sandbox, inside its new namespaces."""

import ctypes
import os
import socket
import stat
from collections.abc import Sequence
from typing import NamedTuple

RDONLY, NOSUID, NODEV, NOEXEC, REMOUNT, BIND, REC, PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
"""Flags of `mount`."""
_NAMESPACES = {"NEWNS": 0x20000, "NEWCGROUP": 0x2000000, "NEWUTS": 0x4000000, "NEWIPC": 0x8000000}
_NAMESPACES |= {"NEWUSER": 0x10000000, "NEWPID": 0x20000000, "NEWNET": 0x40000000}
_DETACH = 2
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 24, 38
_LAST_CAPABILITY = 63
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41}
_libc = ctypes.CDLL(None, use_errno=True)
_BASE = "/tmp"  # exists everywhere; covered only inside our own mount namespace
_LINKED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_EMPTY = [
    "boot", "dev", "etc", "home", "media", "mnt", "opt", "proc", "root", "run", "srv", "tmp", "usr", "var",
    "var/cache", "var/lib", "var/log", "var/mail", "var/spool", "var/tmp",
]  # fmt: skip
_ETC = [
    "adduser.conf", "alternatives", "bash.bashrc", "debconf.conf", "debian_version", "default", "deluser.conf",
    "environment", "gai.conf", "group", "host.conf", "hosts", "inputrc", "ld.so.cache", "ld.so.conf",
    "ld.so.conf.d", "locale.alias", "localtime", "login.defs", "magic", "mime.types", "nsswitch.conf", "os-release",
    "pam.conf", "pam.d", "passwd", "profile", "protocols", "security", "services", "shells", "skel", "terminfo",
    "timezone",
]  # fmt: skip


class EtcEntry(NamedTuple):
    """A file, folder or link of the host's /etc."""

    path: str
    mode: int
    times: tuple[int, int]
    """Of the last access and the last change, in nanoseconds."""
    content: bytes | None = None
    """None for a folder or a link."""
    link: str | None = None
    """Where a link leads."""


def read_etc() -> list[EtcEntry]:
    """What every sandbox gets of the host's /etc, folders before what is in them, read once.

    What this host lacks, or we may not read, is left out.
    """
    return [
        entry for name in _ETC for entry in _read(name, follow=name == "os-release" or os.path.isdir(f"/etc/{name}"))
    ]


def _read(name: str, *, follow: bool) -> list[EtcEntry]:
    path = f"/etc/{name}"
    try:
        found = os.stat(path, follow_symlinks=follow)
        entry = EtcEntry(name, stat.S_IMODE(found.st_mode), (found.st_atime_ns, found.st_mtime_ns))
        if stat.S_ISLNK(found.st_mode):
            return [entry._replace(link=os.readlink(path))]
        if stat.S_ISDIR(found.st_mode):
            return [entry, *(each for part in os.listdir(path) for each in _read(f"{name}/{part}", follow=False))]
        with open(path, "rb") as file:
            return [entry._replace(content=file.read())]
    except OSError:
        return []


def build(disk_mb: int, etc: Sequence[EtcEntry]) -> None:
    """Make a new root: the host's /usr under an overlay, a few harmless files of its /etc, all else empty.

    Raises OSError where this kernel or host does not allow it.
    """
    mount(None, "/", None, REC | PRIVATE)
    links = [(name, os.readlink(f"/{name}")) for name in _LINKED if os.path.islink(f"/{name}")]
    if not any(name == "bin" for name, _ in links):
        raise OSError(0, "this host keeps /bin beside /usr; a merged /usr is needed", "/bin")
    # Copied into a tmpfs of our own before the host's root is unmounted.
    mount("tmpfs", _BASE, "tmpfs", NOSUID | NODEV, f"size={disk_mb}m,mode=755")
    root = f"{_BASE}/root"
    for name in ("upper", "work", "root"):
        os.mkdir(f"{_BASE}/{name}", 0o755)
    for name in _EMPTY:
        os.mkdir(f"{root}/{name}", 0o755)
    for name in ("tmp", "var/tmp"):
        os.chmod(f"{root}/{name}", 0o1777)
    os.chmod(f"{root}/root", 0o700)
    for name, target in links:
        os.symlink(target, f"{root}/{name}")
    layers = f"lowerdir=/usr,upperdir={_BASE}/upper,workdir={_BASE}/work,userxattr"
    mount("overlay", f"{root}/usr", "overlay", NOSUID | NODEV, layers)
    _fill_etc(f"{root}/etc", etc)
    _fill_dev(f"{root}/dev")
    _fill_proc(f"{root}/proc")
    change_root(root)


def write(path: str, text: str) -> bool:
    """Write a file; False where that is not allowed."""
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError:
        return False
    return True


def _fill_etc(etc: str, entries: Sequence[EtcEntry]) -> None:
    for entry in entries:
        path = f"{etc}/{entry.path}"
        if entry.link is not None:
            os.symlink(entry.link, path)
        elif entry.content is None:
            os.mkdir(path)
        else:
            with open(path, "xb", buffering=0) as file:
                file.write(entry.content)
    for entry in reversed(entries):  # a folder's date after those of what is in it
        if entry.link is None:
            os.chmod(f"{etc}/{entry.path}", entry.mode)
            os.utime(f"{etc}/{entry.path}", ns=entry.times)
    users, groups = ([entry for entry in entries if entry.path == name] for name in ("passwd", "group"))
    write(f"{etc}/shadow", "".join(f"{user}:*:19000:0:99999:7:::\n" for user in _names(users)))
    write(f"{etc}/gshadow", "".join(f"{group}:*::\n" for group in _names(groups)))
    write(f"{etc}/hostname", "sandbox\n")
    socket.sethostname("sandbox")


def _names(files: Sequence[EtcEntry]) -> list[str]:
    lines = (line for file in files if file.content for line in file.content.decode().splitlines())
    return [line.partition(":")[0] for line in lines]


def _fill_dev(dev: str) -> None:
    for name in _DEVICES:
        os.mknod(f"{dev}/{name}")
        mount(f"/dev/{name}", f"{dev}/{name}", None, BIND)
    for name, target in (("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        os.symlink(f"/proc/self/{target}", f"{dev}/{name}")
    os.mkdir(f"{dev}/shm")
    os.chmod(f"{dev}/shm", 0o1777)


def _fill_proc(proc: str) -> None:
    """Mount /proc with everything but processes read-only: the host's root owns it, who may be root here too."""
    flags = NOSUID | NODEV | NOEXEC
    mount("proc", proc, "proc", flags)
    # Since Linux 6.14 this limits the processes of this pid namespace alone; before, it is a setting of the host.
    if tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2]) >= (6, 14):
        write(f"{proc}/sys/kernel/pid_max", "1024")
    for name in os.listdir(proc):
        entry = f"{proc}/{name}"
        if not name.isdigit() and not os.path.islink(entry):
            mount(entry, entry, None, BIND)
            mount(None, entry, None, BIND | REMOUNT | RDONLY | flags)


# The kernel's calls that Python's library lacks. Each raises OSError with what was tried in the place of a file.


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
