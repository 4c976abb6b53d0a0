"""Runs derecho.pbs as PBS does, with programs that record their arguments, and compares these with the needs of NCAR's nodes.

    check_derecho.py SCRIPTS
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

# The variables that NCAR's own examples of DDP and FSDP on Derecho export for NCCL.
EXPORTED = {
    "NCCL_SOCKET_IFNAME": "hsn", "NCCL_IB_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_CROSS_NIC": "1",
    "NCCL_NCHANNELS_PER_NET_PEER": "4", "FI_CXI_DISABLE_HOST_REGISTER": "1", "FI_CXI_OPTIMIZED_MRS": "false",
    "FI_CXI_DEFAULT_CQ_SIZE": "131072", "FI_MR_CACHE_MONITOR": "userfaultfd"}
ASKED = ("-N mylos -q main -j oe", "-l select=2:ncpus=64:mpiprocs=4:ngpus=4:mem=480GB")
# A stand-in for mpiexec that records its arguments and its environment.
NOTES = """#!/usr/bin/env python3
import json, os, sys
json.dump([sys.argv[1:], dict(os.environ)], open(os.environ["NOTED"], "w"))
sys.exit(int(os.environ.get("ENDS", "0")))
"""
# On Derecho, `module` is a shell function that a job inherits.
MODULE = {"BASH_FUNC_module%%": '() { echo "module $*" >>"$MODULES"; }'}


class Node:
    def __init__(self, directory, script):
        self.base, self.script = pathlib.Path(directory), script
        for name, text in (("mpiexec", NOTES), ("mylos", "#!/bin/sh\n")):
            (self.base / name).write_text(text)
            (self.base / name).chmod(0o755)

    def run(self, nodes, **given):
        """Runs the script. Returns the exit code, the messages, and the record of mpiexec."""
        noted = self.base / "noted"
        noted.unlink(missing_ok=True)
        (self.base / "nodes").write_text("".join(f"{node}\n" for node in nodes))
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "PBS", "NCCL", "FI_", "MPICH"))}
        environment = {**kept, **MODULE, "PATH": f"{self.base}:{self.script.parents[1]}:{os.environ['PATH']}", "NOTED": str(noted),
                       "MODULES": str(self.base / "modules"), "PBS_NODEFILE": str(self.base / "nodes"), "PBS_JOBNAME": "mylos",
                       "PBS_O_WORKDIR": str(self.base), "OMP_NUM_THREADS": "64", **given}
        done = subprocess.run(["bash", self.script], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        return done.returncode, done.stderr, json.loads(noted.read_text()) if noted.exists() else None


def breaches(node):
    given = {"MODEL": "resnet50", "TRAIN": "images", "OUTPUT": "run"}
    train = ["mylos", "train", "--model", "resnet50", "--train", "images", "--output", "run", "--precision", "bfloat16", "--mode"]
    for nodes, more, launched, words in (
            (["a"] * 4 + ["b"] * 4, {}, 8, ["replicated"]),
            (["a"], {"MODE": "sharded", "OPTIONS": "--epochs 2", "TOTAL_BATCH_SIZE": "512"}, 4,
             ["sharded", "--batch", "512", "--epochs", "2"])):
        code, said, passed = node.run(nodes, **given, **more)
        expected = ["-n", str(launched), "--ppn", "4", "--cpu-bind", "none", *train, *words]
        if code != 0 or passed is None or passed[0] != expected:
            yield f"{code}, {said}: mpiexec is told {passed and passed[0]}, not {expected}"
            continue
        missing = {name: value for name, value in EXPORTED.items() if passed[1].get(name) != value}
        extra = [name for name in passed[1] if name.startswith("MPICH_")]
        if extra:
            yield f"{extra} are set, but Mylos gives no GPU memory to MPI, and without a GTL library MPICH_GPU_SUPPORT_ENABLED ends every rank"
        if missing or "OMP_NUM_THREADS" in passed[1]:
            yield f"mpiexec's environment lacks {missing}, OMP_NUM_THREADS is {passed[1].get('OMP_NUM_THREADS')}"
    modules = (node.base / "modules").read_text().splitlines()
    if modules[:2] != ["module reset", "module load cuda"]:
        yield f"modules: {modules}"
    for name in given:
        code, said, passed = node.run(["a"], **{**given, name: ""})
        if code != 2 or passed or said != f"mylos: {name} is not set; submit with qsub -v {name}=..., or set it in the script\n":
            yield f"without {name}: {code}, {said}"
    if node.run(["a"], **given, ENDS="85")[0] != 85 or node.run(["a"], **given, ENDS="1")[0] != 1:
        yield "the run's exit code is not the script's"
    lines = node.script.read_text().splitlines()
    yield from (f"no line '#PBS {line}'" for line in ASKED if f"#PBS {line}" not in lines)


def main(folder):
    with tempfile.TemporaryDirectory(prefix="mylos-derecho.") as directory:
        found = list(breaches(Node(directory, pathlib.Path(folder).resolve() / "pbs" / "derecho.pbs")))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
