"""A real SLURM on this machine for as long as a test takes: munged, slurmctld and slurmd.

All of it is in one folder and runs as whoever runs the tests; nothing of the system is touched.
As a script, ``python slurm_helpers.py FOLDER``, it keeps SLURM running until Ctrl-C.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

#: What Debian's packages slurm-wlm and munge bring.
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scancel", "scontrol", "squeue")

CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={controller_port}
SlurmdPort={node_port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
KillWait=2
SchedulerParameters=batch_sched_delay=0,sched_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=100000 State=UNKNOWN
PartitionName=normal Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> list[str]:
    """Return the programs that are not installed."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    return [program for program in PROGRAMS if shutil.which(program, path=path) is None]


class Slurm:
    """One node with so many CPUs, whatever the machine has."""

    def __init__(self, folder: Path, *, cpus: int) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "PATH": os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]),
            "SLURM_CONF": str(folder / "slurm.conf"),
        }
        for name in ("state", "spool"):
            (folder / name).mkdir()
        key = folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        (folder / "slurm.conf").write_text(
            CONFIGURATION.format(
                host=socket.gethostname().split(".")[0],
                user=pwd.getpwuid(os.getuid()).pw_name,
                folder=folder,
                cpus=cpus,
                controller_port=_free_port(),
                node_port=_free_port(),
            )
        )
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start the three services and wait until the node takes jobs."""
        self._launch(
            *("munged", "--foreground", "--force", f"--key-file={self.folder}/munge.key"),
            *(f"--socket={self.folder}/munge.socket", f"--pid-file={self.folder}/munge.pid"),
            *(f"--log-file={self.folder}/munge.log", f"--seed-file={self.folder}/munge.seed"),
        )
        self._await(lambda: (self.folder / "munge.socket").exists())
        self._launch("slurmctld", "-D", "-i")
        self._launch("slurmd", "-D")
        self._await(lambda: "idle" in self.call("sinfo", "--noheader", "--format=%T"))

    def call(self, *command: str) -> str:
        """Return what a command of SLURM prints; nothing if it fails."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        return done.stdout

    def jobs(self) -> list[str]:
        """Return the numbers of the jobs that wait or run."""
        return self.call("squeue", "--noheader", "--format=%i").split()

    def running_jobs(self) -> list[str]:
        """Return the numbers of the jobs that run."""
        return self.call("squeue", "--noheader", "--states=RUNNING", "--format=%i").split()

    def hold(self) -> None:
        """Take jobs, but start none until :meth:`release`."""
        self.call("scontrol", "update", "PartitionName=normal", "State=DOWN")

    def release(self) -> None:
        """Start jobs again, also those that wait."""
        self.call("scontrol", "update", "PartitionName=normal", "State=UP")

    def close(self) -> None:
        """Cancel all jobs, then end the services."""
        self.call("scancel", "--state=PENDING", "--partition=normal")
        self.call("scancel", "--partition=normal")
        with contextlib.suppress(AssertionError):
            self._await(lambda: not self.call("squeue", "--noheader").strip(), 20)
        for process in reversed(self._processes):
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()

    def _launch(self, *command: str) -> None:
        with open(self.folder / f"{command[0]}.output", "ab") as output:
            self._processes.append(
                subprocess.Popen(
                    command,
                    env=self.environment,
                    cwd=self.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                )
            )

    def _await(self, condition: object, seconds: float = 60.0) -> None:
        assert callable(condition)
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, self.logs()
            time.sleep(0.1)

    def logs(self) -> str:
        """Return what the services have said."""
        files = [*self.folder.glob("*.log"), *self.folder.glob("*.output")]
        return "\n".join(f"--- {file.name}\n{file.read_text()[-3000:]}" for file in files)


@contextlib.contextmanager
def slurm(folder: Path, *, cpus: int) -> Iterator[Slurm]:
    """Have a SLURM in a folder, which must have a short path: there will be a socket in it."""
    service = Slurm(folder, cpus=cpus)
    try:
        service.start()
        yield service
    finally:
        service.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    folder = Path(sys.argv[1]).absolute()
    folder.mkdir(parents=True)
    with slurm(folder, cpus=16), contextlib.suppress(KeyboardInterrupt):
        print(f"export SLURM_CONF={folder}/slurm.conf", flush=True)
        while True:
            time.sleep(60)
