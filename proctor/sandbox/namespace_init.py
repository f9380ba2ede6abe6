"""The first process of a namespace sandbox: builds its root file system, then starts processes on request.

It runs as a script (`python -I namespace_init.py FD OPTIONS`), so it imports only the standard library. FD is a stream
socket to the worker; when the worker closes it, or dies, this process ends, and the kernel ends all others with it. A
request is a 4-byte big-endian length, sent with two descriptors (input, output), and a JSON object {id, argv, env}. An
answer is a line of JSON: {"ready": true} or {"failed": reason} for the sandbox; for a process {"id", "started": true},
{"id", "failed": reason} or {"id", "exit": status}.
"""

import ctypes
import json
import os
import resource
import select
import shutil
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

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
        Path(path).write_text(text)
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
    root = Path(_BASE, "root")
    for name in ("upper", "work", "root"):
        Path(_BASE, name).mkdir(mode=0o755)
    for name in _EMPTY:
        (root / name).mkdir(mode=0o755)
    for name in ("tmp", "var/tmp"):
        (root / name).chmod(0o1777)
    (root / "root").chmod(0o700)
    for name, target in links:
        (root / name).symlink_to(target)
    layers = f"lowerdir=/usr,upperdir={_BASE}/upper,workdir={_BASE}/work,userxattr"
    _mount("overlay", f"{root}/usr", "overlay", _NOSUID | _NODEV, layers)
    _fill_etc(root)
    _fill_dev(root / "dev")
    _fill_proc(root / "proc")
    _change_root(str(root))


def _fill_etc(root: Path) -> None:
    for name in _ETC:
        source, target = Path("/etc", name), root / "etc" / name
        try:
            if source.is_dir():
                shutil.copytree(source, target, symlinks=True, ignore_dangling_symlinks=True)
            else:
                shutil.copy2(source, target, follow_symlinks=name == "os-release")
        except (OSError, shutil.Error):
            continue  # this host lacks the file, or we may not read it
    users = [line.split(":")[0] for line in (root / "etc/passwd").read_text().splitlines()]
    groups = [line.split(":")[0] for line in (root / "etc/group").read_text().splitlines()]
    (root / "etc/shadow").write_text("".join(f"{user}:*:19000:0:99999:7:::\n" for user in users))
    (root / "etc/gshadow").write_text("".join(f"{group}:*::\n" for group in groups))
    (root / "etc/hostname").write_text("sandbox\n")
    socket.sethostname("sandbox")


def _fill_dev(dev: Path) -> None:
    for name in _DEVICES:
        (dev / name).touch()
        _mount(f"/dev/{name}", str(dev / name), None, _BIND)
    for name, target in (("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        (dev / name).symlink_to(f"/proc/self/{target}")
    (dev / "shm").mkdir()
    (dev / "shm").chmod(0o1777)


def _fill_proc(proc: Path) -> None:
    """Mount /proc with everything but processes read-only: the host's root owns it, who may be root here too."""
    flags = _NOSUID | _NODEV | _NOEXEC
    _mount("proc", str(proc), "proc", flags)
    # Since Linux 6.14 this limits the processes of this pid namespace alone; before, it is a setting of the host.
    if tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2]) >= (6, 14):
        _write(f"{proc}/sys/kernel/pid_max", "1024")
    for entry in proc.iterdir():
        if not entry.name.isdigit() and not entry.is_symlink():
            _mount(str(entry), str(entry), None, _BIND)
            _mount(None, str(entry), None, _BIND | _REMOUNT | _RDONLY | flags)


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
    request = json.loads(body)
    return int(request["id"]), lambda: _start(request["argv"], request["env"], streams)


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


def _send(control: socket.socket, answer: dict[str, object]) -> None:
    try:
        control.sendall(json.dumps(answer).encode() + b"\n")
    except OSError:
        os._exit(0)


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    arguments = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    _check(_libc.mount(*arguments, ctypes.c_ulong(flags), None if data is None else data.encode()), f"mount {target}")


def _check(result: int, what: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), what)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])), json.loads(sys.argv[2]))
