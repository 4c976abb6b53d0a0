"""Part 2: ranks. One rank over NCCL; two ranks that share the GPU and exchange through MPI by way of host memory; and, on machines with
several GPUs, one rank per GPU over NCCL."""

import re
import shutil

from validation.agreement import BOUNDS, Agreement, difference, losses
from validation.commands import Failed, run, succeed
from validation.jobs import run_jobs
from validation.tests import run_suites, suites_of

# Checks of several GPUs.
NCCL = "nccl"
PART = "ranks"
RANKS = 2
LIMIT = 150
# Programs whose tests run on two ranks, the most needed first.
PROGRAMS = ["test_communicator", "test_modes", "test_checkpoint_ranks", "test_many_ranks"]
# A test of NCCL is skipped where ranks share a GPU; the others do not need one.
OVER_NCCL = "All/CommunicatorContract.*/nccl*"


def launcher(session):
    """Returns the words that start RANKS ranks. Errors: Failed."""
    program = session.bundle.launcher or shutil.which("mpirun")
    if program is None:
        raise Failed("there is no mpirun: it is not in the bundle and not on the path")
    return [program, "-n", str(RANKS)]


def names_of_ranks(session, build="gpu"):
    """Returns the environment of ranks that share the CPUs of this machine."""
    return session.names_of(build) | {"OMP_NUM_THREADS": str(max(1, session.threads // RANKS))}


def first_failure(output):
    """Returns the line of a test program's output that says most about a failure, or None."""
    for pattern in (r"^rank \d+: .*", r"^mylos: error: .*", r"^.*\.cpp:\d+: Failure$", r"^\[  FAILED  \] .*", r"^.*\berror\b.*"):
        found = re.search(pattern, output, re.MULTILINE)
        if found:
            return found[0].strip()
    return None


def test_ranks(session, clock, part, program, pattern):
    """Runs the tests of a program that match `pattern` on two ranks, as one check."""
    path = session.bundle.program("gpu", program)
    if not path.is_file():
        return session.record.leave_out(part, program, "it is not in the bundle")
    limit = clock.limit(LIMIT)
    done = run([*launcher(session), path, "--gtest_color=no", f"--gtest_filter={pattern}"], limit, names_of_ranks(session), session.scratch)
    passed = re.search(r"^\[  PASSED  \] (\d+) tests?", done.output, re.MULTILINE)
    if done.timed_out and limit.of_part:
        return session.record.leave_out(part, program, f"no time was left after {done.seconds:.0f} s of it")
    fine = done.code == 0 and passed is not None and int(passed[1]) > 0
    reason = done.reason() if done.timed_out else first_failure(done.output + "\n" + done.errors) or done.reason()
    return session.record.check(part, f"{program} on {RANKS} ranks", fine, f"{passed[1]} tests" if fine else reason)


def train_ranks(session, clock, part, communicator, mode):
    """Compares the losses of two ranks with those of one rank, in float."""
    runner = Agreement(session, clock)
    one = session.scratch / "ranks-1"
    if not one.exists():
        runner.train("gpu", "float", one.name)
    name = f"ranks-{RANKS}-{communicator}-{mode}"
    more = runner.train("gpu", "float", name, "--communicator", communicator, "--mode", mode, launcher=launcher(session), names=names_of_ranks(session))
    found, bound = difference(losses(more), losses(one)), BOUNDS["float"]
    what = f"losses of {RANKS} ranks over {communicator} and of one, {mode}"
    session.record.check(part, what, found <= bound, f"{len(losses(more))} steps differ by {found:.1e} at most, bound {bound:.0e}")
    session.record.figure("ranks", what=what, steps=len(losses(more)), difference=found, bound=bound)


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
    if session.gpus >= RANKS:
        yield NCCL, "nccl test_communicator", lambda: test_ranks(session, clock, NCCL, "test_communicator", OVER_NCCL)
        for mode in ("replicated", "sharded"):
            yield NCCL, f"nccl train {mode}", lambda mode=mode: train_ranks(session, clock, NCCL, "nccl", mode)


def ranks(session, clock):
    for part, name, job in jobs_of(session, clock):
        run_jobs(session, "ranks", part, [(name, job)])
    if session.gpus < RANKS and session.wants("nccl"):
        session.record.leave_out(NCCL, "ranks on several GPUs", f"{session.gpus} GPU is visible")
