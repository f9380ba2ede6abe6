"""The first process of a namespace sandbox: builds its root file system, then starts processes on request.

It runs as a script (`python -I -S namespace_init.py FD disk_mb=N ...`) that imports little, and only the standard
library: to import more would cost as much as the sandbox. FD is a stream socket to the worker; when the worker closes
it, or dies, this process ends, and the kernel ends all others with it. A request is a 4-byte big-endian length, sent
with two descriptors (input, output), and (id, argv, env) in the form of `marshal`. An answer is a line of JSON:
{"ready": true} or {"failed": reason} for the sandbox; for a process {"id", "started": true}, {"id", "failed": reason}
or {"id", "exit": status}.
"""

import array  # noqa: F401  this and `warnings`: the library imports them when asked, and nothing can be imported inside
import ctypes
import marshal
import os
import resource
import select
import signal
import socket
import stat
import sys
import warnings  # noqa: F401
from collections.abc import Callable

_NAMESPACES = {"NEWNS": 0x20000, "NEWCGROUP": 0x2000000, "NEWUTS": 0x4000000, "NEWIPC": 0x8000000}
_NAMESPACES |= {"NEWUSER": 0x10000000, "NEWPID": 0x20000000, "NEWNET": 0x40000000}
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REMOUNT, _BIND, _REC, _PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
_DETACH = 2
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 24, 38
_KEPT_CAPABILITIES = {0, 1, 3, 5, 6, 7}  # CHOWN, DAC_OVERRIDE, FOWNER, KILL, SETGID, SETUID
_LAST_CAPABILITY = 63
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41}
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
_libc = ctypes.CDLL(None, use_errno=True)


def main(control: socket.socket, options: dict[str, int]) -> None:
    """Build the root file system in new namespaces and serve; a failure is one line to the worker."""
    try:
        _enter_namespaces()
        if os.fork():
            control.close()
            os.wait()
            return
        _build_root(options["disk_mb"])
        _set_limits(options)
    except OSError as error:
        _send(control, {"failed": f"{error.strerror}: {error.filename or 'namespaces'}"})
        return
    _send(control, {"ready": True})
    _serve(control)


def _enter_namespaces() -> None:
    go_read, go_write = os.pipe()
    parent, uid = os.getpid(), os.geteuid()
    mapper = os.fork()
    if mapper == 0:
        os.close(go_write)
        os.read(go_read, 1)
        os._exit(0 if _map_ids(parent, uid, os.getegid()) else 1)
    _check(_libc.unshare(sum(_NAMESPACES.values())), "unshare: the kernel allows no user namespace here")
    os.close(go_write)
    if os.waitpid(mapper, 0)[1] != 0:
        raise OSError(0, "user ids can't be mapped", "uid_map")


def _map_ids(process: int, uid: int, gid: int) -> bool:
    """Run by root, map all ids, so that users can be made inside; else map only our own, to root."""
    if uid == 0 and _write(f"/proc/{process}/uid_map", "0 0 65536") and _write(f"/proc/{process}/gid_map", "0 0 65536"):
        return True
    return (
        _write(f"/proc/{process}/setgroups", "deny")
        and _write(f"/proc/{process}/uid_map", f"0 {uid} 1")
        and _write(f"/proc/{process}/gid_map", f"0 {gid} 1")
    )


def _write(path: str, text: str) -> bool:
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError:
        return False
    return True


def _build_root(disk_mb: int) -> None:
    """A root file system: the host's /usr under an overlay, a few harmless files of its /etc, all else empty."""
    _mount(None, "/", None, _REC | _PRIVATE)
    links = [(name, os.readlink(f"/{name}")) for name in _LINKED if os.path.islink(f"/{name}")]
    if not any(name == "bin" for name, _ in links):
        raise OSError(0, "this host keeps /bin beside /usr; a merged /usr is needed", "/bin")
    # Copied into a tmpfs of our own before the host's root is unmounted.
    _mount("tmpfs", _BASE, "tmpfs", _NOSUID | _NODEV, f"size={disk_mb}m,mode=755")
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
    _mount("overlay", f"{root}/usr", "overlay", _NOSUID | _NODEV, layers)
    _fill_etc(f"{root}/etc")
    _fill_dev(f"{root}/dev")
    _fill_proc(f"{root}/proc")
    _change_root(root)


def _fill_etc(etc: str) -> None:
    for name in _ETC:
        _copy(f"/etc/{name}", f"{etc}/{name}", follow=name == "os-release" or os.path.isdir(f"/etc/{name}"))
    _write(f"{etc}/shadow", "".join(f"{user}:*:19000:0:99999:7:::\n" for user in _names(f"{etc}/passwd")))
    _write(f"{etc}/gshadow", "".join(f"{group}:*::\n" for group in _names(f"{etc}/group")))
    _write(f"{etc}/hostname", "sandbox\n")
    socket.sethostname("sandbox")


def _names(path: str) -> list[str]:
    with open(path, encoding="utf-8") as file:
        return [line.partition(":")[0].rstrip() for line in file]


def _copy(source: str, target: str, *, follow: bool) -> None:
    """A file, folder or link with its mode and date; what this host lacks, or we may not read, is left out."""
    try:
        found = os.stat(source, follow_symlinks=follow)
        if stat.S_ISLNK(found.st_mode):
            os.symlink(os.readlink(source), target)
            return
        if stat.S_ISDIR(found.st_mode):
            os.mkdir(target)
            for name in os.listdir(source):
                _copy(f"{source}/{name}", f"{target}/{name}", follow=False)
        else:
            with open(source, "rb") as file, open(target, "xb") as copied:
                copied.write(file.read())
        os.chmod(target, stat.S_IMODE(found.st_mode))
        os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))
    except OSError:
        return


def _fill_dev(dev: str) -> None:
    for name in _DEVICES:
        os.mknod(f"{dev}/{name}")
        _mount(f"/dev/{name}", f"{dev}/{name}", None, _BIND)
    for name, target in (("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        os.symlink(f"/proc/self/{target}", f"{dev}/{name}")
    os.mkdir(f"{dev}/shm")
    os.chmod(f"{dev}/shm", 0o1777)


def _fill_proc(proc: str) -> None:
    """Mount /proc with everything but processes read-only: the host's root owns it, who may be root here too."""
    flags = _NOSUID | _NODEV | _NOEXEC
    _mount("proc", proc, "proc", flags)
    # Since Linux 6.14 this limits the processes of this pid namespace alone; before, it is a setting of the host.
    if tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2]) >= (6, 14):
        _write(f"{proc}/sys/kernel/pid_max", "1024")
    for name in os.listdir(proc):
        entry = f"{proc}/{name}"
        if not name.isdigit() and not os.path.islink(entry):
            _mount(entry, entry, None, _BIND)
            _mount(None, entry, None, _BIND | _REMOUNT | _RDONLY | flags)


def _change_root(root: str) -> None:
    _mount(root, root, None, _BIND | _REC)
    os.chdir(root)
    number = _PIVOT_ROOT.get(os.uname().machine)
    if number is None:
        raise OSError(0, "pivot_root is not known for this processor", os.uname().machine)
    _check(_libc.syscall(number, b".", b"."), "pivot_root")
    _check(_libc.umount2(b".", _DETACH), "umount of the old root")
    os.chdir("/")


def _set_limits(options: dict[str, int]) -> None:
    """Set the limits that every process inside inherits."""
    _limit(resource.RLIMIT_NPROC, options["processes"])
    _limit(resource.RLIMIT_FSIZE, options["file_mb"] << 20)
    _limit(resource.RLIMIT_AS, options["memory_mb"] << 20)
    _limit(resource.RLIMIT_NOFILE, 1024)
    _limit(resource.RLIMIT_CORE, 0)
    signal.alarm(options["max_age_s"])
    signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    os.umask(0o022)
    for capability in range(_LAST_CAPABILITY + 1):
        if capability not in _KEPT_CAPABILITIES:
            _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")


def _limit(kind: int, value: int) -> None:
    hard = resource.getrlimit(kind)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))


def _serve(control: socket.socket) -> None:
    """Start the requested processes and report their ends, until the worker ends."""
    wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake_write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, int] = {}
    while True:
        ready = select.select([control.fileno(), wake_read], [], [])[0]
        if wake_read in ready:
            os.read(wake_read, 4096)
            _reap(control, running)
        if control.fileno() in ready:
            request = _receive(control)
            if request is None:
                return
            number, start = request
            try:
                running[start()] = number
            except OSError as error:
                _send(control, {"id": number, "failed": str(error)})
                continue
            _send(control, {"id": number, "started": True})


def _receive(control: socket.socket) -> tuple[int, Callable[[], int]] | None:
    try:
        header, streams, _, _ = socket.recv_fds(control, 4, 2)
    except OSError:
        return None
    if len(header) < 4 or len(streams) != 2:
        return None
    left, body = int.from_bytes(header, "big"), bytearray()
    while left > len(body):
        chunk = control.recv(left - len(body))
        if not chunk:
            return None
        body += chunk
    number, argv, env = marshal.loads(body)
    return number, lambda: _start(argv, env, streams)


def _start(argv: list[str], env: dict[str, str], streams: list[int]) -> int:
    try:
        pid = os.fork()
        if pid == 0:
            _execute(argv, env, streams)
    finally:
        for stream in streams:
            os.close(stream)
    return pid


def _execute(argv: list[str], env: dict[str, str], streams: list[int]) -> None:
    """In the child: execute the program; on failure print the reason, and exit with status 127 as a shell does."""
    status = 127
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number in (signal.SIGPIPE, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)  # the worker may have been started with these signals ignored
        for target, source in enumerate((streams[0], streams[1], streams[1])):
            os.dup2(source, target)
        os.closerange(3, 1024)
        os.execvpe(argv[0], argv, env)
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(status)


def _reap(control: socket.socket, running: dict[int, int]) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        if pid in running:
            code = os.waitstatus_to_exitcode(status)
            _send(control, {"id": running.pop(pid), "exit": code if code >= 0 else 128 - code})


def _send(control: socket.socket, answer: dict[str, int | str]) -> None:
    fields = ", ".join(f'"{name}": {_json(value)}' for name, value in answer.items())
    try:
        control.sendall(f"{{{fields}}}\n".encode())
    except OSError:
        os._exit(0)


def _json(value: int | str) -> str:
    """As JSON; what that would escape is a question mark in a text."""
    if isinstance(value, str):
        return "".join(['"', *(each if each.isprintable() and each not in '"\\' else "?" for each in value), '"'])
    return str(value).lower()


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    arguments = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    _check(_libc.mount(*arguments, ctypes.c_ulong(flags), None if data is None else data.encode()), f"mount {target}")


def _check(result: int, what: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), what)


if __name__ == "__main__":
    pairs = (each.split("=") for each in sys.argv[2:])
    main(socket.socket(fileno=int(sys.argv[1])), {name: int(value) for name, value in pairs})
