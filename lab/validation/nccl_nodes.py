"""Ranks that share one GPU and exchange over NCCL, which takes each for a node of its own, because they differ in NCCL_HOSTID."""

import contextlib
import dataclasses
import functools
import re
import shutil
import subprocess

from comparison.mylos import steps_of
from validation import target
from validation.agreement import Agreement
from validation.commands import run
from validation.launching import MODES, Launch, test_ranks, train_mode, train_ranks

PART = "NCCL on one GPU"
# Tests of NCCL. They are skipped where ranks share a GPU as ranks of one host.
OVER_NCCL = "All/CommunicatorContract.*/nccl*"
OWN_HOST = ("sh", "-c", 'export NCCL_HOSTID="rank-${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"; exec "$@"', "sh")
# The first is for our own check (parallel/launch/launch.hpp).
SHARED = {"MYLOS_SHARE_GPUS": "1", "NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1"}
CONTRACT_LIMIT, FAULT_LIMIT, SERVICE_LIMIT = 45, 40, 20
# Fault of rank 3 in step 3, see tests/parallel/communicator/failing_nccl.cpp -> an error that has to be printed.
FAULTS = {"kill": r"mylos: error: rank 3 \(process \d+\) on .* is gone", "throw": r"mylos: error: an error of its own$"}
SURVIVE = {"OMPI_MCA_orte_enable_recovery": "1"}  # Open MPI's mpirun does not kill the other ranks


@contextlib.contextmanager
def service(session, clock):
    """Starts CUDA's Multi-Process Service, which runs kernels of several processes at once and changes no setting of the GPU. Yields its
    environment variables, or none if it does not start: then processes take turns on the GPU."""
    control = shutil.which("nvidia-cuda-mps-control") or shutil.which("nvidia-cuda-mps-control", path="/usr/bin:/usr/local/nvidia/bin")
    folders = {f"CUDA_MPS_{kind}_DIRECTORY": session.scratch / f"mps-{kind.lower()}" for kind in ("PIPE", "LOG")}
    names = {name: str(folder) for name, folder in folders.items()}
    if session.dry_run or control is None:
        yield {}
        return
    for folder in folders.values():
        folder.mkdir(exist_ok=True)
    try:
        started = run(["sh", "-c", f"'{control}' -d >/dev/null 2>&1"], clock.limit(SERVICE_LIMIT), session.names | names)
        computes = run([session.bundle.program("gpu"), "bench", "gemm", "--shapes", "minilm", "--tokens", "8", "--repeats", "1"],
                       clock.limit(SERVICE_LIMIT), session.names | names)
        yield names if started.code == 0 and computes.code == 0 else {}
    finally:  # also after a signal, when run() starts no more commands
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            subprocess.run([control], input="quit\n", text=True, env=session.names | names, timeout=SERVICE_LIMIT, capture_output=True)


def fail_on_one_rank(session, clock, fault, launch):
    """Checks that an error of one rank, while groups of all ranks and of two are connected as in hybrid, ends all of them and is named."""
    path = session.bundle.program("gpu", "failing_nccl")
    if not path.is_file():
        return session.record.leave_out(PART, fault, "failing_nccl is not in the bundle")
    command = [*launch.words(session), path, "3", "NCCL_STAND_IN_FAULT", f"{fault}:3", "mesh"]
    limit = clock.limit(FAULT_LIMIT * (10 if session.dry_run else 1))  # a machine that runs all tests at once is slow
    done = run(command, limit, launch.names(session) | (SURVIVE if fault == "kill" else {}), session.scratch)
    if done.timed_out and limit.of_part:
        return session.record.leave_out(PART, fault, f"no time was left after {done.seconds:.0f} s of it")
    said = [line for line in done.errors.splitlines() if line.startswith("mylos: error: ")]
    fine = not done.timed_out and any(re.match(FAULTS[fault], line) for line in said) and "still at work" not in done.errors
    return session.record.check(PART, f"{fault} on one of {launch.ranks} ranks", fine, f"after {done.seconds:.0f} s: {'; '.join(said) or done.reason()}")


def connections(session, clock, mode, communicator, launch):
    """Records the memory of the GPU that all ranks use together, over MPI and with connected NCCL."""
    runner = Agreement(session, clock)
    used = {name: max(step["memory"] for step in steps_of(train_mode(runner, name, mode, launch))) for name in ("mpi", communicator)}
    session.record.figure("connections", mode=mode, ranks=launch.ranks, before=used["mpi"], after=used[communicator],
                          of_a_rank=(used[communicator] - used["mpi"]) / launch.ranks)


def node_jobs(session, clock, service_names):
    """Yields (name, job), the most needed first. In a dry run MPI stands in for NCCL."""
    communicator, pattern = ("mpi", "All/CommunicatorContract.*/world") if session.dry_run else ("nccl", OVER_NCCL)
    two, four = (Launch(ranks, OWN_HOST, SHARED | service_names, CONTRACT_LIMIT) for ranks in (2, 4))
    contract = lambda launch: (f"nodes contract {launch.ranks}",
                               functools.partial(test_ranks, session, clock, PART, "test_communicator", pattern, launch))
    yield contract(two)
    for launch, modes in ((two, ("replicated", "sharded")), (four, MODES)):
        for mode in modes:
            yield f"nodes {mode} {launch.ranks}", functools.partial(train_ranks, session, clock, PART, communicator, mode, launch)
    alone = dataclasses.replace(four, more=SHARED)  # a killed process may end the service
    for fault in FAULTS:
        yield f"nodes {fault}", functools.partial(fail_on_one_rank, session, clock, fault, alone)
    for mode in ("replicated", "hybrid"):
        yield f"nodes memory {mode}", functools.partial(connections, session, clock, mode, communicator, four)
    yield contract(four)


def nccl_obstacle(session):
    """Returns why ranks cannot exchange over NCCL here, or None."""
    if session.dry_run or (target.folder_of("libnccl.so.2")[0] and session.bundle.program("gpu", "test_nccl_alone").is_file()):
        return None
    return "the bundle or this machine has no NCCL"
