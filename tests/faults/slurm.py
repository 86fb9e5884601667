"""A SLURM of one node on this machine: `python tests/faults/slurm.py start DIR`, later `… stop DIR`.

Controller, node daemon and munge run on loopback, with files in a folder of their own and without accounting. The
partition `high` preempts jobs of `low`, which are queued again; they start ten seconds later, elsewhere two minutes
(`cred_expire`). `install` adds Debian's packages, as root.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel")
PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
CONFIGURATION = """\
ClusterName=grokscope
SlurmctldHost={node}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=10
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=1
KillWait=10
SchedulerParameters=sched_interval=2,batch_sched_delay=0
SlurmdParameters=config_overrides
NodeName={node} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=low Nodes=ALL Default=YES PriorityTier=1 State=UP
PartitionName=high Nodes=ALL PriorityTier=10 State=UP
"""


def missing() -> list[str]:
    """Programs that SLURM needs and this machine does not have."""
    return [program for program in PROGRAMS if shutil.which(program, path=PATH) is None]


def install() -> None:
    """Install Debian's packages where they are missing, or say how."""
    if not missing():
        return
    if os.getuid() == 0 and shutil.which("apt-get"):
        for words in (["update"], ["install", "-y", "--no-install-recommends", "slurm-wlm", "munge"]):
            subprocess.run(
                ["apt-get", "-qq", *words],
                env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=300,
                check=False,
            )
    if missing():
        print("no SLURM: its tests are skipped; install it with: sudo apt-get install slurm-wlm munge")


def free_ports(count: int) -> list[int]:
    """Ports on which nothing listens, so that two clusters can run at once."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in sockets]


@dataclass(frozen=True)
class Slurm:
    """A cluster of one node whose files are in `folder`."""

    folder: Path

    @property
    def node(self) -> str:
        """The node's name."""
        return socket.gethostname().partition(".")[0]

    @property
    def configuration(self) -> Path:
        """What `SLURM_CONF` has to name for SLURM's commands to find this cluster."""
        return self.folder / "slurm.conf"

    def start(self) -> None:
        """Start munge, the controller and the node, and wait until the node takes jobs."""
        for name in (".", "state", "spool"):
            (self.folder / name).mkdir(mode=0o755, parents=True, exist_ok=True)
        controller_port, node_port = free_ports(2)
        self.configuration.write_text(
            CONFIGURATION.format(
                folder=self.folder,
                node=self.node,
                user="root" if os.getuid() == 0 else os.environ["USER"],
                controller_port=controller_port,
                node_port=node_port,
            )
        )
        key = self.folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(128))
        files = {"key-file": "munge.key", "socket": "munge.socket", "pid-file": "munged.pid", "log-file": "munged.log"}
        places = [f"--{option}={self.folder}/{name}" for option, name in {**files, "seed-file": "munged.seed"}.items()]
        self.command("munged", "--force", *places)
        self.start_controller()
        self.command("slurmd", "-c")
        self.wait_until_ready()

    def start_controller(self) -> None:
        """Start the controller; it knows the jobs it knew before."""
        self.command("slurmctld")

    def stop_controller(self) -> None:
        """Stop the controller; running jobs go on."""
        self._end("slurmctld")

    def stop(self) -> None:
        """Cancel all jobs and end the three daemons."""
        if self._process("slurmctld"):
            self.command("scancel", "--quiet", "--user", str(os.getuid()), check=False)
            for _ in range(60):
                if not self.command("squeue", "--noheader", check=False):
                    break
                time.sleep(0.5)
        for program in ("slurmd", "slurmctld", "munged"):
            self._end(program)

    def wait_until_ready(self) -> None:
        """Wait until the node takes jobs."""
        for _ in range(60):
            state = self.command("sinfo", "--noheader", "--format=%T", check=False).split()
            if state and set(state) <= {"idle", "mixed", "allocated"}:
                return
            time.sleep(0.5)
        raise RuntimeError(f"SLURM did not start; see {self.folder}/slurmctld.log and {self.folder}/slurmd.log")

    def command(self, program: str, *words: str, check: bool = True) -> str:
        """What one of SLURM's programs prints."""
        environment = {**os.environ, "PATH": PATH, "SLURM_CONF": str(self.configuration)}
        with (self.folder / "commands.log").open("a") as errors:
            found = shutil.which(program, path=PATH) or program
            done = subprocess.run(
                [found, *words],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment,
                timeout=60,
                check=check,
            )
        return done.stdout

    def _process(self, program: str) -> int | None:
        """The daemon's process, if it is one of ours and alive."""
        try:
            number = int((self.folder / f"{program}.pid").read_text())
            name = Path(f"/proc/{number}/comm").read_text().strip()
        except (OSError, ValueError):
            return None
        return number if name == program else None

    def _end(self, program: str) -> None:
        process = self._process(program)
        if process is None:
            return
        os.kill(process, signal.SIGTERM)
        for _ in range(100):
            if self._process(program) is None:
                return
            time.sleep(0.2)
        os.kill(process, signal.SIGKILL)


def main(words: list[str]) -> int:
    """`install`, `start DIR` or `stop DIR`."""
    match words:
        case ["install"]:
            install()
        case ["start", folder]:
            if absent := missing():
                print(f"SLURM needs {', '.join(absent)}: sudo apt-get install slurm-wlm munge", file=sys.stderr)
                return 2
            slurm = Slurm(Path(folder).absolute())
            slurm.start()
            print(f"export SLURM_CONF={slurm.configuration}")
        case ["stop", folder]:
            Slurm(Path(folder).absolute()).stop()
        case _:
            print("use: python tests/faults/slurm.py install | start DIR | stop DIR", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
