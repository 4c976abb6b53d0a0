"""Part 2: ranks. One rank over NCCL; ranks that share the GPU, over NCCL and through MPI by way of host memory; and, on machines with
several GPUs, one rank per GPU over NCCL."""

import re
import shutil

from validation.agreement import Agreement, compare_losses, losses
from validation.commands import Failed, run, succeed
from validation.jobs import run_jobs
from validation.tests import run_suites, suites_of

# Checks of several GPUs.
NCCL = "nccl"
PART = "ranks"
RANKS = 2
LIMIT = 150
# Ranks that share a GPU over NCCL, which takes them for nodes: their kernels run in turns.
SHARED = "nccl on one GPU"
SHARED_RANKS = (2, 4)
MODES = ("replicated", "sharded-optimizer", "sharded-gradients", "sharded", "hybrid")
HYBRID = ("--shard-size", "2")
# Programs whose tests run on two ranks, the most needed first.
PROGRAMS = ["test_communicator", "test_modes", "test_checkpoint_ranks", "test_many_ranks"]
# A test of NCCL is skipped where ranks share a GPU; the others do not need one.
OVER_NCCL = "All/CommunicatorContract.*/nccl*"


def launcher(session, count=RANKS, before=""):
    """Returns the words that start ranks. `before`: commands of the shell that each rank runs first. Errors: Failed."""
    program = session.bundle.launcher or shutil.which("mpirun")
    if program is None:
        raise Failed("there is no mpirun: it is not in the bundle and not on the path")
    shell = ["/bin/sh", "-c", f'{before}; exec "$0" "$@"'] if before else []
    return [program, "-n", str(count), *shell]


def names_of_ranks(session, build="gpu", count=RANKS):
    """Returns the environment of ranks that share the CPUs of this machine."""
    return session.names_of(build) | {"OMP_NUM_THREADS": str(max(1, session.threads // count))}


def sharing(session, count, more=""):
    """Returns launcher and environment of ranks that share the GPU over NCCL."""
    before = f"export NCCL_HOSTID=rank$OMPI_COMM_WORLD_RANK{more}"
    return {"launcher": launcher(session, count, before), "names": names_of_ranks(session, count=count) | {"MYLOS_SHARE_GPUS": "1"}}


def first_failure(output):
    """Returns the line of a test program's output that says most about a failure, or None."""
    for pattern in (r"^rank \d+: .*", r"^mylos: error: .*", r"^.*\.cpp:\d+: Failure$", r"^\[  FAILED  \] .*", r"^.*\berror\b.*"):
        found = re.search(pattern, output, re.MULTILINE)
        if found:
            return found[0].strip()
    return None


def test_ranks(session, clock, part, program, pattern, count=RANKS, around=None):
    """Runs the tests of a program that match `pattern` on some ranks, as one check. `around`: see sharing()."""
    path = session.bundle.program("gpu", program)
    if not path.is_file():
        return session.record.leave_out(part, program, "it is not in the bundle")
    around = around or {"launcher": launcher(session, count), "names": names_of_ranks(session, count=count)}
    limit = clock.limit(LIMIT)
    done = run([*around["launcher"], path, "--gtest_color=no", f"--gtest_filter={pattern}"], limit, around["names"], session.scratch)
    passed = re.search(r"^\[  PASSED  \] (\d+) tests?", done.output, re.MULTILINE)
    if done.timed_out and limit.of_part:
        return session.record.leave_out(part, program, f"no time was left after {done.seconds:.0f} s of it")
    fine = done.code == 0 and passed is not None and int(passed[1]) > 0
    reason = done.reason() if done.timed_out else first_failure(done.output + "\n" + done.errors) or done.reason()
    return session.record.check(part, f"{program} on {count} ranks", fine, f"{passed[1]} tests" if fine else reason)


def train_ranks(session, clock, part, communicator, mode, count=RANKS, around=None):
    """Compares the losses of some ranks with those of one rank, in float."""
    runner = Agreement(session, clock)
    one = session.scratch / "ranks-1"
    if not one.exists():
        runner.train("gpu", "float", one.name)
    around = around or {"launcher": launcher(session, count), "names": names_of_ranks(session, count=count)}
    more = runner.train("gpu", "float", f"ranks-{count}-{communicator}-{mode}", "--communicator", communicator, "--mode", mode,
                        *(HYBRID if mode == "hybrid" else ()), **around)
    compare_losses(session, part, f"losses of {count} ranks over {communicator} and of one, {mode}", losses(more), losses(one), "float", "ranks")


def lose_rank(session, clock, communicator):
    """Kills the last of four ranks while they train in hybrid mode: the others end within the limit, with a line that names it."""
    count = SHARED_RANKS[-1]
    metrics = session.scratch / "lost/metrics.jsonl"
    killed = f"; [ $OMPI_COMM_WORLD_RANK != {count - 1} ] || (while ! grep -qs loss {metrics}; do sleep 0.1; done; kill -9 $$) & true"
    runner = Agreement(session, clock)
    command = runner.command("gpu", "float", "lost", "--communicator", communicator, "--mode", "hybrid", *HYBRID, "--steps", "1000000")
    around = sharing(session, count, killed)
    done = run([*around["launcher"], *command], clock.limit(LIMIT), around["names"], session.scratch)
    reason = f"{done.seconds:.0f} s, {done.reason()}"
    return session.record.check(SHARED, "a killed rank ends the others", done.code != 0 and not done.timed_out, reason)


def nccl_alone(session, clock):
    """Runs the tests of NCCL on one GPU: loading, connecting without blocking, the order of streams, aborting."""
    program = "test_nccl_alone"
    path = session.bundle.program("gpu", program)
    if not path.is_file():
        return session.record.leave_out(PART, program, "it is not in the bundle")
    listing = succeed([path, "--gtest_list_tests"], clock.limit(60), session.names).output
    suites = [(program, name, tests) for name, tests in suites_of(listing).items()]
    counts = run_suites(session, clock, PART, suites)
    if counts.get("skipped"):
        session.record.leave_out(PART, program, f"{counts['skipped']} tests are skipped: NCCL cannot be loaded (mylos doctor says why)")
    return None


def jobs_of(session, clock):
    """Yields (part, name, job), the most needed first."""
    yield PART, "test_nccl_alone", lambda: nccl_alone(session, clock)
    yield PART, "train replicated", lambda: train_ranks(session, clock, PART, "mpi", "replicated")
    for program in PROGRAMS:
        yield PART, program, lambda program=program: test_ranks(session, clock, PART, program, f"-{OVER_NCCL}")
    yield PART, "train sharded", lambda: train_ranks(session, clock, PART, "mpi", "sharded")
    communicator = "mpi" if session.bundle.stand_in else "nccl"
    for count in SHARED_RANKS:
        around = sharing(session, count)
        contract = "-" + OVER_NCCL if session.bundle.stand_in else OVER_NCCL
        yield (SHARED, f"shared test_communicator {count}",
               lambda count=count, around=around, contract=contract: test_ranks(session, clock, SHARED, "test_communicator", contract, count, around))
        for mode in MODES:
            yield (SHARED, f"shared train {mode} {count}", lambda count=count, mode=mode, around=around:
                   train_ranks(session, clock, SHARED, communicator, mode, count, around))
    yield SHARED, "shared kill", lambda: lose_rank(session, clock, communicator)
    if session.gpus >= RANKS:
        yield NCCL, "nccl test_communicator", lambda: test_ranks(session, clock, NCCL, "test_communicator", OVER_NCCL)
        for mode in ("replicated", "sharded"):
            yield NCCL, f"nccl train {mode}", lambda mode=mode: train_ranks(session, clock, NCCL, "nccl", mode)


def ranks(session, clock):
    for part, name, job in jobs_of(session, clock):
        run_jobs(session, "ranks", part, [(name, job)])
    if session.gpus < RANKS and session.wants("nccl"):
        session.record.leave_out(NCCL, "ranks on several GPUs", f"{session.gpus} GPU is visible")
