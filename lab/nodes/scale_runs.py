"""Trains a tiny model on increasing numbers of ranks for lab/test-scale, and compares losses, CPU time and memory.

    scale_runs.py MOST_RANKS BUILD...

MODES in the environment selects modes; the default is all. Prints a table, then the errors. Exits with 1 if there are any.
"""

import dataclasses
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

MODES = ["replicated", "sharded-optimizer", "sharded-gradients", "sharded", "hybrid"]
STEPS = 20
# Samples per step: at least one per rank.
BATCH = 256
# Tolerance for losses, because different numbers of ranks sum in different orders.
NEAR = 1e-5
# Factor by which N log N may be exceeded, because CPU time varies between runs.
NOISE = 1.25

# Only starts and ends MPI, with the timers of Mylos (RareWaking in parallel/launch/rank_runtime_mpi.cpp). What this costs is
# the MPI library's own.
START = """
#include <mpi.h>
#include <stdlib.h>
#include <sys/prctl.h>
int main(int count, char** words) {
  int provided;
  if (count > 1) prctl(PR_SET_TIMERSLACK, strtoul(words[1], NULL, 10));
  MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
  MPI_Finalize();
  return 0;
}
"""

HEAD = f"{'launcher':10} {'mode':18} {'ranks':>5} {'wall s':>7} {'CPU s':>8} {'MPI start CPU s':>15} {'CPU s a rank':>12} {'own MiB a rank':>14} {'resident MiB':>12}  losses"


@dataclasses.dataclass
class Launcher:
    name: str
    program: str
    mylos: str
    compiler: str

    @staticmethod
    def of_build(build):
        cache = pathlib.Path(build, "CMakeCache.txt").read_text()
        program = re.search(r"^MPIEXEC_EXECUTABLE:\w+=(.+)$", cache, re.MULTILINE)
        compiler = re.search(r"^MPI_C(?:XX)?_COMPILER:\w+=(.+)$", cache, re.MULTILINE)
        if not program or not compiler:
            sys.exit(f"{build} is a build without MPI")
        version = subprocess.run([program[1], "--version"], capture_output=True, text=True, check=True).stdout
        name = "Open MPI" if re.search(r"Open ?MPI|OpenRTE", version) else "MPICH"
        return Launcher(name, program[1], str(pathlib.Path(build, "mylos").resolve()), compiler[1])


@dataclasses.dataclass
class Run:
    wall: float
    processor: float
    own: float  # MiB of the rank with most, without memory shared between ranks
    resident: float  # MiB of the rank with most
    losses: dict


def descendants(process):
    """Returns the process and all its descendants."""
    found = [process]
    try:
        for thread in os.listdir(f"/proc/{process}/task"):
            children = pathlib.Path(f"/proc/{process}/task/{thread}/children").read_text().split()
            for child in children:
                found += descendants(int(child))
    except OSError:  # the process has just ended
        pass
    return found


class OwnMemory(threading.Thread):
    """Samples the private memory of each rank."""

    def __init__(self, process, mylos):
        super().__init__(daemon=True)
        self.process, self.mylos, self.most, self.ended = process, mylos, 0.0, threading.Event()

    def run(self):
        pause = 0.1
        while not self.ended.wait(pause):
            begin = time.thread_time()
            for process in descendants(self.process):
                try:
                    if os.readlink(f"/proc/{process}/exe") != self.mylos:
                        continue
                    status = pathlib.Path(f"/proc/{process}/status").read_text()
                except OSError:
                    continue
                if found := re.search(r"^RssAnon:\s+(\d+)", status, re.MULTILINE):
                    self.most = max(self.most, int(found[1]) / 1024)
            # Keeps the CPU time of sampling below 5 %. Its wall time is long if many ranks share the processors.
            pause = max(0.1, 20 * (time.thread_time() - begin))


def losses_of(output):
    rows = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    return {row["step"]: row["loss"] for row in rows if "loss" in row}


def environment_of(data):
    return dict(os.environ, OMP_NUM_THREADS="1", OMP_PROC_BIND="false", XDG_CACHE_HOME=str(data / "cache"),
                OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1",
                OMPI_MCA_hwloc_base_binding_policy="none")


def start_time(launcher, data, ranks):
    """Returns the CPU time of ranks that only start and end MPI."""
    program = data / "start"
    if not program.exists():
        (data / "start.c").write_text(START)
        subprocess.run([launcher.compiler, "-x", "c", str(data / "start.c"), "-o", str(program)], check=True)
    sharing = ranks // len(os.sched_getaffinity(0))
    words = [launcher.program, "-n", str(ranks), str(program)] + ([str(100_000 * sharing)] if sharing > 1 else [])
    process = subprocess.Popen(words, env=environment_of(data), stdin=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(words)}: exit code {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def train(launcher, data, ranks, mode, output, *more):
    words = [launcher.program, "-n", str(ranks), launcher.mylos, "train", "--model", str(data / "model"), "--train",
             str(data / "train.jsonl"), "--output", str(output), "--max-length", "32", "--batch", str(BATCH), "--lr", "1e-3",
             "--steps", str(STEPS), "--gemm", "onednn", "--checkpoint-every", str(STEPS // 2), "--mode", mode, *more]
    if mode == "hybrid":
        words += ["--shard-size", str(2 ** (int(math.log2(ranks)) // 2))]
    begin = time.monotonic()
    with open(data / "log", "w+") as log:
        process = subprocess.Popen(words, env=environment_of(data), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        memory = OwnMemory(process.pid, launcher.mylos)
        memory.start()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.monotonic() - begin
        memory.ended.set()
        memory.join()
        log.seek(0)
        text = log.read()
    if process.returncode != 0:
        print(f"{' '.join(words)}: exit code {process.returncode}\n{text[-3000:]}", flush=True)
        return None
    return Run(wall, usage.ru_utime + usage.ru_stime, memory.most, usage.ru_maxrss / 1024, losses_of(output))


def write_data(data):
    (data / "model").mkdir()
    (data / "model" / "config.json").write_text(json.dumps({
        "model_type": "llama", "vocab_size": 29, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 32, "rms_norm_eps": 1e-5,
        "bos_token_id": 1, "eos_token_id": 2}))
    with open(data / "train.jsonl", "w") as file:
        for i in range(4 * BATCH):
            file.write(json.dumps({"input_ids": [3 + (5 * i + j) % 26 for j in range(4 + i % 7)]}) + "\n")


class Trial:
    """Runs and compares all runs of one launcher."""

    def __init__(self, launcher, most, data):
        self.launcher, self.most, self.data, self.wrong, self.runs = launcher, most, data, [], {}
        self.starts = {}  # CPU time of ranks that only start and end MPI
        self.reference = None

    def run(self, ranks, mode, first, *more):
        output = self.data / f"{self.launcher.name}-{ranks}-{mode}-{first}"
        if ranks not in self.starts:
            self.starts[ranks] = start_time(self.launcher, self.data, ranks)
        what = f"{self.launcher.name}, {mode}, {ranks} ranks" + (f" from step {first}" if first > 1 else "")
        run = train(self.launcher, self.data, ranks, mode, output, *more)
        if run is None:
            self.wrong.append(f"{what}: failed")
            return output
        if self.reference is None:
            self.reference = run.losses
        steps = set(range(first, STEPS + 1))
        if set(run.losses) != steps:
            self.wrong.append(f"{what}: has steps {sorted(run.losses)}")
        shared = run.losses.keys() & self.reference.keys()
        difference = max((abs(run.losses[step] - self.reference[step]) for step in shared), default=0.0)
        if difference > NEAR:
            self.wrong.append(f"{what}: losses differ by {difference:.1e}")
        if first == 1:
            self.runs[mode, ranks] = run
        name = mode if first == 1 else f"{mode}, resumed"
        print(f"{self.launcher.name:10} {name:18} {ranks:5} {run.wall:7.1f} {run.processor:8.2f} {self.starts[ranks]:15.2f} "
              f"{run.processor / ranks:12.2f} {run.own:14.1f} {run.resident:12.1f}  within {difference:.0e}", flush=True)
        return output

    def compare(self, modes, counts):
        """Compares runs from 4 ranks on, because N log N is 0 for one rank."""
        for mode in modes:
            for few, many in zip(counts[1:], counts[2:]):
                if (mode, few) not in self.runs or (mode, many) not in self.runs:
                    continue
                allowed = many * math.log(many) / (few * math.log(few)) * NOISE
                for what, of in (("CPU time after MPI's start", lambda run, ranks: run.processor - self.starts[ranks]),
                                 ("memory", lambda run, ranks: run.own * ranks)):
                    grown = of(self.runs[mode, many], many) / of(self.runs[mode, few], few)
                    if grown > allowed:
                        self.wrong.append(f"{self.launcher.name}, {mode}: {what} of all grows {grown:.1f} times from {few} to {many} "
                                          f"ranks; N log N allows {allowed:.1f}")


def main():
    most, builds = int(sys.argv[1]), sys.argv[2:]
    modes = os.environ.get("MODES", "").split() or MODES
    counts = [4**i for i in range(10) if 4**i <= min(most, BATCH)]
    wrong = []
    print(HEAD, flush=True)
    for build in builds:
        with tempfile.TemporaryDirectory() as directory:
            data = pathlib.Path(directory)
            write_data(data)
            trial = Trial(Launcher.of_build(build), counts[-1], data)
            for ranks in counts:
                for mode in modes:
                    output = trial.run(ranks, mode, 1)
                    if ranks != counts[-1]:
                        continue
                    saved = str(output / "checkpoints" / f"step-{STEPS // 2:06}.h5")
                    for fewer in sorted({max(ranks // 4, 1), 1}, reverse=True):
                        trial.run(fewer, mode, STEPS // 2 + 1, "--resume", saved)
            trial.compare(modes, counts)
            wrong += trial.wrong
    for line in wrong:
        print(f"WRONG: {line}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
