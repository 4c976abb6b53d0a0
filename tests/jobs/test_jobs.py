"""Runs jobscripts/ on a Slurm that is brought up for it: one test a call, each with a Slurm of its own.

    test_jobs.py NAME MYLOS SCRIPTS SLOW_DISK    SCRIPTS: the folder of job scripts; SLOW_DISK: mylos_test_slow_disk's library

Exit code 77, with the reason in a line, where Slurm cannot start here.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from cluster import ENDED, NODE_GPUS, PBS_PLUGIN, Cluster, require_slurm, skip, wait_for
import tiny

# Each node one rank of one thread: two ranks are what two processors carry.
TWO_NODES = ("--nodes=2", "--ntasks-per-node=1", "--cpus-per-task=1")
NO_GPUS = "--gpus-per-node=0"
TINY = "--lr 1e-3 --max-length 60 --doc-stride 20 --batch 6 --dropout 0.1 --gemm kokkos-kernels"
ENDLESS = 1_000_000
# A rank of Open MPI 4.1 sometimes crashes inside MPI_Init under srun (docs/jobs.md): the others then wait for a second only.
SRUN = "srun --mpi=pmix --wait=1"
CRASHED = "139"  # the exit code of signal 11


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


class Site:
    """A cluster with a model, questions and job scripts, as a user has them."""

    def __init__(self, cluster, mylos, scripts, slow_disk):
        self.cluster, self.mylos, self.scripts, self.slow_disk = cluster, mylos, pathlib.Path(scripts), slow_disk
        self.home = cluster.base / "home"
        self.home.mkdir()
        tiny.write_model(self.home / "model")
        tiny.write_questions(self.home / "train.json")

    def variables(self, output, options="", **more):
        return {"MODEL": str(self.home / "model"), "TRAIN": str(self.home / "train.json"), "OUTPUT": str(self.home / output),
                "MYLOS": self.mylos, "PRECISION": "float", "COMMUNICATOR": "auto", "OPTIONS": f"{TINY} {options}", **more}

    def submit(self, script, *options, **variables):
        return self.cluster.submit(self.scripts / "slurm" / script, *options, f"--output={self.home}/%x-%A.%a.out" if any(
            option.startswith("--array") for option in options) else f"--output={self.home}/%x-%j.out", **variables)

    def log(self, job, name="mylos"):
        file = self.home / f"{name}-{job}.out"
        return file.read_text() if file.exists() else ""

    def losses(self, output):
        file = self.home / output / "metrics.jsonl"
        lines = file.read_text().splitlines() if file.exists() else []
        rows = [json.loads(line) for line in lines[:-1] + [line for line in lines[-1:] if line.endswith("}")]]
        return {row["step"]: row["loss"] for row in rows if "loss" in row}

    def checkpoints(self, output):
        return sorted(file.name for file in (self.home / output / "checkpoints").glob("step-*.h5"))

    def wait_for_step(self, output, step):
        wait_for(f"step {step} of {output}", lambda: max(self.losses(output), default=0) >= step, 60)

    def ends_well(self, job, seconds=90):
        told = self.cluster.wait_for_end(job, seconds)
        expect(told["JobState"] == "COMPLETED", f"job {job}: {told['JobState']}, {told['ExitCode']}:\n{self.log(job)}")
        return told

    def ends_badly(self, job, code, seconds=90):
        told = self.cluster.wait_for_end(job, seconds)
        expect(told["ExitCode"].split(":")[0] == str(code), f"job {job}: {told['ExitCode']}:\n{self.log(job)}")

    def trains_well(self, variables):
        """Runs train-cpu.sbatch on both nodes, once more where a rank crashed before the run said anything; its job."""
        for _ in range(2):
            job = self.submit("train-cpu.sbatch", *TWO_NODES, **variables)
            told = self.cluster.wait_for_end(job)
            if told["ExitCode"].split(":")[0] != CRASHED or "\nmodel " in "\n" + self.log(job):
                break
            print(f"job {job}: a rank crashed inside MPI_Init:\n{self.log(job)}")
        self.ends_well(job)
        return job

    def whole_run(self, output, steps, **more):
        """The losses of an uninterrupted run on both nodes."""
        self.trains_well(self.variables(output, f"--steps {steps}", LAUNCHER=SRUN, **more))
        return self.losses(output)

    def slow_once(self, seconds):
        """A program that is mylos on a slow disk at a job's first start, and mylos at the next."""
        file = self.home / "slow-mylos"
        file.write_text(f'#!/bin/sh\n[ "${{SLURM_RESTART_COUNT:-0}}" -gt 0 ] ||\n  export LD_PRELOAD="{self.slow_disk}" '
                        f'MYLOS_SLOW_FILES=step- MYLOS_SLOW_SECONDS={seconds}\nexec "{self.mylos}" "$@"\n')
        file.chmod(0o755)
        return str(file)

    def fake(self, name, body):
        """A program that stands in for mylos."""
        file = self.home / name
        file.write_text(f"#!/bin/sh\n{body}\n")
        file.chmod(0o755)
        return str(file)


def test_both_nodes(site):
    """MPI over two nodes by srun and by mpirun: the same losses; the log says where each rank is."""
    job = site.trains_well(site.variables("srun", "--steps 8", DEV=str(site.home / "train.json")))
    log = site.log(job)
    for text in ("ranks    2 on 2 nodes", f"\njob      Slurm {job}\n", "\nrank     0: n1, processors ",
                 "\nrank     1: n2, processors "):
        expect(log.count(text) == 1, f"no '{text}' in {log}")
    job = site.submit("train-cpu.sbatch", *TWO_NODES,
                      **site.variables("mpirun", "--steps 8", LAUNCHER="mpirun --bind-to none", MODE="sharded"))
    site.ends_well(job)
    expect("2 on 2 nodes" in site.log(job) and "; sharded\n" in site.log(job), site.log(job))
    one, other = site.losses("srun"), site.losses("mpirun")
    expect(len(one) == 8 and all(abs(one[i] - other[i]) < 1e-5 for i in one), f"{one} {other}")


def test_wrong_launcher(site):
    """srun without the MPI's own type: no rank takes itself for the only one."""
    job = site.submit("train-cpu.sbatch", *TWO_NODES, **site.variables("run", "--steps 8", LAUNCHER="srun --mpi=none"))
    site.ends_badly(job, 1)
    expect(not (site.home / "run").exists(), site.log(job))


def test_doctor(site):
    """mylos doctor on two nodes: one report; and where the first rank never comes to MPI, the other says so."""
    words = ("srun", "--nodes=2", "--ntasks-per-node=1", "--cpus-per-task=1")
    doctor = (site.mylos, "doctor", "--output", str(site.home))
    report = json.loads(site.cluster.run(*words, "--mpi=pmix", "--time=60", *doctor, "--json").stdout)
    expect((report["ranks"], report["nodes"], report["errors"]) == (2, 2, 0), report)
    texts = {finding["name"]: finding["text"] for finding in report["findings"]}
    expect(texts["shared"] == "the first rank's file is seen" and "left by the scheduler" in texts["job"], report)
    lost = site.fake("lost", f'[ "$SLURM_PROCID" = 1 ] || exec sleep 30\nexec "{site.mylos}" "$@"')
    alone = site.cluster.run(*words, "--mpi=pmix", "--wait=1", lost, *doctor[1:], "--collective-timeout", "2", check=False)
    expect(alone.returncode != 0 and "mylos: error: rank 1 on n2: MPI: " in alone.stderr, f"{alone.stdout}{alone.stderr}")


def test_early_end(site):
    """A rank that ends before MPI begins does not leave the others in it: the scripts' srun --wait, here with less time."""
    ends = site.fake("ends", f'[ "$SLURM_PROCID" = 1 ] && exit 3\nexec "{site.mylos}" "$@"')
    job = site.submit("train-cpu.sbatch", *TWO_NODES,
                      **site.variables("run", "--steps 8", MYLOS=ends, LAUNCHER=SRUN))
    site.ends_badly(job, 137)
    expect("task 1: Exited with exit code 3" in site.log(job), site.log(job))


def test_production_shapes(site):
    """What the scripts ask for as they are, and with the options that they name."""
    cases = [("train-cpu.sbatch", [], 1, 2, 32, 0), ("train-cpu.sbatch", ["--nodes=2"], 2, 4, 64, 0),
             ("train-gpu.sbatch", [], 1, 4, 32, 4), ("train-gpu.sbatch", ["--nodes=2"], 2, 8, 64, 8),
             ("train-gpu.sbatch", ["--ntasks-per-node=1", "--gpus-per-node=1"], 1, 1, 8, 1),
             ("requeue.sbatch", [], 1, 4, 32, 4), ("requeue.sbatch", ["--nodes=2"], 2, 8, 64, 8),
             ("compare.sbatch", [], 1, 4, 32, 4), ("compare.sbatch", [NO_GPUS], 1, 4, 32, 0)]
    for script, options, nodes, ranks, cpus, gpus in cases:
        path = site.scripts / "slurm" / script
        said = site.cluster.run("sbatch", "--test-only", *options, str(path)).stderr
        expect(f"using {cpus} processors on nodes" in said, f"{script} {options}: {said}")
        job = site.submit(script, *options, "--hold", **site.variables("run"))
        told = site.cluster.job(job)
        asked = dict(each.split("=") for each in told["TRES"].split(",") if "=" in each)
        expect((told["NumNodes"].split("-")[0], told["NumTasks"], asked["cpu"]) == (str(nodes), str(ranks), str(cpus)), f"{script} {options}: {told}")
        expect(int(asked.get("gres/gpu", 0)) == gpus or int(told.get("TresPerNode", "gpu:0").split(":")[-1]) * nodes == gpus,
               f"{script} {options}: {told}")
        site.cluster.run("scancel", job)


def test_four_ranks_of_a_node(site):
    """train-gpu.sbatch as it is: four ranks, each sees the four GPUs of its node."""
    sees = site.fake("sees", f'echo "$SLURM_PROCID of $SLURM_NTASKS: $CUDA_VISIBLE_DEVICES, $SLURM_CPUS_PER_TASK, $*"')
    job = site.submit("train-gpu.sbatch", **site.variables("run", "", MYLOS=sees, PRECISION="half", BATCH_SIZE_PER_DEVICE="4",
                                                       COMMUNICATOR=""))
    site.ends_well(job)
    devices = ",".join(str(i) for i in range(NODE_GPUS))
    for rank in range(4):
        expect(f"{rank} of 4: {devices}, 8, train --model" in site.log(job), site.log(job))
    expect("--precision half --mode replicated --communicator nccl --micro-batch 4 --lr" in site.log(job), site.log(job))


def test_missing_variables(site):
    """A variable that must be set and is not is named in one line, and so is a program that is not there."""
    small, jobs = ("--job-name=mylos", "--nodes=1", "--ntasks-per-node=1", "--cpus-per-task=1", NO_GPUS), []
    for script in ("train-cpu.sbatch", "train-gpu.sbatch", "requeue.sbatch", "compare.sbatch"):
        given = {}
        for name in ("MODEL", "TRAIN", *(["DEV"] if script == "compare.sbatch" else []), "OUTPUT"):
            jobs.append((site.submit(script, *small, **given), f"{name} is not set; submit with {name}=... sbatch ..., or "
                         "set it in the script"))
            given[name] = "something"
        jobs.append((site.submit(script, *small, MYLOS="no-such-mylos", **given),
                     "no-such-mylos is not found; load its module in the script, or set MYLOS"))
    for job, message in jobs:
        site.ends_badly(job, 2)
        expect(site.log(job) == f"mylos: {message}\n", f"{site.log(job)}, expected: {message}")


def test_time_limit(site):
    """The walltime's end: Slurm's own signal, a checkpoint, back into the queue, and on to the end with equal losses."""
    steps = 120
    job = site.submit("requeue.sbatch", *TWO_NODES, NO_GPUS, "--time=00:01:00", "--signal=B:USR1@50", **site.variables(
        "run", f"--steps {steps}", CHECKPOINT_EVERY="1", MYLOS=site.slow_once(0.3), LAUNCHER=SRUN))
    whole = site.whole_run("whole", steps)
    told = site.ends_well(job, 120)
    log = site.log(job)
    # On a busy machine the next start may meet its signal as well.
    expect(int(told["Restarts"]) >= 1, f"{told}\n{log}")
    expect("ended by SIGUSR1 after" in log and "goes on after step" in log, log)
    expect(f"job      Slurm {job}, start 2\n" in log, log)
    expect(site.losses("run") == whole and len(whole) == steps, f"losses differ:\n{log}")


def test_restarts(site):
    """A signal each time: the run goes on until MAX_RESTARTS."""
    job = site.submit("requeue.sbatch", *TWO_NODES, NO_GPUS, **site.variables("run", f"--steps {ENDLESS}", MAX_RESTARTS="1", LAUNCHER=SRUN))
    site.wait_for_step("run", 5)
    site.cluster.run("scancel", "--batch", "--signal=USR1", job)
    wait_for("the restart", lambda: "goes on after step" in site.log(job), 60)
    site.wait_for_step("run", int(site.log(job).split("goes on after step ")[1].split(",")[0]) + 5)
    site.cluster.run("scancel", "--batch", "--signal=USR1", job)
    site.ends_badly(job, 85)
    expect("mylos: not requeued: MAX_RESTARTS=1 reached\n" in site.log(job), site.log(job))
    expect(site.log(job).count("ended by SIGUSR1 after") == 2, site.log(job))


def test_no_progress(site):
    """A run that comes no step further is not started again, nor is one whose options are wrong; one that failed later is."""
    dies = site.fake("fails", f'mkdir -p "{site.home}/dies/checkpoints"\ntouch "{site.home}/dies/checkpoints/step-000007.h5"\nexit 1')
    one = ("--nodes=1", "--ntasks-per-node=1", "--cpus-per-task=1", NO_GPUS)
    fails, stuck, wrong = (
        site.submit("requeue.sbatch", *one, **site.variables("dies", MYLOS=dies)),
        site.submit("requeue.sbatch", *one, **site.variables("stuck", MYLOS=site.fake("stays", "exit 85"))),
        site.submit("requeue.sbatch", *one, **site.variables("wrong", "--bath 3")))
    site.ends_badly(stuck, 85)
    expect("mylos: not requeued: exit code 85, and no step further than the start\n" in site.log(stuck), site.log(stuck))
    site.ends_badly(wrong, 2)
    expect("not requeued" not in site.log(wrong), site.log(wrong))
    site.ends_badly(fails, 1)
    expect(site.cluster.job(fails)["Restarts"] == "1" and "no step further than " in site.log(fails), site.log(fails))


def test_crash_at_start(site):
    """A rank that crashes before its run has begun is started once more, and only once; one that crashes later is not."""
    one = ("--nodes=1", "--ntasks-per-node=1", "--cpus-per-task=1", NO_GPUS)
    again = "mylos: a rank crashed before the run began; started once more\n"
    tried, crash = site.home / "tried", "kill -SEGV $$"
    once = site.fake("once", f'[ -e "{tried}" ] || {{ touch "{tried}"; {crash}; }}\nexec "{site.mylos}" "$@"')
    begins = site.fake("begins", f'mkdir -p "{site.home}/begun"\ntouch "{site.home}/begun/run.json"\n{crash}')
    recovers, crashes, later = (
        site.submit("requeue.sbatch", *one, **site.variables("run", "--steps 4", MYLOS=once)),
        site.submit("requeue.sbatch", *one, **site.variables("never", MYLOS=site.fake("always", crash))),
        site.submit("requeue.sbatch", *one, **site.variables("begun", MYLOS=begins)))
    site.ends_well(recovers)
    expect(site.log(recovers).count(again) == 1 and len(site.losses("run")) == 4, site.log(recovers))
    site.ends_badly(crashes, 139)
    expect(site.log(crashes).count(again) == 1, site.log(crashes))
    site.ends_badly(later, 139)
    expect(again not in site.log(later), site.log(later))


def test_scancel(site):
    """A cancelled job leaves a checkpoint, does not come back, and the same command goes on from there."""
    variables = site.variables("run", f"--steps {ENDLESS}", LAUNCHER=SRUN)
    job = site.submit("requeue.sbatch", *TWO_NODES, NO_GPUS, **variables)
    site.wait_for_step("run", 5)
    site.cluster.run("scancel", job)
    told = site.cluster.wait_for_state(job, "CANCELLED")
    wait_for("the end of its steps", lambda: not site.cluster.processes("train", str(site.home / "run")), 20)
    # Slurm's SIGTERM or the SIGUSR1 that the script makes of it, whichever comes first.
    expect(told["Restarts"] == "0" and re.search("ended by SIG(TERM|USR1) after", site.log(job)), site.log(job))
    saved = site.checkpoints("run")
    expect(len(saved) == 1, f"{saved}\n{site.log(job)}")
    job = site.submit("requeue.sbatch", *TWO_NODES, NO_GPUS, **variables)
    wait_for("the second job", lambda: "goes on after step" in site.log(job), 60)
    expect(saved[0] in site.log(job), site.log(job))


def test_dead_rank(site):
    """A rank that is killed: its run ends, and goes on from the checkpoint before."""
    job = site.submit("requeue.sbatch", *TWO_NODES, NO_GPUS, **site.variables(
        "run", "--steps 60", CHECKPOINT_EVERY="5", MYLOS=site.slow_once(0.3), LAUNCHER=SRUN))
    site.wait_for_step("run", 16)
    ranks = [each for each in site.cluster.processes("train", str(site.home / "run")) if node_of(each) == "n2"
             and b"srun" not in pathlib.Path(f"/proc/{each}/cmdline").read_bytes()]
    expect(len(ranks) == 1, f"{ranks}")
    os.kill(ranks[0], 9)
    whole = site.whole_run("whole", 60)
    told = site.ends_well(job)
    expect(told["Restarts"] == "1" and "goes on after step" in site.log(job), site.log(job))
    expect(site.losses("run") == whole, f"losses differ:\n{site.log(job)}")


def node_of(process):
    try:
        variables = pathlib.Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    return next((each.split(b"=")[1].decode() for each in variables if each.startswith(b"SLURMD_NODENAME=")), None)


def parent_of(process):
    return int(pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])


def kill_node(cluster, node):
    """As a power cut: its daemon, its steps and their processes at once."""
    tasks = [each for each in cluster.processes() if node_of(each) == node]
    daemon = cluster.base / f"slurmd.{node}.pid"
    for process in {int(daemon.read_text()), *(parent_of(each) for each in tasks), *tasks}:
        os.kill(process, 9)
    daemon.unlink()
    for name in ("spool", "tmp"):  # what does not outlive a power cut
        shutil.rmtree(cluster.base / f"{name}.{node}")
        (cluster.base / f"{name}.{node}").mkdir()


def test_dead_node(site):
    """A node that is gone: Slurm notices, requeues the job, and it goes on when there are two nodes again."""
    job = site.submit("requeue.sbatch", *TWO_NODES, NO_GPUS, **site.variables(
        "run", "--steps 60", CHECKPOINT_EVERY="5", MYLOS=site.slow_once(0.3), LAUNCHER="srun --mpi=pmix --wait=10"))
    site.wait_for_step("run", 16)
    kill_node(site.cluster, "n2")
    wait_for("the job to leave its node", lambda: site.cluster.job(job)["Restarts"] == "1", 90, 0.2)
    site.cluster.start_node("n2")
    whole = site.whole_run("whole", 60)
    site.ends_well(job)
    expect("goes on after step" in site.log(job), site.log(job))
    expect(site.losses("run") == whole, f"losses differ:\n{site.log(job)}")


def test_array(site):
    """Each task of an array has a seed and a directory of its own, and only the one that was signalled starts again."""
    array = site.submit("requeue.sbatch", "--nodes=1", "--ntasks-per-node=1", "--cpus-per-task=1", NO_GPUS, "--array=1-2",
                        **site.variables("run", "--steps 40", CHECKPOINT_EVERY="1", MYLOS=site.slow_once(0.1)))
    site.wait_for_step("run-1", 3)
    site.wait_for_step("run-2", 3)
    site.cluster.run("scancel", "--batch", "--signal=USR1", f"{array}_2")  # the last task has the array's own number
    logs = {task: site.home / f"mylos-{array}.{task}.out" for task in (1, 2)}
    wait_for("both tasks", lambda: all(log.exists() and "done after 40 steps" in log.read_text() for log in logs.values()), 90)
    expect("goes on after step" in logs[2].read_text() and "goes on after step" not in logs[1].read_text(),
           f"{logs[1].read_text()}{logs[2].read_text()}")
    expect(f", task 2 of array {array}, start 2\n" in logs[2].read_text(), logs[2].read_text())
    expect(site.losses("run-1")[1] != site.losses("run-2")[1], "both tasks have one seed")


def check_table(log, modes, ranks):
    rows = [line.split() for line in log.splitlines()]
    found = [(row[0], row[1]) for row in rows if len(row) > 5 and row[0] in modes and row[1].isdigit()]
    expect(found == [(mode, number) for number in ranks for mode in modes], f"{found} in {log}")
    expect("speedup" in log and "efficiency" in log, log)


def test_compare(site):
    """The comparison's table, from the script's own limits on a tiny model."""
    variables = site.variables("runs", "--max-length 60 --doc-stride 20 --epochs 1", DEV=str(site.home / "train.json"),
                               REPEATS="1", RANKS="1,2", MODES="replicated,sharded")
    job = site.submit("compare.sbatch", "--ntasks-per-node=2", "--cpus-per-task=1", NO_GPUS,
                      **{**variables, "OPTIONS": "--max-length 60 --doc-stride 20 --epochs 1 --gemm kokkos-kernels"})
    site.ends_well(job)
    log = site.log(job, "mylos-compare")
    check_table(log, ["replicated", "sharded"], ["1", "2"])
    told = json.loads((site.home / "runs" / "sharded-2-1" / "run.json").read_text())
    expect((told["train-limit"], told["dev-limit"], told["schedule"], told["learning-rate"], told["batch"]) ==
           (10000, 500, "constant", 3e-5, 8), f"{told}")


def submit_pbs(site, script, *options, **variables):
    """Submits from the scripts' own directory, as $PBS_O_WORKDIR is there."""
    done = subprocess.run(["qsub", "-V", *options, script], cwd=site.home, env={**site.cluster.environment, **variables},
                          capture_output=True, text=True, timeout=60)
    expect(done.returncode == 0, f"qsub: {done.stdout}{done.stderr}")
    return done.stdout.strip()


def pbs_log(site, job, script):
    """What the job wrote: qsub's stand-in keeps both streams apart, whatever -j says in a file."""
    return "".join(file.read_text() for file in sorted(site.home.glob(f"{script}.[oe]{job}*")))


def start_pbs(site, script, **variables):
    """Submits a job and waits until its run has begun; submits once more where Open MPI could not start its daemons."""
    for _ in range(2):
        job = submit_pbs(site, script, **variables)
        record = pathlib.Path(variables["OUTPUT"]) / "run.json"
        wait_for(f"the run of job {job} to begin",
                 lambda: record.exists() or site.cluster.state(job) in ENDED)
        if record.exists() or "An ORTE daemon has unexpectedly failed" not in pbs_log(site, job, script):
            break
        print(f"job {job}: mpirun could not start its daemons:\n{pbs_log(site, job, script)}")
    return job


def pbs_script(site, name, select):
    """A copy of a script with another select line, which qsub's command line cannot give to its stand-in."""
    text = (site.scripts / "pbs" / name).read_text()
    lines = [f"#PBS -l select={select}" if line.startswith("#PBS -l select=") else line for line in text.splitlines()]
    (site.home / name).write_text("\n".join(lines) + "\n")
    return name


def test_pbs_train(site):
    script = pbs_script(site, "train-cpu.pbs", "2:ncpus=1:mpiprocs=1")
    job = submit_pbs(site, script, **site.variables("run", "--steps 8", OMP_NUM_THREADS="77"))  # as PBS sets it, unasked
    told = site.cluster.wait_for_end(job)
    log = pbs_log(site, job, script)
    expect("77 threads" not in log, log)
    expect(told["JobState"] == "COMPLETED" and "2 on 2 nodes" in log and "rank     1: n2" in log, f"{told}\n{log}")
    expect(told["TimeLimit"] == "02:00:00" and told["JobName"] == "mylos", f"{told}")
    job = submit_pbs(site, script, TRAIN="t", MODEL="m")
    site.cluster.wait_for_end(job)
    expect("mylos: OUTPUT is not set; submit with qsub -v OUTPUT=..., or set it in the script\n" in pbs_log(site, job, script),
           pbs_log(site, job, script))


def test_pbs_resubmit(site):
    """Before the walltime ends the job saves and submits itself again, from where it was submitted, as often as it may."""
    script = pbs_script(site, "resubmit.pbs", "2:ncpus=1:mpiprocs=1")
    steps = 60
    slow = site.fake("slow-mylos", f'[ "$RESTARTS" -gt 0 ] || export LD_PRELOAD="{site.slow_disk}" MYLOS_SLOW_FILES=step- '
                     f'MYLOS_SLOW_SECONDS=0.3\nexec "{site.mylos}" "$@"')
    # Of a walltime of 24 s, 20 are left when the run stops: 4 s after its start.
    variables = site.variables("run", f"--steps {steps}", CHECKPOINT_EVERY="1", WALLTIME="24", STOP_BEFORE="20", MYLOS=slow,
                               RESTARTS="0")
    first = start_pbs(site, script, **variables)
    last = start_pbs(site, script, **{**variables, "OUTPUT": str(site.home / "once"), "MAX_RESTARTS": "0"})
    whole = site.whole_run("whole", steps)
    starts, log = 0, ""
    job = first
    while not starts or "out of walltime after" in log:  # on a busy machine the second start runs out of its time, too
        told = site.cluster.wait_for_end(job)
        log = pbs_log(site, job, script)
        expect((starts == 0) == ("goes on after step" not in log), f"start {starts} of {first}: {told}\n{log}")
        starts, job = starts + 1, log.split()[-1]  # which qsub printed
    expect(starts > 1 and told["JobState"] == "COMPLETED", f"{told}\n{log}")
    expect(site.losses("run") == whole, "losses differ")
    expect(site.cluster.wait_for_end(last)["ExitCode"] == "85:0", pbs_log(site, last, script))
    expect("mylos: not submitted again: MAX_RESTARTS=0 reached" in pbs_log(site, last, script), pbs_log(site, last, script))


def test_pbs_compare(site):
    script = pbs_script(site, "compare.pbs", "1:ncpus=2:mpiprocs=2")
    variables = {**site.variables("runs", DEV=str(site.home / "train.json"), REPEATS="1", RANKS="1,2", MODES="replicated"),
                 "OPTIONS": "--max-length 60 --doc-stride 20 --epochs 1 --gemm kokkos-kernels"}
    job = submit_pbs(site, script, **variables)
    told = site.cluster.wait_for_end(job)
    expect(told["JobState"] == "COMPLETED", f"{told}\n{pbs_log(site, job, script)}")
    check_table(pbs_log(site, job, script), ["replicated"], ["1", "2"])


def main(name, mylos, scripts, slow_disk):
    for_pbs = name.startswith("pbs")
    require_slurm(*(["qsub", "mpirun"] if for_pbs else ["mpirun"]))
    if for_pbs and not PBS_PLUGIN.exists():
        skip(f"{PBS_PLUGIN} is not there")
    if "libmpich" in subprocess.run(["ldd", mylos], capture_output=True, text=True).stdout:
        skip("a build with MPICH, which Debian's Slurm starts by other means than PMIx")
    test = globals()[f"test_{name}"]
    with Cluster(pbs=for_pbs, slurmd_timeout=5 if name == "dead_node" else 300) as cluster:
        site = Site(cluster, mylos, scripts, slow_disk)
        try:
            test(site)
        except AssertionError:
            for log in sorted(site.home.glob("*.out")):
                print(f"-- {log.name}\n{log.read_text(errors='replace')[-6000:]}")
            raise


if __name__ == "__main__":
    main(*sys.argv[1:])
