"""A real SLURM cluster on this machine: its controller, munge, and two nodes, each a slurmd of its own."""

import contextlib
import os
import re
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil

from tests.database_servers import program
from tests.e2e.proctor import exits
from tests.e2e.shared_folder import BINDFS
from tests.pace import slowly, until
from tests.support import free_port

NODES = ("n1", "n2")
OVER = ("CANCELLED", "COMPLETED", "FAILED", "NODE_FAIL", "TIMEOUT")
CONF = """\
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SlurmdTimeout=20
KillWait=30
SchedulerParameters=sched_interval=2,batch_sched_delay=1
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Cluster:
    """The cluster's daemons, and what runs by them: all have the cluster's SLURM_CONF."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.variables = {"SLURM_CONF": str(folder / "slurm.conf")}
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Start it, and wait until both nodes take jobs."""
        folder, host = self.folder, socket.gethostname()
        key, conf = folder / "munge.key", CONF.format(host=host, port=free_port(), folder=folder)
        for node in NODES:
            conf += f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={free_port()} CPUs=4\n"
        (folder / "slurm.conf").write_text(conf)
        (folder / "state").mkdir()
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(128))
        files = {"key-file": "munge.key", "socket": "munge.socket", "pid-file": "munge.pid", "log-file": "munge.log"}
        files["seed-file"] = "munge.seed"
        options = [f"--{option}={folder / file}" for option, file in files.items()]
        self._daemon("munged", "--foreground", "--force", *options)
        until((folder / "munge.socket").exists, 30)
        self._daemon("slurmctld", "-D", "-c")
        for node in NODES:
            self.start_node(node)

    def start_node(self, node: str, *within: str) -> None:
        """Start a node's slurmd, `within` a command that starts it, and wait until it takes jobs."""
        self._daemon(*within, str(program("slurmd")), "-D", "-N", node, name=node)
        until(lambda: self.does("sinfo", "-h", "-n", node, "-o", "%T") == "idle", 60, lambda: self.does("sinfo"))

    def _daemon(self, command: str, *options: str, name: str = "") -> None:
        with (self.folder / f"{name or command}.out").open("ab") as log:
            self._daemons[name or command] = subprocess.Popen(
                [str(program(command)), *options],
                env={**os.environ, **self.variables},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def does(self, *command: str) -> str:
        """What a command of SLURM prints, also where it fails: a job that is gone has no state."""
        full, within = {**os.environ, **self.variables}, slowly(60)
        done = subprocess.run(command, env=full, capture_output=True, text=True, timeout=within, check=False)
        return done.stdout.strip()

    def submit(self, cwd: Path, *options: str, **variables: str) -> str:
        """The job of `proctor slurm plan.yaml --name r`, on both nodes if the options don't say otherwise."""
        command = ("slurm", "plan.yaml", "--name", "r", "--nodes", "2", *options)
        said = exits(0, *command, cwd=cwd, **self.variables, **variables).stdout
        found = re.match(r"job (\d+): proctor status", said)
        assert found is not None, said
        return found[1]

    def fact(self, job: str, name: str) -> str:
        """A field of `scontrol show job`, such as JobState."""
        found = re.search(rf"\b{name}=(\S*)", self.does("scontrol", "show", "job", job))
        return found[1] if found else ""

    def ended(self, job: str, cwd: Path, state: str = "COMPLETED", within_s: float = 180) -> None:
        """Until a job is over, in this state; a requeued one need not wait for its turn."""

        def over() -> bool:
            if self.fact(job, "Reason") == "BeginTime":
                self.does("scontrol", "update", f"JobId={job}", "StartTime=now")
            return self.fact(job, "JobState") in OVER

        until(over, within_s, lambda: logs(cwd))
        assert self.fact(job, "JobState") == state, logs(cwd)

    def processes(self, node: str | None = None) -> list[psutil.Process]:
        """What runs in jobs, on a node or on all."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                given = process.environ()
                here = given.get("SLURM_CONF") == self.variables["SLURM_CONF"] and "SLURM_JOB_ID" in given
                if here and node in (None, given.get("SLURMD_NODENAME")) and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    @contextlib.contextmanager
    def own_mount(self, node: str, server: Path, mounted: Path) -> Iterator[None]:
        """While inside, a node sees a shared folder by a mount of its own, as another machine does."""
        self.lose(node)
        again = shlex.join([*BINDFS, str(server), str(mounted)])
        script = f'umount --lazy {shlex.quote(str(mounted))} && {again} && exec "$@"'
        self.start_node(node, "unshare", "--mount", "sh", "-c", script, "sh")
        try:
            yield
        finally:
            inside = f"--target={self._daemons[node].pid}"
            subprocess.run(["nsenter", inside, "--mount", "umount", "--lazy", mounted], check=True)
            self.lose(node)
            self.start_node(node)

    def lose(self, node: str) -> None:
        """kill -9 of all that runs on a node, as when it loses its power."""
        self._daemons[node].kill()
        self._daemons[node].wait()
        for process in self.processes(node):
            with contextlib.suppress(psutil.Error):
                above = [each for each in process.parents() if each.name() == "slurmstepd"]
                for each in (*above, process):
                    each.kill()

    def stop(self) -> None:
        """End its jobs and its daemons."""
        for job in self.does("squeue", "-h", "-o", "%A").split():
            self.does("scancel", job)
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                process.kill()
        for daemon in reversed(self._daemons.values()):
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(timeout=slowly(30))
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


def logs(cwd: Path) -> str:
    """What the jobs in a folder have written."""
    found = sorted((cwd / "runs").glob("*/slurm/**/*.log"))
    return "\n".join(f"== {file}\n{file.read_text(errors='replace')[-3000:]}" for file in found)


@contextlib.contextmanager
def slurm_cluster() -> Iterator[Cluster]:
    """Two nodes, ended and removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="proctor-slurm-", dir="/tmp"))  # a socket lies there: the path must be short
    folder.chmod(0o755)  # munged asks for it
    cluster = Cluster(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)
