"""Runs a group of tests of jobscripts/ at once, on a Slurm cluster that is started for them. They mostly wait for Slurm's timers.

    test_jobs.py GROUP MYLOS SCRIPTS FILE_FAULTS    SCRIPTS: the folder of job scripts; FILE_FAULTS: mylos_test_file_faults' library

GROUP is a name of GROUPS or of one of their tests. The exit code is 77, with a line that gives the reason, if Slurm cannot start here.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from cluster import ENDED, NODE_CPUS, NODE_GPUS, PBS_PLUGIN, Cluster, require_slurm, skip, wait_for
import tiny

GROUPS = {
    "restarts": ("time_limit", "array", "sweep", "signalled_twice", "crash_at_start"),
    "dead_node": ("dead_node",),
    "ranks": ("both_nodes", "wrong_launcher", "doctor", "early_end", "scancel", "dead_rank"),
    "compare": ("compare",),  # which needs a node of its own
    "pbs": ("pbs_train", "pbs_resubmit", "pbs_sweep", "pbs_compare"),
    "requests": ("production_shapes", "four_ranks_of_a_node", "missing_variables", "no_progress"),  # without MPI
}
# One rank of one thread per node, because two processors suffice for two ranks.
TWO_NODES = ("--nodes=2", "--ntasks-per-node=1", "--cpus-per-task=1")
NO_GPUS = "--gpus-per-node=0"
TINY = "--lr 1e-3 --max-length 60 --doc-stride 20 --batch 6 --dropout 0.1 --gemm kokkos-kernels"
ENDLESS = 1_000_000
# A rank of Open MPI 4.1 sometimes crashes inside MPI_Init under srun (docs/jobs.md). The other ranks then wait only for a second.
SRUN = "srun --mpi=pmix --wait=1"
CRASHED = "139"  # the exit code of signal 11


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


class Site:
    """A cluster with a model, questions and job scripts of a user, whose home has the name of a test."""

    def __init__(self, name, cluster, mylos, scripts, file_faults):
        self.cluster, self.mylos, self.scripts, self.file_faults = cluster, mylos, pathlib.Path(scripts), file_faults
        cluster.environment["PATH"] = f"{self.scripts.resolve()}:{os.environ['PATH']}"  # the functions of the scripts
        self.home = cluster.base / name
        self.home.mkdir()
        tiny.write_model(self.home / "model")
        tiny.write_questions(self.home / "train.json")

    def variables(self, output, options="", **more):
        return {"MODEL": str(self.home / "model"), "TRAIN": str(self.home / "train.json"), "OUTPUT": str(self.home / output),
                "MYLOS": self.mylos, "PRECISION": "float", "OPTIONS": f"{TINY} {options}", **more}

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
        wait_for(f"step {step} of {output}", lambda: max(self.losses(output), default=0) >= step)

    def expect_success(self, job):
        facts = self.cluster.wait_for_end(job)
        expect(facts["JobState"] == "COMPLETED", f"job {job}: {facts['JobState']}, {facts['ExitCode']}:\n{self.log(job)}")
        return facts

    def expect_failure(self, job, code):
        facts = self.cluster.wait_for_end(job)
        expect(facts["ExitCode"].split(":")[0] == str(code), f"job {job}: {facts['ExitCode']}:\n{self.log(job)}")

    def train_on_both_nodes(self, variables):
        """Runs train-cpu.sbatch on both nodes, again if a rank crashed before the run printed anything. Returns the job."""
        for _ in range(2):
            job = self.submit("train-cpu.sbatch", *TWO_NODES, **variables)
            facts = self.cluster.wait_for_end(job)
            if facts["ExitCode"].split(":")[0] != CRASHED or "\nmodel " in "\n" + self.log(job):
                break
            print(f"job {job}: a rank crashed inside MPI_Init:\n{self.log(job)}")
        self.expect_success(job)
        return job

    def whole_run(self, output, steps, **more):
        """Returns the losses of an uninterrupted run on both nodes."""
        self.train_on_both_nodes(self.variables(output, f"--steps {steps}", LAUNCHER=SRUN, **more))
        return self.losses(output)

    def program_slow_at_first_start(self, seconds):
        """Writes a program that runs mylos with a slow disk at the first start of a job, and plain mylos afterwards."""
        file = self.home / "slow-mylos"
        file.write_text(f'#!/bin/sh\n[ "${{SLURM_RESTART_COUNT:-0}}" -gt 0 ] ||\n  export LD_PRELOAD="{self.file_faults}" '
                        f'MYLOS_FILE_FAULTS=fsync:{seconds}s:step-\nexec "{self.mylos}" "$@"\n')
        file.chmod(0o755)
        return str(file)

    def fake(self, name, body):
        """Writes a program that replaces mylos."""
        file = self.home / name
        file.write_text(f"#!/bin/sh\n{body}\n")
        file.chmod(0o755)
        return str(file)


def test_both_nodes(site):
    """Runs on two nodes with srun and with mpirun have the same losses, and the log names the node of each rank."""
    job = site.train_on_both_nodes(site.variables("srun", "--steps 8", DEV=str(site.home / "train.json")))
    log = site.log(job)
    for text in ("ranks    2 on 2 nodes", f"\njob      Slurm {job}\n", "\nrank     0: n1, processors ",
                 "\nrank     1: n2, processors "):
        expect(log.count(text) == 1, f"no '{text}' in {log}")
    job = site.submit("train-cpu.sbatch", *TWO_NODES,
                      **site.variables("mpirun", "--steps 8", LAUNCHER="mpirun --bind-to none", MODE="sharded"))
    site.expect_success(job)
    expect("2 on 2 nodes" in site.log(job) and "; sharded\n" in site.log(job), site.log(job))
    one, other = site.losses("srun"), site.losses("mpirun")
    expect(len(one) == 8 and all(abs(one[i] - other[i]) < 1e-5 for i in one), f"{one} {other}")


def test_wrong_launcher(site):
    """Under srun with the wrong type of MPI, ranks end instead of running alone."""
    job = site.submit("train-cpu.sbatch", *TWO_NODES, **site.variables("run", "--steps 8", LAUNCHER="srun --mpi=none"))
    site.expect_failure(job, 1)
    expect(not (site.home / "run").exists(), site.log(job))


def test_doctor(site):
    """mylos doctor on two nodes prints one report. If the first rank never starts MPI, the other one reports it."""
    words = ("srun", "--nodes=2", "--ntasks-per-node=1", "--cpus-per-task=1")
    doctor = (site.mylos, "doctor", "--output", str(site.home))
    report = json.loads(site.cluster.run(*words, "--mpi=pmix", "--time=60", *doctor, "--json").stdout)
    expect((report["ranks"], report["nodes"], report["errors"]) == (2, 2, 0), report)
    texts = {finding["name"]: finding["text"] for finding in report["findings"]}
    expect(texts["shared"] == "the first rank's file is seen" and "left according to the scheduler" in texts["job"], report)
    lost = site.fake("lost", f'[ "$SLURM_PROCID" = 1 ] || exec sleep 30\nexec "{site.mylos}" "$@"')
    alone = site.cluster.run(*words, "--mpi=pmix", "--wait=1", lost, *doctor[1:], "--collective-timeout", "2", check=False)
    expect(alone.returncode != 0 and "mylos: error: rank 1 on n2: MPI: " in alone.stderr, f"{alone.stdout}{alone.stderr}")


def test_early_end(site):
    """If a rank ends before MPI starts, srun --wait of the scripts ends the others; here it waits for less time."""
    ends = site.fake("ends", f'[ "$SLURM_PROCID" = 1 ] && exit 3\nexec "{site.mylos}" "$@"')
    job = site.submit("train-cpu.sbatch", *TWO_NODES,
                      **site.variables("run", "--steps 8", MYLOS=ends, LAUNCHER=SRUN))
    site.expect_failure(job, 137)
    expect("task 1: Exited with exit code 3" in site.log(job), site.log(job))


def test_production_shapes(site):
    """The resource requests of the scripts are granted, unchanged and with the options that they mention."""
    cases = [("train-cpu.sbatch", [], 1, 2, 32, 0), ("train-cpu.sbatch", ["--nodes=2"], 2, 4, 64, 0),
             ("train-gpu.sbatch", [], 1, 4, 32, 4), ("train-gpu.sbatch", ["--nodes=2"], 2, 8, 64, 8),
             ("train-gpu.sbatch", ["--ntasks-per-node=1", "--gpus-per-node=1"], 1, 1, 8, 1),
             ("requeue.sbatch", [], 1, 4, 32, 4), ("requeue.sbatch", ["--nodes=2"], 2, 8, 64, 8),
             ("compare.sbatch", [], 1, 4, 32, 4), ("compare.sbatch", [NO_GPUS], 1, 4, 32, 0),
             ("perlmutter.sbatch", [], 2, 8, 256, 8), ("marenostrum5.sbatch", [], 2, 8, 160, 8),
             ("leonardo.sbatch", [], 2, 8, 64, 8), ("leonardo.sbatch", ["--nodes=1"], 1, 4, 32, 4),
             ("jupiter.sbatch", [], 2, 8, 576, 8), ("alps.sbatch", ["--nodes=1"], 1, 4, 288, 4),
             # The nodes of these sites have eight GPUs, those of the tests four.
             *((f"{site_name}.sbatch", ["--ntasks-per-node=4", "--gpus-per-node=4"], 2, 8, 56, 8) for site_name in ("lumi", "frontier"))]
    for script, options, nodes, ranks, cpus, gpus in cases:
        path = site.scripts / "slurm" / script
        said = site.cluster.run("sbatch", "--test-only", *options, str(path)).stderr
        granted = NODE_CPUS if "--exclusive" in path.read_text() else cpus
        expect(f"using {granted} processors on nodes" in said, f"{script} {options}: {said}")
        job = site.submit(script, *options, "--hold", **site.variables("run"))
        facts = site.cluster.job(job)
        asked = dict(each.split("=") for each in facts["TRES"].split(",") if "=" in each)
        expect((facts["NumNodes"].split("-")[0], facts["NumTasks"], asked["cpu"]) == (str(nodes), str(ranks), str(cpus)), f"{script} {options}: {facts}")
        expect(int(asked.get("gres/gpu", 0)) == gpus or int(facts.get("TresPerNode", "gpu:0").split(":")[-1]) * nodes == gpus,
               f"{script} {options}: {facts}")
        site.cluster.run("scancel", job)


def test_four_ranks_of_a_node(site):
    """In train-gpu.sbatch and on a node of each site, four ranks each see the four GPUs of their node."""
    sees = site.fake("sees", f'echo "$SLURM_PROCID of $SLURM_NTASKS: $CUDA_VISIBLE_DEVICES, $SRUN_CPUS_PER_TASK, $*"')
    given = site.variables("run", "", MYLOS=sees, PRECISION="half", BATCH_SIZE_PER_DEVICE="4")
    jobs = {cpus: site.submit(f"{script}.sbatch", "--nodes=1", **given) for script, cpus in
            (("train-gpu", 8), ("perlmutter", 32), ("marenostrum5", 20))}
    devices = ",".join(str(i) for i in range(NODE_GPUS))
    for cpus, job in jobs.items():
        site.expect_success(job)
        for rank in range(4):
            expect(f"{rank} of 4: {devices}, {cpus}, train --model" in site.log(job), site.log(job))
        expect("--precision half --mode replicated" in site.log(job), site.log(job))
        expect("--micro-batch 4 --lr" in site.log(job), site.log(job))


def test_missing_variables(site):
    """A missing variable is named in one line, and so is a missing program."""
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
        site.expect_failure(job, 2)
        expect(site.log(job) == f"mylos: {message}\n", f"{site.log(job)}, expected: {message}")


def test_time_limit(site):
    """Near the end of the walltime Slurm signals, the run saves, the job is requeued, and it finishes with equal losses."""
    steps = 120
    job = site.submit("requeue.sbatch", *TWO_NODES, NO_GPUS, "--time=00:01:00", "--signal=B:USR1@50", **site.variables(
        "run", f"--steps {steps}", CHECKPOINT_EVERY="1", MYLOS=site.program_slow_at_first_start(0.3), LAUNCHER=SRUN))
    whole = site.whole_run("whole", steps)
    facts = site.expect_success(job)
    log = site.log(job)
    # On a busy machine the next start may get the signal as well.
    expect(int(facts["Restarts"]) >= 1, f"{facts}\n{log}")
    expect("ended by SIGUSR1 after" in log and "goes on after step" in log, log)
    expect(f"job      Slurm {job}, start 2\n" in log, log)
    expect(site.losses("run") == whole and len(whole) == steps, f"losses differ:\n{log}")


def test_signalled_twice(site):
    """A job that is signalled at every start is requeued until MAX_RESTARTS."""
    job = site.submit("requeue.sbatch", *TWO_NODES, NO_GPUS, **site.variables("run", f"--steps {ENDLESS}", MAX_RESTARTS="1", LAUNCHER=SRUN))
    site.wait_for_step("run", 5)
    site.cluster.run("scancel", "--batch", "--signal=USR1", job)
    wait_for("the restart", lambda: "goes on after step" in site.log(job))
    site.wait_for_step("run", int(site.log(job).split("goes on after step ")[1].split(",")[0]) + 5)
    site.cluster.run("scancel", "--batch", "--signal=USR1", job)
    site.expect_failure(job, 85)
    expect("mylos: not requeued: MAX_RESTARTS=1 reached\n" in site.log(job), site.log(job))
    expect(site.log(job).count("ended by SIGUSR1 after") == 2, site.log(job))


def test_no_progress(site):
    """A run without progress or with wrong options is not started again. A run that failed after progress is."""
    dies = site.fake("fails", f'mkdir -p "{site.home}/dies/checkpoints"\ntouch "{site.home}/dies/checkpoints/step-000007.h5"\nexit 1')
    one = ("--nodes=1", "--ntasks-per-node=1", "--cpus-per-task=1", NO_GPUS)
    fails, stuck, wrong = (
        site.submit("requeue.sbatch", *one, **site.variables("dies", MYLOS=dies)),
        site.submit("requeue.sbatch", *one, **site.variables("stuck", MYLOS=site.fake("stays", "exit 85"))),
        site.submit("requeue.sbatch", *one, **site.variables("wrong", "--bath 3")))
    site.expect_failure(stuck, 85)
    expect("mylos: not requeued: exit code 85, and no step further than the start\n" in site.log(stuck), site.log(stuck))
    site.expect_failure(wrong, 2)
    expect("not requeued" not in site.log(wrong), site.log(wrong))
    site.expect_failure(fails, 1)
    expect(site.cluster.job(fails)["Restarts"] == "1" and "no step further than " in site.log(fails), site.log(fails))


def test_crash_at_start(site):
    """A rank that crashes before its run has begun is started once more, but not twice. A later crash is not retried."""
    one = ("--nodes=1", "--ntasks-per-node=1", "--cpus-per-task=1", NO_GPUS)
    again = "mylos: a rank crashed before the run began; started once more\n"
    tried, crash = site.home / "tried", "kill -SEGV $$"
    once = site.fake("once", f'[ -e "{tried}" ] || {{ touch "{tried}"; {crash}; }}\nexec "{site.mylos}" "$@"')
    begins = site.fake("begins", f'mkdir -p "{site.home}/begun"\ntouch "{site.home}/begun/run.json"\n{crash}')
    recovers, crashes, later = (
        site.submit("requeue.sbatch", *one, **site.variables("run", "--steps 4", MYLOS=once)),
        site.submit("requeue.sbatch", *one, **site.variables("never", MYLOS=site.fake("always", crash))),
        site.submit("requeue.sbatch", *one, **site.variables("begun", MYLOS=begins)))
    site.expect_success(recovers)
    expect(site.log(recovers).count(again) == 1 and len(site.losses("run")) == 4, site.log(recovers))
    site.expect_failure(crashes, 139)
    expect(site.log(crashes).count(again) == 1, site.log(crashes))
    site.expect_failure(later, 139)
    expect(again not in site.log(later), site.log(later))


def test_scancel(site):
    """A cancelled job leaves a checkpoint and is not requeued. The same command resumes from the checkpoint."""
    variables = site.variables("run", f"--steps {ENDLESS}", LAUNCHER=SRUN)
    job = site.submit("requeue.sbatch", *TWO_NODES, NO_GPUS, **variables)
    site.wait_for_step("run", 5)
    site.cluster.run("scancel", job)
    facts = site.cluster.wait_for_state(job, "CANCELLED")
    wait_for("the end of its steps", lambda: not site.cluster.processes("train", str(site.home / "run")))
    # Slurm's SIGTERM, or the SIGUSR1 into which the script turns it, whichever comes first.
    expect(facts["Restarts"] == "0" and re.search("ended by SIG(TERM|USR1) after", site.log(job)), site.log(job))
    saved = site.checkpoints("run")
    expect(len(saved) == 1, f"{saved}\n{site.log(job)}")
    job = site.submit("requeue.sbatch", *TWO_NODES, NO_GPUS, **variables)
    wait_for("the second job", lambda: "goes on after step" in site.log(job))
    expect(saved[0] in site.log(job), site.log(job))


def test_dead_rank(site):
    """If a rank is killed, its run ends and resumes from the last checkpoint."""
    job = site.submit("requeue.sbatch", *TWO_NODES, NO_GPUS, **site.variables(
        "run", "--steps 60", CHECKPOINT_EVERY="5", MYLOS=site.program_slow_at_first_start(0.3), LAUNCHER=SRUN))
    site.wait_for_step("run", 16)
    ranks = [each for each in site.cluster.processes("train", str(site.home / "run")) if node_of(each) == "n2"
             and b"srun" not in pathlib.Path(f"/proc/{each}/cmdline").read_bytes()]
    expect(len(ranks) == 1, f"{ranks}")
    os.kill(ranks[0], 9)
    whole = site.whole_run("whole", 60)
    facts = site.expect_success(job)
    expect(facts["Restarts"] == "1" and "goes on after step" in site.log(job), site.log(job))
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
    """Kills a node as a power cut does: its daemon, its steps and their processes at once."""
    tasks = [each for each in cluster.processes() if node_of(each) == node]
    daemon = cluster.base / f"slurmd.{node}.pid"
    for process in {int(daemon.read_text()), *(parent_of(each) for each in tasks), *tasks}:
        os.kill(process, 9)
    daemon.unlink()
    for name in ("spool", "tmp"):  # directories that do not survive a power cut
        shutil.rmtree(cluster.base / f"{name}.{node}")
        (cluster.base / f"{name}.{node}").mkdir()


def test_dead_node(site):
    """If a node dies, Slurm notices and requeues the job, which resumes when there are two nodes again."""
    job = site.submit("requeue.sbatch", *TWO_NODES, NO_GPUS, **site.variables(
        "run", "--steps 60", CHECKPOINT_EVERY="5", MYLOS=site.program_slow_at_first_start(0.3), LAUNCHER="srun --mpi=pmix --wait=10"))
    site.wait_for_step("run", 16)
    kill_node(site.cluster, "n2")
    wait_for("the job to leave its node", lambda: site.cluster.job(job)["Restarts"] == "1", every=0.2)
    site.cluster.start_node("n2")
    whole = site.whole_run("whole", 60)
    site.expect_success(job)
    expect("goes on after step" in site.log(job), site.log(job))
    expect(site.losses("run") == whole, f"losses differ:\n{site.log(job)}")


def test_array(site):
    """Each task of an array has its own seed and directory, and only the task that was signalled starts again."""
    array = site.submit("requeue.sbatch", "--nodes=1", "--ntasks-per-node=1", "--cpus-per-task=1", NO_GPUS, "--array=1-2",
                        **site.variables("run", "--steps 40", CHECKPOINT_EVERY="1", MYLOS=site.program_slow_at_first_start(0.1)))
    site.wait_for_step("run-1", 3)
    site.wait_for_step("run-2", 3)
    site.cluster.run("scancel", "--batch", "--signal=USR1", f"{array}_2")  # the last task has the number of the array
    logs = {task: site.home / f"mylos-{array}.{task}.out" for task in (1, 2)}
    wait_for("both tasks", lambda: all(log.exists() and "done after 40 steps" in log.read_text() for log in logs.values()))
    expect("goes on after step" in logs[2].read_text() and "goes on after step" not in logs[1].read_text(),
           f"{logs[1].read_text()}{logs[2].read_text()}")
    expect(f", task 2 of array {array}, start 2\n" in logs[2].read_text(), logs[2].read_text())
    expect(site.losses("run-1")[1] != site.losses("run-2")[1], "both tasks have one seed")


def write_sweep(site, *options):
    """Writes the sweep of two learning rates into runs/. Returns what mylos printed."""
    settings = {"model": "model", "train": "train.json", "dev": "train.json", "steps": 40, "checkpoint-every": 1, "batch": 6,
                "max-length": 60, "doc-stride": 20, "gemm": "kokkos-kernels"}
    (site.home / "sweep.json").write_text(json.dumps({"settings": settings, "sweep": {"lr": [1e-3, 1e-2]}}))
    done = subprocess.run([site.mylos, "sweep", "sweep.json", "--output", "runs", "--threads", "1", *options], cwd=site.home,
                          env=site.cluster.environment, capture_output=True, text=True)
    expect(done.returncode == 0, done.stderr)
    return done.stdout


def sweep_table(site):
    """Returns the exit code of mylos sweep, its messages, and the states and losses of the points by their numbers."""
    done = subprocess.run([site.mylos, "sweep", "runs", "--json"], cwd=site.home, env=site.cluster.environment, capture_output=True, text=True)
    lines = json.loads((site.home / "runs" / "table.json").read_text())
    return done.returncode, done.stderr, {line["name"][:3]: (line["state"], line.get("validation_loss")) for line in lines}


def test_sweep(site):
    """A killed task of a sweep is named by the table. The array submitted again trains only that point, from its checkpoint."""
    printed = write_sweep(site, "--job", "slurm")
    expect(f"submit   sbatch {site.home}/runs/sweep.sbatch\n" in printed, printed)
    variables = {"MYLOS": site.program_slow_at_first_start(0.1), "LAUNCHER": SRUN}
    names = {number: f"runs/points/{number}-learning-rate={rate}" for number, rate in (("000", "0.001"), ("001", "0.01"))}
    logs = {task: site.home / "runs" / "logs" / f"{task}.out" for task in (0, 1)}
    array = site.cluster.submit(site.home / "runs" / "sweep.sbatch", **variables)
    site.wait_for_step(names["001"], 3)
    site.cluster.run("scancel", "--signal=KILL", "--full", f"{array}_1")
    wait_for("the end of the array", lambda: not site.cluster.run("squeue", "-h", "-j", array, check=False).stdout)
    code, said, states = sweep_table(site)
    expect(code == 1 and "1 of 2 points are finished; once no task is left, submit the array again" in said, said)
    expect(states["000"][0] == "finished" and re.fullmatch(r"(at|stopped at) step \d+ of 40(, ended by SIGTERM)?", states["001"][0]), states)
    begun = (site.home / names["000"] / "run.json").stat().st_mtime_ns
    array = site.cluster.submit(site.home / "runs" / "sweep.sbatch", **variables)
    wait_for("the end of the array", lambda: not site.cluster.run("squeue", "-h", "-j", array, check=False).stdout)
    code, said, states = sweep_table(site)
    expect(code == 0 and not said and {state for state, _ in states.values()} == {"finished"}, f"{said}{states}{logs[1].read_text()}")
    expect("goes on after step" in logs[1].read_text() and "goes on after step" not in logs[0].read_text(), logs[1].read_text())
    expect((site.home / names["000"] / "run.json").stat().st_mtime_ns == begun, "the finished point was trained again")
    expect(any("\n001 " in log.read_text() and "training min state\n" in log.read_text() for log in logs.values()), logs[1].read_text())
    site.cluster.run(site.mylos, "train", "--config", f"{site.home}/{names['001']}.json", "--output", str(site.home / "whole"))
    expect(site.losses("whole") == site.losses(names["001"]), "losses differ from those of an uninterrupted run")


def check_table(log, modes, ranks):
    rows = [line.split() for line in log.splitlines()]
    found = [tuple(row[:3]) for row in rows if len(row) > 5 and row[0] in modes and row[1].isdigit()]
    expect(found == [(mode, *number) for number in ranks for mode in modes], f"{found} in {log}")
    expect("speedup" in log and "efficiency" in log, log)


def test_compare(site):
    """The comparison prints its table, with the limits of the script and a tiny model. Ranks without nodes are on one of the job's two."""
    variables = site.variables("runs", "--max-length 60 --doc-stride 20 --epochs 1", DEV=str(site.home / "train.json"),
                               REPEATS="1", RANKS="2,2x1", MODES="replicated,sharded")
    job = site.submit("compare.sbatch", "--nodes=2", "--ntasks-per-node=2", "--cpus-per-task=1", NO_GPUS,
                      **{**variables, "OPTIONS": "--max-length 60 --doc-stride 20 --epochs 1 --gemm kokkos-kernels"})
    site.expect_success(job)
    log = site.log(job, "mylos-compare")
    check_table(log, ["replicated", "sharded"], [("1", "2"), ("2", "2")])
    facts = json.loads((site.home / "runs" / "sharded-2x1-1" / "run.json").read_text())
    expect([facts[name] for name in ("recipe", "train-limit", "schedule", "weight-decay", "decay-all", "clip", "batch")] ==
           ["lightning-ddp-squad", 10000, "constant", 0.01, True, 0.0, 8], f"{facts}")


def submit_pbs(site, script, *options, **variables):
    """Submits a script from its directory, which becomes $PBS_O_WORKDIR."""
    done = subprocess.run(["qsub", "-V", *options, script], cwd=site.home, env={**site.cluster.environment, **variables},
                          capture_output=True, text=True)
    expect(done.returncode == 0, f"qsub: {done.stdout}{done.stderr}")
    return done.stdout.strip()


def pbs_log(site, job, script):
    """Returns the output of a job. The stand-in for qsub ignores -j in a script and keeps both streams apart."""
    return "".join(file.read_text() for file in sorted(site.home.glob(f"{script}.[oe]{job}*")))


def start_pbs(site, script, **variables):
    """Submits a job and waits until its run has begun. Submits it again if Open MPI could not start its daemons."""
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
    """Copies a script with another select line, which the stand-in for qsub does not take on its command line."""
    text = (site.scripts / "pbs" / name).read_text()
    lines = [f"#PBS -l select={select}" if line.startswith("#PBS -l select=") else line for line in text.splitlines()]
    (site.home / name).write_text("\n".join(lines) + "\n")
    return name


def test_pbs_train(site):
    script = pbs_script(site, "train-cpu.pbs", "2:ncpus=1:mpiprocs=1")
    job = submit_pbs(site, script, **site.variables("run", "--steps 8", OMP_NUM_THREADS="77"))  # PBS sets this variable by itself
    facts = site.cluster.wait_for_end(job)
    log = pbs_log(site, job, script)
    expect("77 threads" not in log, log)
    expect(facts["JobState"] == "COMPLETED" and "2 on 2 nodes" in log and "rank     1: n2" in log, f"{facts}\n{log}")
    expect(facts["TimeLimit"] == "02:00:00" and facts["JobName"] == "mylos", f"{facts}")
    job = submit_pbs(site, script, TRAIN="t", MODEL="m")
    site.cluster.wait_for_end(job)
    expect("mylos: OUTPUT is not set; submit with qsub -v OUTPUT=..., or set it in the script\n" in pbs_log(site, job, script),
           pbs_log(site, job, script))


def test_pbs_resubmit(site):
    """Before the walltime ends, the job saves and submits itself again from the same directory, up to its limit of restarts."""
    script = pbs_script(site, "resubmit.pbs", "2:ncpus=1:mpiprocs=1")
    steps = 60
    slow = site.fake("slow-mylos", f'[ "$RESTARTS" = 0 ] || exec "{site.mylos}" "$@" --walltime 1:00:00\n'
                     f'export LD_PRELOAD="{site.file_faults}" MYLOS_FILE_FAULTS=fsync:0.3s:step-\nexec "{site.mylos}" "$@"')
    # The walltime is 30 s, and the first start stops with 20 s left, after a few of its slow steps.
    variables = site.variables("run", f"--steps {steps}", CHECKPOINT_EVERY="1", WALLTIME="30", STOP_BEFORE="20", MYLOS=slow,
                               RESTARTS="0")
    first = start_pbs(site, script, **variables)
    last = start_pbs(site, script, **{**variables, "OUTPUT": str(site.home / "once"), "MAX_RESTARTS": "0"})
    whole = site.whole_run("whole", steps)
    site.cluster.wait_for_end(first)
    log = pbs_log(site, first, script)
    expect("out of walltime after" in log and "goes on after step" not in log, log)
    job = log.split()[-1]  # which qsub printed
    facts = site.cluster.wait_for_end(job)
    log = pbs_log(site, job, script)
    expect("goes on after step" in log and facts["JobState"] == "COMPLETED", f"{facts}\n{log}")
    expect(site.losses("run") == whole, "losses differ")
    expect(site.cluster.wait_for_end(last)["ExitCode"] == "85:0", pbs_log(site, last, script))
    expect("mylos: not submitted again: MAX_RESTARTS=0 reached" in pbs_log(site, last, script), pbs_log(site, last, script))


def test_pbs_sweep(site):
    """The tasks of a sweep's array train its points, and the last one prints the table."""
    printed = write_sweep(site, "--job", "pbs")
    expect(f"submit   qsub -J 0-1 {site.home}/runs/sweep.pbs\n" in printed, printed)
    alone, array = (submit_pbs(site, "runs/sweep.pbs", *options, MYLOS=site.mylos) for options in ((), ("-J", "0-1")))
    wait_for("the end of the array", lambda: not site.cluster.run("squeue", "-h", "-j", array, check=False).stdout)
    code, said, states = sweep_table(site)
    log = pbs_log(site, array, "sweep.pbs")
    expect(code == 0 and len(states) == 2 and "training min state\n" in log, f"{said}{states}{log}")
    site.cluster.wait_for_end(alone)
    expect("SWEEP needs an array" in pbs_log(site, alone, "sweep.pbs"), pbs_log(site, alone, "sweep.pbs"))


def test_pbs_compare(site):
    script = pbs_script(site, "compare.pbs", "1:ncpus=2:mpiprocs=2")
    variables = {**site.variables("runs", DEV=str(site.home / "train.json"), REPEATS="1", RANKS="1,2", MODES="replicated"),
                 "OPTIONS": "--max-length 60 --doc-stride 20 --epochs 1 --gemm kokkos-kernels"}
    job = submit_pbs(site, script, **variables)
    facts = site.cluster.wait_for_end(job)
    expect(facts["JobState"] == "COMPLETED", f"{facts}\n{pbs_log(site, job, script)}")
    check_table(pbs_log(site, job, script), ["replicated"], [("1", "1"), ("1", "2")])


def run_test(name, cluster, *arguments):
    """Runs a test. Returns whether it passed; if not, prints the logs of its jobs."""
    site = Site(name, cluster, *arguments)
    try:
        globals()[f"test_{name}"](site)
        return True
    except AssertionError as error:
        logs = "".join(f"-- {log.name}\n{log.read_text(errors='replace')[-6000:]}\n" for log in sorted(site.home.glob("*.out")))
        print(f"{logs}FAILED: {name}: {error}", flush=True)
        return False


def main(group, mylos, scripts, file_faults):
    names = GROUPS.get(group, (group,))
    for_pbs = any(name.startswith("pbs") for name in names)
    require_slurm(*(["qsub", "mpirun"] if for_pbs else ["mpirun"]))
    if for_pbs and not PBS_PLUGIN.exists():
        skip(f"{PBS_PLUGIN} is not there")
    if "libmpich" in subprocess.run(["ldd", mylos], capture_output=True, text=True).stdout:
        skip("a build with MPICH, which Debian's Slurm starts by other means than PMIx")
    with Cluster(pbs=for_pbs, slurmd_timeout=5 if "dead_node" in names else 300) as cluster:
        with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
            passed = list(pool.map(lambda name: run_test(name, cluster, mylos, scripts, file_faults), names))
        expect(all(passed), f"{passed.count(False)} of {len(names)} tests failed")


if __name__ == "__main__":
    main(*sys.argv[1:])
