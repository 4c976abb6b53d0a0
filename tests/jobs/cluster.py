"""Runs a Slurm cluster of two nodes on this host, in a separate directory, for the time of a test."""

import os
import pathlib
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time

DAEMONS = ("munged", "slurmctld", "slurmd")
PROGRAMS = ("sbatch", "srun", "scontrol", "squeue", "scancel")
# Nodes are configured like production nodes. Their GPUs are null devices, because Slurm offers a GPU only if its device exists.
NODE_CPUS, NODE_GPUS = 288, 4
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")  # states of a job
PBS_PLUGIN = pathlib.Path("/usr/lib/x86_64-linux-gnu/slurm-wlm/spank_pbs.so")
# mknod: character devices have a major and a minor number; 1, 3 is /dev/null.
NULL_DEVICE = os.makedev(1, 3)

CONFIGURATION = """\
ClusterName=mylostest
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={base}/munge.sock,cred_expire=5
CredType=cred/munge
SlurmctldPort={ports[0]}
# The names that MPI gives what its ranks share come from the job's number: no two clusters of a machine have the same ones.
FirstJobId={ports[0]}
SlurmdPort={ports[1]}
SlurmctldPidFile={base}/slurmctld.pid
SlurmdPidFile={base}/slurmd.%n.pid
StateSaveLocation={base}/ctld
SlurmdSpoolDir={base}/spool.%n
TmpFS={base}/tmp.%n
SlurmctldLogFile={base}/slurmctld.log
SlurmdLogFile={base}/slurmd.%n.log
SlurmdParameters=config_overrides
SlurmdTimeout={slurmd_timeout}
MessageTimeout={message_timeout}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
TaskProlog={base}/prolog
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
KillWait=5
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SchedulerParameters=sched_interval=5,bf_interval=5,sched_min_interval=100000,batch_sched_delay=0
GresTypes=gpu
{pbs}
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs={cpus} RealMemory=10000 Feature=gpu Gres=gpu:{gpus} State=UNKNOWN
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[3]} CPUs={cpus} RealMemory=10000 Feature=gpu Gres=gpu:{gpus} State=UNKNOWN
PartitionName=debug Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
# partitions that scripts of sites name
PartitionName=acc Nodes=n1,n2 MaxTime=INFINITE State=UP
PartitionName=boost_usr_prod Nodes=n1,n2 MaxTime=INFINITE State=UP
PartitionName=booster Nodes=n1,n2 MaxTime=INFINITE State=UP
PartitionName=standard-g Nodes=n1,n2 MaxTime=INFINITE State=UP
PartitionName=batch Nodes=n1,n2 MaxTime=INFINITE State=UP
"""


def skip(reason):
    print(f"SKIPPED: {reason}")
    sys.exit(77)


def require_slurm(*more):
    """Skips the test if Slurm cannot start here."""
    missing = [name for name in (*DAEMONS, *PROGRAMS, *more) if shutil.which(name) is None]
    if missing:
        skip(f"no Slurm here: {', '.join(missing)} not installed (scripts/dependencies --test)")
    if os.geteuid() != 0:
        skip("Slurm's daemons are started by root only here")


def free_ports(count):
    """Returns ports that are free now."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


HANG_LIMIT = 600.0  # seconds; ends only what hangs, because the speed of a machine must not fail a test


def wait_for(what, condition, seconds=HANG_LIMIT, every=0.05):
    """Waits until the condition is true and returns its value. Errors: AssertionError with `what` after `seconds`."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds:.0f} s for {what}")
        time.sleep(every)


class Cluster:
    """A context manager. Inside it nodes n1 and n2 are idle; afterwards all daemons and jobs are gone."""

    def __init__(self, pbs=False, slurmd_timeout=300):
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="mylos-slurm."))
        self.pbs = pbs
        self.slurmd_timeout = slurmd_timeout
        self.environment = self.clean_environment()

    def clean_environment(self):
        """Returns the environment without the variables of a job that runs this test."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "SBATCH", "PBS_", "PMIX", "OMPI_", "OMP_"))}
        # Both nodes are this host, so their shared memory files would clash. Other interfaces are not needed.
        kept.update(OMPI_MCA_btl="self,tcp", OMPI_MCA_btl_tcp_if_include="lo", OMPI_MCA_oob_tcp_if_include="lo",
                    OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                    OMP_PROC_BIND="false", OMP_WAIT_POLICY="passive",
                    SLURM_CONF=str(self.base / "slurm.conf"), XDG_CACHE_HOME=str(self.base / "cache"))
        return kept

    def __enter__(self):
        try:
            self.start()
        except (AssertionError, OSError, subprocess.SubprocessError) as error:
            self.print_logs()
            self.stop()
            skip(f"Slurm cannot start here: {error}")
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind, error, trace):
        if kind is not None:
            self.print_logs()
        self.stop()

    def start(self):
        self.base.chmod(0o755)
        for name in ("ctld", "spool.n1", "spool.n2", "tmp.n1", "tmp.n2", "munge", "gpus"):
            (self.base / name).mkdir()
        (self.base / "munge").chmod(0o700)
        key = self.base / "munge" / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        for i in range(NODE_GPUS):
            os.mknod(self.base / "gpus" / f"gpu{i}", stat.S_IFCHR | 0o666, NULL_DEVICE)
        (self.base / "gres.conf").write_text(
            f"NodeName=n[1-2] Name=gpu File={self.base}/gpus/gpu[0-{NODE_GPUS - 1}]\n")
        # Each job has its own temporary directory, as at sites. Launchers keep their sessions there, and simultaneous jobs
        # must not share one. A PBS server also provides a file with a line for each rank.
        (self.base / "prolog").write_text(
            '#!/bin/sh\nmkdir -p ' + str(self.base) + '/tmp.$SLURM_JOB_ID && echo "export TMPDIR=' + str(self.base) +
            '/tmp.$SLURM_JOB_ID"\n[ -n "$PBS_JOBID" ] || exit 0\nfile=' + str(self.base) + '/nodes.$SLURM_JOB_ID\n'
            'for node in $(scontrol show hostnames "$SLURM_JOB_NODELIST"); do\n'
            '  i=0; while [ "$i" -lt "$((SLURM_NTASKS / SLURM_JOB_NUM_NODES))" ]; do echo "$node"; i=$((i + 1)); done\n'
            'done >"$file"\necho "export PBS_NODEFILE=$file"\n')
        (self.base / "prolog").chmod(0o755)
        (self.base / "plugstack.conf").write_text(f"required {PBS_PLUGIN}\n")
        pbs = f"JobSubmitPlugins=pbs\nPlugStackConfig={self.base}/plugstack.conf" if self.pbs else ""
        (self.base / "slurm.conf").write_text(CONFIGURATION.format(
            base=self.base, host=socket.gethostname().split(".")[0], ports=free_ports(4), cpus=NODE_CPUS, gpus=NODE_GPUS,
            slurmd_timeout=self.slurmd_timeout, message_timeout=min(10, self.slurmd_timeout - 2), pbs=pbs))
        self.run("munged", f"--key-file={key}", f"--socket={self.base}/munge.sock", f"--pid-file={self.base}/munged.pid",
                 f"--log-file={self.base}/munge/munged.log", f"--seed-file={self.base}/munge/seed")
        self.run("slurmctld", "-f", self.environment["SLURM_CONF"], "-c")
        for node in ("n1", "n2"):
            self.start_node(node)
        wait_for("two idle nodes", lambda: self.states() == ["idle", "idle"])

    def start_node(self, node):
        self.run("slurmd", "-N", node, "-f", self.environment["SLURM_CONF"])

    def states(self):
        answer = subprocess.run(["sinfo", "-h", "-N", "-p", "debug", "-o", "%t"], env=self.environment, capture_output=True, text=True)
        return answer.stdout.split()

    def stop(self):
        if (self.base / "slurmctld.pid").exists():
            subprocess.run(["scancel", "--signal=KILL", "--full", "--state=RUNNING"], env=self.environment, capture_output=True)
            subprocess.run(["scancel", "--user=root"], env=self.environment, capture_output=True)
        for name in ("slurmd.n1.pid", "slurmd.n2.pid", "slurmctld.pid", "munged.pid"):
            self.stop_daemon(name)
        self.kill_rest()
        shutil.rmtree(self.base, ignore_errors=True)

    def stop_daemon(self, name):
        """Asks a daemon to end, and waits until its PID file is gone."""
        file = self.base / name
        if not file.exists():
            return
        try:
            os.kill(int(file.read_text()), 15)
            wait_for(name, lambda: not file.exists(), 10)
        except (ProcessLookupError, ValueError, AssertionError):
            pass

    def processes(self, *words):
        """Returns the processes of this cluster (its directory is in their environment) whose command line has all the words."""
        found = []
        mark = f"SLURM_CONF={self.base}/slurm.conf".encode()
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if not entry.name.isdigit() or int(entry.name) == os.getpid():
                    continue
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if mark in (entry / "environ").read_bytes() and all(word in command for word in words):
                    found.append(int(entry.name))
            except OSError:
                continue  # it has just ended
        return found

    def kill_rest(self):
        for process in self.processes():
            try:
                os.kill(process, 9)
            except ProcessLookupError:
                pass

    def print_logs(self):
        for log in sorted(self.base.glob("*.log")):
            print(f"-- {log.name}\n" + "\n".join(log.read_text(errors="replace").splitlines()[-60:]))

    def run(self, *words, check=True, **variables):
        done = subprocess.run(words, env={**self.environment, **variables}, capture_output=True, text=True, timeout=HANG_LIMIT)
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(words)}: exit code {done.returncode}: {done.stderr}{done.stdout}")
        return done

    def submit(self, script, *options, **variables):
        """Submits a script. Returns the number of the job."""
        return self.run("sbatch", "--parsable", *options, str(script), **variables).stdout.strip().split(";")[0]

    def job(self, number):
        """Returns scontrol's description of a job as a dictionary."""
        answer = self.run("scontrol", "-o", "show", "job", number).stdout
        return dict(word.split("=", 1) for word in answer.split() if "=" in word)

    def state(self, number):
        return self.job(number)["JobState"]

    def wait_for_state(self, number, *states):
        wait_for(f"job {number} to be {' or '.join(states)}, which is {self.job(number)['JobState']}",
                 lambda: self.state(number) in states, every=0.1)
        return self.job(number)

    def wait_for_end(self, number):
        return self.wait_for_state(number, *ENDED)
